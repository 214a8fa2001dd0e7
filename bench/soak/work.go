package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// The kinds of operations that are counted.
const (
	texts = iota
	compiled
	floods
	nested
	sets
	gets
	deletes
	defines
	guards
	history
	limits
	waits
	watches
	resets
	kinds
)

var kindNames = [kinds]string{
	"text", "compiled", "flood", "#eval", "set", "get", "delete", "define", "guard", "history", "limit", "wait", "watch", "reset",
}

// batch is how many operations a worker does before it lets others go first.
const batch = 256

// work does operations in random order.
func (s *soak) work(id int, r *rand.Rand) {
	w := &worker{soak: s, r: r, id: id, own: fmt.Sprint("own", id)}
	if err := w.prepare(); err != nil {
		s.fail("preparing: %v", err)
		return
	}
	// How often each kind comes: what costs much comes seldom.
	tasks := []struct {
		weight int
		kind   int
		do     func() error
	}{
		{20, texts, w.text}, {20, compiled, w.compiled}, {10, floods, w.flood}, {5, nested, w.nested},
		{20, sets, w.set}, {20, gets, w.get}, {20, deletes, w.delete}, {2, defines, w.define},
		{10, guards, w.guard}, {5, history, w.history}, {2, limits, w.limit},
	}
	var draw []int
	for i, t := range tasks {
		for range t.weight {
			draw = append(draw, i)
		}
	}
	for n := 0; s.load.Err() == nil; n++ {
		t := tasks[draw[r.IntN(len(draw))]]
		if err := t.do(); err != nil {
			s.fail("%s: %v", kindNames[t.kind], err)
			return
		}
		s.counts[t.kind].Add(1)
		// Without this the others would run when the scheduler takes the
		// processor away, every ten milliseconds; with it each time, the
		// hand-shakes would have nearly all of the processor.
		if n%batch == 0 {
			runtime.Gosched()
		}
	}
}

// worker is one goroutine with mixed operations.
type worker struct {
	*soak
	r     *rand.Rand
	id    int
	own   string // a variable that nobody else writes
	n     int64
	large *knowledge.Expression // a thousand statements
	small *knowledge.Expression
	peek  *knowledge.Var[int64]
	real  *knowledge.Var[float64]
}

func (w *worker) prepare() (err error) {
	var src strings.Builder
	for i := range manyVariables {
		fmt.Fprintf(&src, "++v%d;", i)
	}
	if w.large, err = w.kb.Compile(src.String()); err != nil {
		return err
	}
	w.small, err = w.kb.Compile("v1 = v2 * 3 + v3 - 2; v1 > 5 => ++v4; s = 'at ' + v1; a[v2 % 16] = v1; f = 0.5 * v2")
	w.peek, w.real = knowledge.NewVar[int64](w.kb, "v4"), knowledge.NewVar[float64](w.kb, "f")
	return err
}

// constant texts, found in the cache.
var constantTexts = []string{
	"++v5", "v6 > 3 => v7 = v6", ".i[0->20) (++.turns)", "v{.i} = v8; v9 += v{.i}", "t = twice(v1)", "#size(a); #type(s)", "s += 'x'; s = 'y'",
}

func (w *worker) text() error {
	_, err := w.kb.Evaluate(constantTexts[w.r.IntN(len(constantTexts))], nil)
	if err != nil {
		return err
	}
	x := int64(w.r.IntN(1_000))
	v, err := w.kb.Evaluate("twice(21)", &knowledge.EvalSettings{Delay: x%2 == 0})
	if err == nil && v.Int() != 42 {
		err = fmt.Errorf("twice(21) is %v", v)
	}
	return err
}

func (w *worker) compiled() error {
	e := w.small
	if w.r.IntN(50) == 0 {
		e = w.large
	}
	_, err := e.Evaluate(nil)
	return err
}

// flood evaluates a text that nobody evaluated before. Its names are old ones.
func (w *worker) flood() error {
	w.n++
	v, err := w.kb.Evaluate(fmt.Sprintf("v10 = %d + %d", w.n, w.id), nil)
	if err == nil && v.Int() != w.n+int64(w.id) {
		err = fmt.Errorf("%d + %d is %v", w.n, w.id, v)
	}
	return err
}

// nested floods the cache of texts inside programs.
func (w *worker) nested() error {
	w.n++
	v, err := w.kb.Evaluate(fmt.Sprintf("#eval('#eval(\"%d + 1\") + %d')", w.n, w.id), nil)
	if err == nil && v.Int() != w.n+1+int64(w.id) {
		err = fmt.Errorf("%d + 1 + %d is %v", w.n, w.id, v)
	}
	return err
}

func (w *worker) set() error {
	w.n++
	w.gate.RLock()
	defer w.gate.RUnlock()
	if err := w.kb.Set(w.own, karl.Int(w.n)); err != nil {
		return err
	}
	if got := w.kb.Get(w.own).Int(); got != w.n {
		return fmt.Errorf("%s is %d after setting it to %d", w.own, got, w.n)
	}
	name := fmt.Sprint("v", w.r.IntN(manyVariables))
	switch w.r.IntN(4) {
	case 0:
		return w.kb.Set(name, karl.String(name))
	case 1:
		return w.kb.SetIndex("a", w.r.IntN(32), karl.Float(1.5))
	case 2:
		return errors.Join(w.real.Set(float64(w.n)), w.real.Add(0.5), w.peek.Add(1))
	}
	return w.kb.Set(name, karl.Int(w.n))
}

