package knowledge

import (
	"github.com/madara-go/madara/knowledge/internal/store"
	"iter"

	"github.com/madara-go/madara/karl"
)

// Guard does operations under a lock of the base that is held already. A base
// lends one to functions called from programs, to Update and to Await, valid
// until they return; Lock returns one that is valid until Unlock. A Guard is a
// small value, to be used on the goroutine that got it. Every method panics once
// the hold it belongs to is over; a lent Guard that was kept is not told from a
// fresh one before that. There is no way to wait, send or close with the
// lock held, so none of these methods exists here.
type Guard struct {
	b        *Base
	lease    uint64
	borrowed bool
}

// base returns the base if the guard is valid.
func (g Guard) base() *Base {
	if g.b == nil {
		misuse("Guard used that no base gave out")
	}
	if g.lease != g.b.lease.Load() {
		misuse("Guard used after Unlock")
	}
	return g.b
}

// Unlock gives the lock back, and panics on a Guard that was lent, or while a
// function that was lent one runs.
func (g Guard) Unlock() {
	b := g.base()
	switch {
	case g.borrowed:
		misuse("Guard.Unlock on a guard that was lent; it ends when the function returns")
	case b.callouts > 0 || b.env.Hosts > 0:
		misuse("Guard.Unlock while %s runs under the lock", b.lentTo)
	}
	b.unlock()
	b.printer.drain()
}

// Get is Base.Get.
func (g Guard) Get(name string) karl.Value {
	b := g.base()
	b.env.TrackName(name)
	if r := b.store.Lookup(name); r != nil {
		return r.Value()
	}
	return karl.Value{}
}

// Lookup is Base.Lookup.
func (g Guard) Lookup(name string) (Record, bool) {
	b := g.base()
	b.env.TrackName(name)
	if r := b.store.Lookup(name); r != nil {
		return lookup(r)
	}
	return Record{}, false
}

// Set is Base.Set.
func (g Guard) Set(name string, v karl.Value) error {
	b := g.base()
	return b.set(b.store.Lookup(name), name, v)
}

// SetIndex is Base.SetIndex.
func (g Guard) SetIndex(name string, i int, v karl.Value) error { return g.base().setIndex(name, i, v) }

// History is Base.History.
func (g Guard) History(name string) []Record {
	b := g.base()
	b.env.TrackName(name)
	return b.history(name)
}

// SetQuality is Base.SetQuality.
func (g Guard) SetQuality(name string, quality uint32) error {
	return g.base().setQuality(name, quality)
}

// Clear is Base.Clear.
func (g Guard) Clear(name string) bool { return g.base().clear(name) }

// Delete is Base.Delete.
func (g Guard) Delete(name string) bool { return g.base().delete(name) }

// All is Base.All; the loop's body runs under the lock and may use the guard.
func (g Guard) All(prefix string) iter.Seq2[string, Record] {
	return func(yield func(string, Record) bool) {
		b := g.base()
		b.env.TrackPrefix(prefix)
		all := b.all(prefix)
		for i := range all {
			if !yield(all[i].Name, all[i].Record) {
				return
			}
		}
	}
}

// Evaluate is Base.Evaluate; what the program changes is marked, and sent when
// the call that holds the lock sends. Before, After and Delay do nothing here.
func (g Guard) Evaluate(src string, s *EvalSettings) (karl.Value, error) {
	b := g.base()
	if e := b.texts.get(src); e != nil {
		return g.Run(e, s)
	}
	tree, err := b.parse(src)
	if err != nil {
		return karl.Value{}, err
	}
	e, err := b.bind(tree, src)
	if err != nil {
		return karl.Value{}, err
	}
	return g.Run(e, s)
}

// Run evaluates a compiled expression of the same base, as Evaluate does a text.
func (g Guard) Run(e *Expression, s *EvalSettings) (karl.Value, error) {
	b := g.base()
	if e.base != b {
		return karl.Value{}, store.Errorf(ErrName, "expression %q belongs to another base", e.head())
	}
	if b.closed {
		return karl.Value{}, ErrClosed
	}
	b.env.TrackAll(e.prog.Reads)
	v, fail := s.run(b.env, e.prog, nil)
	if fail != nil {
		return karl.Value{}, b.failure(fail)
	}
	return v, nil
}

// Define is Base.Define.
func (g Guard) Define(name string, f Func) error { return g.base().define(name, f) }

// DefineExpression is Base.DefineExpression.
func (g Guard) DefineExpression(name, src string) error {
	tree, err := karl.Parse("", src)
	if err != nil {
		return err
	}
	return g.base().defineExpression(name, tree)
}

// Expand is Base.Expand.
func (g Guard) Expand(statement string) string {
	s, err := g.base().env.Expand(statement)
	if err != nil {
		return ""
	}
	return s
}

// Print is Base.Print; the text is written once the lock is free.
func (g Guard) Print(statement string) {
	b := g.base()
	if s, err := b.env.Expand(statement); err == nil {
		b.print(0, s)
	}
}
