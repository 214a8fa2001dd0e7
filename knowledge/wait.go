package knowledge

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge/internal/eval"
	"github.com/madara-go/madara/knowledge/internal/store"
)

const (
	// impurePoll is how often an expression with effects is evaluated without a
	// change, where no Poll is set.
	impurePoll = 100 * time.Millisecond
	// impureGap is the least time between two evaluations of one for a change, so
	// that two waits that change what the other reads do not spin.
	impureGap = time.Millisecond
	// caughtUp is how late an evaluation on the grid may be; older ones are skipped.
	caughtUp = 100 * time.Millisecond
	// writerNodes is the largest expression that writers evaluate for its waiters.
	writerNodes = 256
)

// Wait evaluates the expression until it is true and returns its value. In
// between it sleeps, and holds no lock; it wakes when a variable that the
// expression reads changes, and when the settings' Poll says. What evaluations
// change is sent after each. Before and After are printed when the wait begins
// and ends. If the wait ends otherwise, the last value comes with the error:
// ErrTimeout, the context's cause, ErrClosed, or the *EvalError that stopped the
// expression. s may be nil.
func (e *Expression) Wait(ctx context.Context, s *WaitSettings) (karl.Value, error) {
	if s == nil {
		s = &WaitSettings{}
	}
	b := e.base
	if s.Before != "" {
		b.Print(s.Before)
	}
	w := wait{b: b, e: e, s: s, ctx: ctx, start: time.Now()}
	v, err := w.run(ctx)
	if s.After != "" {
		b.Print(s.After)
	}
	return v, err
}

type wait struct {
	b     *Base
	e     *Expression
	s     *WaitSettings
	ctx   context.Context
	start time.Time

	waiter  *store.Waiter // nil where changes wake nobody
	byWrite bool          // the writer evaluates
	mode    eval.Mode     // for the writer
	period  time.Duration // of the grid; 0 for none
	next    time.Duration // point of the grid to come, from start
	last    time.Time     // of the evaluation before
	tracked []*store.Record
}

func (w *wait) run(ctx context.Context) (karl.Value, error) {
	b, s, prog := w.b, w.s, w.e.prog
	pure := prog.Pure
	switch {
	case b.null:
		w.period = impurePoll
	case pure:
		w.mode = s.mode()
		w.byWrite = !prog.Dynamic && !prog.Calls && prog.Size <= writerNodes
	default:
		w.period = impurePoll
	}
	if s.Poll > 0 && (!pure || b.null) {
		w.period = s.Poll
	}
	w.next = w.period
	if !b.null && (pure || s.Poll <= 0) {
		w.waiter = store.NewWaiter()
		if w.byWrite {
			w.waiter.Ready = w.ready
		}
	}
	var timeout <-chan time.Time
	if s.Timeout != 0 {
		if !w.byWrite && s.Timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadlineCause(ctx, w.start.Add(s.Timeout), ErrTimeout)
			defer cancel()
			w.ctx = ctx
		}
		t := time.NewTimer(s.Timeout)
		defer t.Stop()
		timeout = t.C
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		v, err, done := w.evaluate()
		if done {
			return v, err
		}
		if w.period > 0 {
			timer.Reset(w.delay())
		}
		var wake <-chan struct{}
		if w.waiter != nil {
			wake = w.waiter.Wake
		}
		if w.due() {
			// Behind on the grid: no sleep, but the wait can still end.
			select {
			case <-timeout:
				return v, w.end(ErrTimeout)
			case <-ctx.Done():
				return v, w.end(context.Cause(ctx))
			case <-b.done:
				return v, w.end(ErrClosed)
			default:
			}
			continue
		}
		select {
		case <-wake:
			if gap := impureGap - time.Since(w.last); !pure && gap > 0 {
				if err := w.pause(ctx, gap); err != nil {
					return v, w.end(err)
				}
			}
		case <-timer.C:
		case <-timeout:
			return v, w.end(ErrTimeout)
		case <-ctx.Done():
			return v, w.end(context.Cause(ctx))
		case <-b.done:
			return v, w.end(ErrClosed)
		}
	}
}

// delay moves the grid on and returns the time until its next point.
func (w *wait) delay() time.Duration {
	now := time.Since(w.start)
	if late := now - w.next; late > caughtUp {
		w.next += (late - caughtUp) / w.period * w.period
	}
	return max(w.next-now, 0)
}

// due reports whether a point of the grid has passed, and takes it.
func (w *wait) due() bool {
	if w.period == 0 || time.Since(w.start) < w.next {
		return false
	}
	return true
}

// pause sleeps a moment that the wait's ends may cut short.
func (w *wait) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.b.done:
		return ErrClosed
	}
}

