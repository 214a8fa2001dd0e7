package knowledge

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/madara-go/madara/knowledge/internal/store"
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/wire"
)

// sender makes one goroutine at a time the one that sends, so that order holds,
// without anybody waiting for it under the base's lock.
type sender struct {
	sinks  []Sink
	active bool // evaluations and waits send, and there is somewhere to send to

	// state is idle, or the number of the goroutine that sends, shifted, and
	// whether somebody left marks for it. It leaves idle under the base's lock only.
	state atomic.Int64

	// What the next round of a running sender takes, under the base's lock.
	againAll  bool
	againOnly []string

	// Told at the end of the rounds that whoever waits for them needs.
	waiting []chan error

	resend Scope // what the next round sends once more; 0 for nothing

	histories bool // an attachment sends them

	// Of the running sender alone.
	records []*store.Record
	updates []Update
}

const (
	idle    int64 = 0
	sending int64 = 1
	again   int64 = 2
	owner         = 2 // bits that the goroutine's number is shifted by
)

func sendingState() int64 { return goroutine()<<owner | sending }

func (s *sender) isMine() bool { return s.state.Load()&^again == sendingState() }

// sendAndUnlock sends what is marked, or only the names given. It is called with
// the lock held and gives it back before anything leaves.
func (b *Base) sendAndUnlock(only []string) {
	if !b.startSending(only) {
		b.unlock()
		return
	}
	b.runSender(only)
}

// startSending makes the caller the sender. If another goroutine is, that one
// takes the marks in its next round.
func (b *Base) startSending(only []string) bool {
	s := &b.sender
	if s.state.CompareAndSwap(idle, sendingState()) {
		return true
	}
	if s.isMine() {
		return false // a sink or filter: what it marks leaves with the next send
	}
	if len(only) == 0 {
		s.againAll = true
	} else {
		s.againOnly = append(s.againOnly, only...)
	}
	for {
		now := s.state.Load()
		if now == idle { // the sender stopped just now: the caller is next
			return s.state.CompareAndSwap(idle, sendingState())
		}
		if s.state.CompareAndSwap(now, now|again) {
			return false
		}
	}
}

// runSender sends until nobody asked for more. It is called with the lock held
// and returns without it, with the local failures of its first round.
func (b *Base) runSender(only []string) (failed error) {
	s := &b.sender
	mine := sendingState()
	var waiting []chan error
	finished := false
	defer func() {
		if finished {
			return
		}
		// A sink or filter ended the goroutine. The round is over: what it took is
		// marked again, and another goroutine may send.
		b.lock("the sender")
		for _, r := range s.records {
			b.store.MarkAgain(r)
		}
		clear(s.updates)
		clear(s.records)
		s.updates, s.records = s.updates[:0], s.records[:0]
		for _, done := range append(waiting, s.waiting...) {
			done <- errAbandoned
		}
		s.waiting = nil
		s.state.Store(idle)
		b.unlock()
	}()
	for round := 0; ; round++ {
		if s.againAll {
			only = nil
		} else if len(only) > 0 {
			only = append(only[:len(only):len(only)], s.againOnly...)
		}
		s.againAll, s.againOnly = false, nil
		waiting = s.waiting
		s.waiting = nil
		var again []batch
		if s.resend != 0 {
			again = b.capture(s.resend)
			s.resend = 0
		}
		attachments := b.attachments
		var clock uint64
		s.records, clock = b.store.TakeMarks(s.records[:0], only)
		for _, r := range s.records {
			u := Update{Name: r.Name(), Record: newRecord(r.Copy())}
			if s.histories {
				u.history = b.history(u.Name)
			}
			s.updates = append(s.updates, u)
		}
		b.unlock()
		err := b.sendRoundTo(attachments, batch{s.updates, clock, wire.MultiAssign}, again)
		clear(s.updates)
		clear(s.records)
		s.updates = s.updates[:0]
		for _, done := range waiting {
			done <- err
		}
		if round == 0 {
			failed = err
		}
		waiting = nil
		if s.state.CompareAndSwap(mine, idle) {
			finished = true
			return failed
		}
		b.lock("the sender")
		s.state.Store(mine)
		only = s.againOnly
	}
}

