package store

import (
	"testing"

	"github.com/madara-go/madara/karl"
)

// TestReadyOnce changes several records that one waiter waits for: it is asked
// once for each hold, and woken only if it wants to be.
func TestReadyOnce(t *testing.T) {
	var s Store
	s.Init(func() int64 { return 1 }, Limits{Variables: 10, Array: 10})
	a, _ := s.Intern("a")
	b, _ := s.Intern("b")
	asked, want := 0, false
	w := NewWaiter()
	w.Ready = func() bool { asked++; return want }
	s.Register(w, []*Record{a, b}, nil)
	for i, write := range []func(){
		func() { s.Set(a, karl.Int(1), 0) },
		func() { s.Set(a, karl.Int(2), 0); s.Set(b, karl.Int(1), 0); s.Set(a, karl.Int(3), 0) },
		func() { s.Clear(a); s.Delete(b) },
		func() { want = true; s.Element(b, 1, karl.Int(1), 0); s.Reset() },
	} {
		asked = 0
		write()
		s.Settle()
		s.Settle()
		if asked != 1 || len(w.Wake) == 1 != want {
			t.Errorf("change %d: asked %d times, woken %v, want once and %v", i, asked, len(w.Wake) == 1, want)
		}
	}
	s.Unregister(w)
	if s.Size() != 0 {
		t.Errorf("%d records are left", s.Size())
	}
}
