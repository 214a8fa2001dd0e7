package knowledge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// A recorder is a sink that notes what it gets as "clock: name=value …".
type recorder struct {
	mu   sync.Mutex
	sent []string
}

func (r *recorder) sink(clock uint64, updates []knowledge.Update) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	fmt.Fprint(&b, clock, ":")
	for _, u := range updates {
		fmt.Fprintf(&b, " %s=%v", u.Name, u.Value)
		if u.Clock != clock {
			fmt.Fprintf(&b, "(clock %d)", u.Clock)
		}
	}
	r.sent = append(r.sent, b.String())
}

// take returns what was sent since the last take.
func (r *recorder) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := strings.Join(r.sent, "; ")
	r.sent = nil
	return s
}

// TestWhatSends pins which calls send, and what.
func TestWhatSends(t *testing.T) {
	var r recorder
	kb := newBase(t, knowledge.WithSink(r.sink))
	ctx := t.Context()
	v := knowledge.NewVar[int64](kb, "v")
	evaluate := func(src string, s *knowledge.EvalSettings) func() {
		return func() { kb.Evaluate(src, s) }
	}
	for _, c := range []struct {
		what string
		do   func()
		want string
	}{
		{"Set", func() { kb.Set("a", karl.Int(1)) }, ""},
		{"SetIndex", func() { kb.SetIndex("b", 0, karl.Int(1)) }, ""},
		{"Var.Set", func() { v.Set(1) }, ""},
		{"Update", func() { kb.Update(func(g knowledge.Guard) error { return g.Set("u", karl.Int(1)) }) }, ""},
		{"Send", func() { kb.Send(ctx) }, "0: a=1 b=1 v=1 u=1"},
		{"Send of nothing", func() { kb.Send(ctx) }, ""},
		{"Evaluate", evaluate("c = 1; .local = 2; c = 3", nil), "1: c=3"},
		{"Evaluate of nothing", evaluate("c", nil), ""},
		{"Delay", evaluate("d = 1", &knowledge.EvalSettings{Delay: true}), ""},
		{"the next", evaluate("e = 1", nil), "2: d=1 e=1"},
		{"LocalOnly", evaluate("f = 1", &knowledge.EvalSettings{LocalOnly: true}), ""},
		{"SendLocals", evaluate(".l = 1; g = 1", &knowledge.EvalSettings{SendLocals: true}), "3: g=1"},
		{"a failed evaluation", evaluate("h = 1; undefined()", nil), ""},
		{"what it left", evaluate("1", nil), "4: h=1"},
		{"SendOnly", evaluate("i = 1; j = 1; k = 1", &knowledge.EvalSettings{SendOnly: []string{"k", "i", "none"}}), "5: i=1 k=1"},
		{"what it left over", func() { kb.Send(ctx) }, "6: j=1"},
		{"Guard.Evaluate", func() { g := kb.Lock(); g.Evaluate("l = 1", nil); g.Unlock() }, ""},
		{"cleared before it was sent", func() { kb.Clear("l"); kb.Send(ctx) }, ""},
		{"deleted before it was sent", func() { kb.Set("gone", karl.Int(1)); kb.Delete("gone"); kb.Send(ctx) }, ""},
		{"cleared and then written LocalOnly", func() {
			kb.Set("kept", karl.Int(1))
			kb.Clear("kept")
			kb.Evaluate("kept = 2", &knowledge.EvalSettings{LocalOnly: true})
			kb.Send(ctx)
		}, ""},
		{"Wait", func() { kb.Wait(ctx, "++m > 2", nil) }, "7: m=1; 8: m=2; 9: m=3"},
		{"Await", func() {
			kb.Await(ctx, func(g knowledge.Guard) (bool, error) { return true, g.Set("o", karl.Int(1)) })
		}, ""},
		{"all of it", func() { kb.Send(ctx) }, "10: o=1"},
		{"++ and element writes", evaluate("++a; b[1] = 5; c += 1; d++; .i[0->3)(e = .i)", nil), "11: a=2 b=1, 5 c=4 d=2 e=2"},
		{"Reset", func() { kb.Set("p", karl.Int(1)); kb.Reset(); kb.Send(ctx) }, ""},
	} {
		c.do()
		if got := r.take(); got != c.want {
			t.Errorf("%s sent %q, want %q", c.what, got, c.want)
		}
	}
}