// sendRoundTo hands what a round took to sinks and attachments. Variables that
// could not be sent for a local reason are marked again.
func (b *Base) sendRoundTo(attachments []*Attachment, m batch, again []batch) error {
	var errs []error
	if len(m.updates) > 0 {
		for _, sink := range b.sender.sinks {
			b.deliver(sink, m.clock)
		}
	}
	for _, a := range attachments {
		for _, resent := range again {
			if err := b.guarded(a, resent); err != nil {
				errs = append(errs, err)
			}
		}
		if len(m.updates) == 0 {
			continue
		}
		err := b.guarded(a, m)
		if err == nil {
			continue
		}
		errs = append(errs, err)
		if errors.Is(err, transport.ErrTooLarge) || errors.Is(err, errPanic) {
			continue // it would fail for ever
		}
		b.lock("the sender")
		for _, r := range b.sender.records {
			b.store.MarkAgain(r)
		}
		b.unlock()
	}
	err := errors.Join(errs...)
	if err != nil {
		b.log.Warn("sending failed", "error", err)
	}
	return err
}

var errAbandoned = errors.New("the goroutine that sent ended in a sink or filter")

var errPanic = errors.New("a filter panicked")

// guarded sends over one attachment; a filter that panics loses the batch.
func (b *Base) guarded(a *Attachment, m batch) (err error) {
	defer func() {
		if r := recover(); r != nil {
			a.counters.drop(transport.DropEncode, 1)
			b.log.Error("a filter panicked", "panic", r)
			err = fmt.Errorf("%w: %v", errPanic, r)
		}
	}()
	return a.send(m)
}

// deliver hands the updates to a sink. What it panics with is logged, so that
// one bad sink does not stop the base from sending.
func (b *Base) deliver(sink Sink, clock uint64) {
	defer func() {
		if r := recover(); r != nil {
			b.log.Error("a sink panicked", "panic", r)
		}
	}()
	sink(clock, b.sender.updates)
}

// sending reports whether the caller runs inside a sink or a filter of the base.
func (b *Base) sending() bool {
	if b.sender.isMine() {
		return true
	}
	for _, a := range b.attachments {
		if a.in.goroutine.Load() == goroutine() {
			return true
		}
	}
	return false
}

// Send sends what is marked and returns once it has left, whoever sends it. The
// error joins what failed on this side: what could not be sent stays marked. It
// returns ctx's cause if that ends first; the sending goes on. Called by a sink
// or filter, or by a function that runs under the lock, it panics.
func (b *Base) Send(ctx context.Context) error { return b.sendRound(ctx, "Base.Send", 0) }

func (b *Base) sendRound(ctx context.Context, method string, resend Scope) error {
	b.lock(method)
	s := &b.sender
	if b.closed {
		b.unlock()
		return ErrClosed
	}
	if b.sending() {
		b.unlock()
		misuse("%s called by a sink or filter of the base", method)
	}
	s.resend = max(s.resend, resend)
	if len(s.sinks)+len(b.attachments) == 0 || (resend == 0 && b.store.Marked() == 0 && s.state.Load() == idle) {
		b.unlock()
		return nil
	}
	if b.startSending(nil) {
		return b.runSender(nil)
	}
	done := make(chan error, 1)
	s.waiting = append(s.waiting, done)
	b.unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waitSender returns once no goroutine sends.
func (b *Base) waitSender() {
	b.lock("Base.Close")
	s := &b.sender
	if s.state.Load() == idle {
		b.unlock()
		return
	}
	done := make(chan error, 1)
	s.waiting = append(s.waiting, done)
	if b.startSending(nil) {
		b.runSender(nil)
		return
	}
	b.unlock()
	<-done
}