// evaluate runs the expression once; if it is false it registers the waiter
// before it lets the lock go, so that no change is missed.
func (w *wait) evaluate() (v karl.Value, err error, done bool) {
	b, prog := w.b, w.e.prog
	if w.period > 0 && time.Since(w.start) >= w.next {
		w.next += w.period
	}
	b.lock("Expression.Wait")
	if w.waiter != nil {
		b.store.Unregister(w.waiter)
		select {
		case <-w.waiter.Wake:
		default:
		}
	}
	if b.closed {
		b.unlock()
		return karl.Value{}, ErrClosed, true
	}
	track := w.waiter != nil && !w.byWrite
	if track {
		w.tracked = append(w.tracked[:0], prog.Reads...)
		b.env.Tracked = &w.tracked
	}
	b.env.Prefixes = b.env.Prefixes[:0]
	b.evaluating = true
	v, fail := w.value()
	b.evaluating = false
	b.env.Tracked = nil
	if fail == nil && !v.IsTrue() && w.waiter != nil {
		// Wake others for what this evaluation changed, but not this waiter.
		if b.store.Touched() {
			b.store.Settle()
		}
		on, tests := prog.Reads, prog.Tests
		if track {
			on = unique(w.tracked)
		}
		if w.s.Strict {
			tests = nil // a change could make the program fail
		}
		b.store.Register(w.waiter, on, tests)
		b.store.RegisterPrefixes(w.waiter, b.env.Prefixes)
	} else if track {
		for _, r := range w.tracked {
			b.store.Release(r)
		}
	}
	b.finish(&w.s.EvalSettings, fail)
	w.last = time.Now()
	if fail != nil {
		if errors.Is(fail, ErrTimeout) { // the evaluation took longer than the wait may
			return v, ErrTimeout, true
		}
		return karl.Value{}, b.failure(fail), true
	}
	return v, nil, v.IsTrue()
}

func (w *wait) value() (karl.Value, *eval.Error) {
	return w.s.run(w.b.env, w.e.prog, w.ctx)
}

// ready is asked by a writer whether the expression is true, or fails, now.
func (w *wait) ready() bool {
	v, fail := w.b.env.Run(w.e.prog, w.mode) // pure and small: no bounds
	return fail != nil || v.IsTrue()
}

// end takes the waiter off the variables.
func (w *wait) end(err error) error {
	if w.waiter != nil {
		w.b.lock("Expression.Wait")
		w.b.store.Unregister(w.waiter)
		w.b.unlock()
	}
	return err
}

// unique drops doubles and records that died.
func unique(records []*store.Record) []*store.Record {
	if len(records) < 16 {
		out := records[:0]
		for _, r := range records {
			if !r.Dead() && !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
		return out
	}
	seen := make(map[*store.Record]bool, len(records))
	return slices.DeleteFunc(records, func(r *store.Record) bool {
		if r.Dead() || seen[r] {
			return true
		}
		seen[r] = true
		return false
	})
}

// Await calls ready, under the lock and with a Guard, until it returns true or
// an error, and returns that error. In between it sleeps until a variable
// changes that ready looked at through the Guard. What ready changes is marked,
// not sent. If ctx ends first, its cause is returned; if the base is closed,
// ErrClosed. A base without a lock cannot wait so: ErrNullLock.
func (b *Base) Await(ctx context.Context, ready func(Guard) (bool, error)) error {
	if b.null {
		return ErrNullLock
	}
	w := store.NewWaiter()
	var tracked []*store.Record
	for {
		wrote := false
		done, err := b.tryAwait(w, &tracked, &wrote, ready)
		if done || err != nil {
			return err
		}
		if wrote { // two that wake each other must not spin
			select {
			case <-time.After(impureGap):
			case <-ctx.Done():
			case <-b.done:
			}
		}
		select {
		case <-w.Wake:
			continue
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-b.done:
			err = ErrClosed
		}
		b.lock("Base.Await")
		b.store.Unregister(w)
		b.unlock()
		return err
	}
}

func (b *Base) tryAwait(w *store.Waiter, tracked *[]*store.Record, wrote *bool, ready func(Guard) (bool, error)) (done bool, err error) {
	b.lock("Base.Await")
	defer b.unlock()
	b.store.Unregister(w)
	select {
	case <-w.Wake:
	default:
	}
	if b.closed {
		return false, ErrClosed
	}
	*tracked = (*tracked)[:0]
	b.env.Prefixes = b.env.Prefixes[:0]
	b.env.Tracked = tracked
	asleep := false
	defer func() {
		b.env.Tracked = nil
		if !asleep { // also when ready panicked
			for _, r := range *tracked {
				b.store.Release(r)
			}
		}
	}()
	err = b.callout("the function given to Await", func(g Guard) (err error) {
		done, err = ready(g)
		return err
	})
	b.env.Tracked = nil
	if done || err != nil {
		return done, err
	}
	asleep = true
	if b.store.Touched() {
		*wrote = true
		b.store.Settle()
	}
	b.store.Register(w, unique(*tracked), nil)
	b.store.RegisterPrefixes(w, b.env.Prefixes)
	return false, nil
}