func (w *worker) get() error {
	name := fmt.Sprint("v", w.r.IntN(manyVariables))
	w.kb.Get(name)
	w.kb.Lookup(name)
	w.peek.Peek()
	w.real.Peek()
	w.kb.Get("absent")
	switch w.r.IntN(100) {
	case 0:
		last := ""
		for name := range w.kb.All("v1") {
			if name <= last {
				return fmt.Errorf("%s was listed after %s", name, last)
			}
			last = name
		}
	case 1:
		w.kb.Print("{v1} {v{.i}}\n")
	case 2:
		w.kb.Expand("{a} {v{.i}}")
	case 3:
		return w.kb.Send(context.Background())
	}
	return nil
}

func (w *worker) delete() error {
	name := fmt.Sprint("d", w.r.IntN(manyDeleted))
	switch w.r.IntN(8) {
	case 0:
		w.kb.Clear(name)
	case 1:
		w.kb.Delete(fmt.Sprint("v", w.r.IntN(manyVariables)))
	case 2, 3:
		w.kb.Delete(name)
	default:
		w.n++
		return w.kb.Set(name, karl.Int(w.n))
	}
	return nil
}

func (w *worker) define() error { return w.redefine(w.r.IntN(3)) }

// redefine makes the same functions in different ways.
func (s *soak) redefine(way int) error {
	if way == 0 {
		return errors.Join(
			s.kb.DefineExpression("ahead", "pair.function.ping > pair.function.pong"),
			s.kb.DefineExpression("twice", "#arg(0) * 2"))
	}
	return s.kb.Define("twice", func(c *knowledge.Call) (karl.Value, error) {
		if way == 1 {
			return karl.Int(2 * c.Arg(0).Int()), nil
		}
		if err := c.Guard.Set(".twice", karl.Int(c.Arg(0).Int())); err != nil {
			return karl.Value{}, err
		}
		return c.Guard.Evaluate(".twice * 2", nil)
	})
}

func (w *worker) guard() error {
	w.n++
	if w.r.IntN(2) == 0 {
		g := w.kb.Lock()
		defer g.Unlock()
		if err := g.Set("g", karl.Int(w.n)); err != nil {
			return err
		}
		if _, err := g.Run(w.small, nil); err != nil {
			return err
		}
		if got := g.Get("g").Int(); got != w.n {
			return fmt.Errorf("g is %d under the guard that set it to %d", got, w.n)
		}
		return w.peek.In(g).Add(1)
	}
	return w.kb.Update(func(g knowledge.Guard) error {
		v, err := g.Evaluate("g = 1; ++g; ++g", nil)
		if err == nil && v.Int() != 3 {
			err = fmt.Errorf("g counted to %v", v)
		}
		return err
	})
}

// history writes a variable with a history and reads it back: times never go back.
func (w *worker) history() error {
	name := fmt.Sprint("h.", w.r.IntN(histories))
	w.n++
	if _, err := w.kb.Evaluate(name+" = "+w.own, nil); err != nil {
		return err
	}
	list := w.kb.History(name)
	if len(list) > historyLength {
		return fmt.Errorf("%s has %d values, at most %d are kept", name, len(list), historyLength)
	}
	for i := 1; i < len(list); i++ {
		if list[i].Time < list[i-1].Time {
			return fmt.Errorf("the time of %s goes back from %v to %v", name, list[i-1].Time, list[i].Time)
		}
	}
	return nil
}

// limit stops a program that would run for long.
func (w *worker) limit() error {
	const endless = ".e[0->1000000000) (++.endless)"
	if w.r.IntN(2) == 0 {
		_, err := w.kb.Evaluate(endless, &knowledge.EvalSettings{MaxSteps: 1_000})
		if !errors.Is(err, knowledge.ErrLimit) {
			return fmt.Errorf("a program beyond MaxSteps returned %v", err)
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Microsecond)
	defer cancel()
	if _, err := w.kb.EvaluateContext(ctx, endless, nil); !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("a program beyond its time returned %v", err)
	}
	return nil
}

// wait waits for what may come and what will not.
func (s *soak) wait(id int, r *rand.Rand) {
	stopped := errors.New("stopped by the test")
	for s.load.Err() == nil {
		limit := time.Duration(1+r.IntN(8)) * time.Millisecond
		ctx, cancel := context.WithTimeoutCause(context.Background(), limit, stopped)
		settings := &knowledge.WaitSettings{Timeout: limit * time.Duration(1+r.IntN(3)) / 2}
		var err error
		switch r.IntN(6) {
		case 0:
			_, err = s.kb.Wait(ctx, fmt.Sprintf("v5 %% 7 == %d", r.IntN(7)), settings)
		case 1:
			_, err = s.kb.Wait(ctx, "v{.i} == -5", settings)
		case 2:
			_, err = s.kb.Wait(ctx, fmt.Sprintf("++.looks%d && 0", id), settings)
		case 3:
			settings.Poll = 500 * time.Microsecond
			_, err = s.kb.Wait(ctx, fmt.Sprintf("++.looks%d && 0", id), settings)
		case 4:
			_, err = s.kb.Wait(ctx, "twice(v5) % 10 == 4", settings)
		case 5:
			err = s.kb.Await(ctx, func(g knowledge.Guard) (bool, error) { return g.Get("v4").Int()%100 == 0, nil })
		}
		cancel()
		if err != nil && !errors.Is(err, knowledge.ErrTimeout) && !errors.Is(err, stopped) {
			s.fail("waiting: %v", err)
			return
		}
		s.counts[waits].Add(1)
	}
}