func TestManualSend(t *testing.T) {
	var r recorder
	kb := newBase(t, knowledge.WithSink(r.sink), knowledge.WithManualSend())
	eval(t, kb, "a = 1")
	if got := r.take(); got != "" {
		t.Errorf("Evaluate sent %q", got)
	}
	kb.Send(t.Context())
	if got := r.take(); got != "0: a=1" {
		t.Errorf("Send sent %q", got)
	}
}

// TestClock follows the Lamport clock: a write stamps the base's clock, a send
// raises it, and a later write stamps anew.
func TestClock(t *testing.T) {
	var r recorder
	kb := newBase(t, knowledge.WithSink(r.sink))
	clockOf := func(name string) uint64 { rec, _ := kb.Lookup(name); return rec.Clock }
	eval(t, kb, "x = 1")
	eval(t, kb, "y = 1")
	if x, y := clockOf("x"), clockOf("y"); x != 0 || y != 1 {
		t.Errorf("clocks %d and %d, want 0 and 1", x, y)
	}
	eval(t, kb, "#set_clock(100)")
	kb.Set("x", karl.Int(2))
	if x, y := clockOf("x"), clockOf("y"); x != 100 || y != 1 {
		t.Errorf("clocks %d and %d, want 100 and 1", x, y)
	}
	eval(t, kb, "#set_clock(y, 50); z = #get_clock(y); #set_clock(y, 200); y = 3")
	if y := clockOf("y"); y != 200 {
		t.Errorf("clock of y %d, want 200", y)
	}
	check(t, kb, map[string]string{"z": "50"})
}

// TestSendOrder lets many goroutines change and send: values of one variable
// never go back, nothing is lost, and one goroutine at a time is in the sink.
func TestSendOrder(t *testing.T) {
	last := map[string]int64{}
	var inside sync.Mutex
	kb := newBase(t, knowledge.WithSink(func(_ uint64, updates []knowledge.Update) {
		if !inside.TryLock() {
			t.Error("two goroutines in the sink")
			return
		}
		defer inside.Unlock()
		for _, u := range updates {
			if v := u.Value.Int(); v <= last[u.Name] {
				t.Errorf("%s went from %d to %d", u.Name, last[u.Name], v)
			} else {
				last[u.Name] = v
			}
		}
	}))
	var wg sync.WaitGroup
	for i := range 8 {
		e, _ := kb.Compile(fmt.Sprintf("++a%d", i%4))
		wg.Go(func() {
			for j := range 2000 {
				e.Evaluate(nil)
				if j%100 == 0 {
					if err := kb.Send(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	kb.Send(t.Context())
	kb.Close()
	for i := range 4 {
		if got := last[fmt.Sprint("a", i)]; got != 4000 {
			t.Errorf("a%d arrived as %d, want 4000", i, got)
		}
	}
}

// TestSendWaits: Send returns once its marks have left, though another goroutine sends.
func TestSendWaits(t *testing.T) {
	entered, leave := make(chan bool), make(chan bool)
	var got []string
	first := true
	kb := newBase(t, knowledge.WithSink(func(_ uint64, updates []knowledge.Update) {
		if first {
			first = false
			entered <- true
			<-leave
		}
		for _, u := range updates {
			got = append(got, u.Name)
		}
	}))
	go kb.Evaluate("a = 1", nil)
	<-entered
	kb.Set("b", karl.Int(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := kb.Send(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Send with a context that is over: %v", err)
	}
	eval(t, kb, "c = 1") // does not wait
	done := make(chan bool)
	go func() { kb.Send(t.Context()); close(done) }()
	leave <- true
	<-done
	if fmt.Sprint(got) != "[a b c]" {
		t.Errorf("sent %v", got)
	}
}

func TestSinkPanics(t *testing.T) {
	n := 0
	kb := newBase(t, knowledge.WithSink(func(uint64, []knowledge.Update) { n++; panic("no") }))
	eval(t, kb, "a = 1")
	eval(t, kb, "a = 2")
	if n != 2 {
		t.Errorf("the sink was called %d times", n)
	}
}
