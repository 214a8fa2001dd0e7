package knowledge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// panicOf returns what f panics with, as text.
func panicOf(f func()) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}

func TestGuard(t *testing.T) {
	kb := newBase(t)
	kb.DefineExpression("f", "#arg(0) + 1")
	other := newBase(t)
	foreign, _ := other.Compile("1")
	e, _ := kb.Compile("++n")
	v := knowledge.NewVar[int64](kb, "v")
	g := kb.Lock()
	if err := g.Set("x", karl.Int(3)); err != nil {
		t.Error(err)
	}
	g.SetIndex("a", 1, karl.Int(1))
	g.SetQuality("q", 2)
	if r, err := g.Evaluate("x = f(x)", nil); err != nil || r.Int() != 4 {
		t.Errorf("Guard.Evaluate = %v, %v", r, err)
	}
	for range 3 {
		g.Run(e, nil)
	}
	if _, err := g.Run(foreign, nil); err == nil {
		t.Error("Guard.Run ran an expression of another base")
	}
	v.In(g).Set(5)
	v.In(g).Add(2)
	if got := v.In(g).Get(); got != 7 {
		t.Errorf("v = %d", got)
	}
	if err := knowledge.NewVar[int64](other, "v").In(g).Set(1); err == nil {
		t.Error("a guard wrote a variable of another base")
	}
	if got := g.Expand("{x} {a}"); got != "4 0, 1" {
		t.Errorf("Expand = %q", got)
	}
	n := 0
	for name := range g.All("") {
		g.Get(name)
		n++
	}
	if n != 5 { // .0 a n v x; q has no value
		t.Errorf("%d variables", n)
	}
	if r, ok := g.Lookup("x"); !ok || r.Value.Int() != 4 {
		t.Errorf("Lookup = %v, %v", r, ok)
	}
	g.Define("h", func(*knowledge.Call) (karl.Value, error) { return karl.Int(8), nil })
	g.DefineExpression("k", "h() + 1")
	if r, _ := g.Evaluate("k()", nil); r.Int() != 9 {
		t.Errorf("k() = %v", r)
	}
	g.Clear("x")
	g.Delete("a")
	g.Unlock()
	check(t, kb, map[string]string{"x": "", "a": "", "n": "3", "v": "7"})
	uses := map[string]func(){
		"Get":      func() { g.Get("x") },
		"Set":      func() { g.Set("x", karl.Int(1)) },
		"Evaluate": func() { g.Evaluate("1", nil) },
		"Unlock":   func() { g.Unlock() },
		"All": func() {
			for range g.All("") {
			}
		},
		"Var": func() { v.In(g).Get() },
	}
	for name, use := range uses {
		if got := panicOf(use); !strings.Contains(got, "Guard used after Unlock") {
			t.Errorf("%s of a finished guard: %q", name, got)
		}
	}
	if got := panicOf(func() { knowledge.Guard{}.Get("x") }); !strings.Contains(got, "Guard") {
		t.Errorf("the zero guard: %q", got)
	}
	var kept knowledge.Guard
	kb.Update(func(g knowledge.Guard) error {
		kept = g
		if got := panicOf(g.Unlock); !strings.Contains(got, "lent") {
			t.Errorf("Unlock of a lent guard: %q", got)
		}
		return nil
	})
	if got := panicOf(func() { kept.Get("x") }); !strings.Contains(got, "after Unlock") {
		t.Errorf("a lent guard that was kept: %q", got)
	}
	held := kb.Lock()
	kb.Get("") // no record: takes no lock
	kept = held
	kb2 := newBase(t)
	kb2.Update(func(knowledge.Guard) error { kept.Set("y", karl.Int(1)); return nil }) // another base's lock is no matter
	held.Define("unlocks", func(*knowledge.Call) (karl.Value, error) { held.Unlock(); return karl.Value{}, nil })
	if got := panicOf(func() {
		_, err := held.Evaluate("unlocks()", nil)
		if err != nil {
			panic(err)
		}
	}); !strings.Contains(got, "while") {
		t.Errorf("Unlock while a function runs: %q", got)
	}
	held.Unlock()
	check(t, kb, map[string]string{"y": "1"})
}

func TestUpdateError(t *testing.T) {
	kb := newBase(t)
	boom := errors.New("boom")
	if err := kb.Update(func(g knowledge.Guard) error { g.Set("x", karl.Int(1)); return boom }); err != boom {
		t.Errorf("Update = %v", err)
	}
	if got := panicOf(func() { kb.Update(func(knowledge.Guard) error { panic("mine") }) }); got != "mine" {
		t.Errorf("panic in Update came out as %q", got)
	}
	check(t, kb, map[string]string{"x": "1"})
}

// calls are the methods of a base, each done so that nothing is wrong with it
// but where it is called from.
func calls(kb *knowledge.Base, e *knowledge.Expression, v *knowledge.Var[int64]) map[string]func() {
	p, _ := karl.Parse("", "1")
	texts := 0 // a text compiled before would be found without the lock
	ctx := context.Background()
	return map[string]func(){
		"Get":                        func() { kb.Get("x") },
		"Lookup":                     func() { kb.Lookup("x") },
		"Set":                        func() { kb.Set("x", karl.Int(1)) },
		"SetIndex":                   func() { kb.SetIndex("a", 0, karl.Int(1)) },
		"SetQuality":                 func() { kb.SetQuality("x", 0) },
		"Clear":                      func() { kb.Clear("x") },
		"Delete":                     func() { kb.Delete("x") },
		"Reset":                      func() { kb.Reset() },
		"All":                        func() { kb.All("")(func(string, knowledge.Record) bool { return true }) },
		"Compile":                    func() { texts++; kb.Compile(fmt.Sprint("x + ", texts)) },
		"Bind":                       func() { kb.Bind(p) },
		"Evaluate":                   func() { kb.Evaluate("x", nil) },
		"EvaluateContext":            func() { kb.EvaluateContext(ctx, "x", nil) },
		"Wait":                       func() { kb.Wait(ctx, "1", nil) },
		"Await":                      func() { kb.Await(ctx, func(knowledge.Guard) (bool, error) { return true, nil }) },
		"Define":                     func() { kb.Define("f", nil) },
		"DefineExpression":           func() { kb.DefineExpression("f", "1") },
		"Lock":                       func() { kb.Lock().Unlock() },
		"Update":                     func() { kb.Update(func(knowledge.Guard) error { return nil }) },
		"Expand":                     func() { kb.Expand("{x}") },
		"Print":                      func() { kb.Print("{x}") },
		"WriteTo":                    func() { dump(kb) },
		"Stats":                      func() { kb.Stats() },
		"History":                    func() { kb.History("x") },
		"Resend":                     func() { kb.Resend(ctx, knowledge.Own) },
		"Send":                       func() { kb.Send(ctx) },
		"Close":                      func() { kb.Close() },
		"Expression.Evaluate":        func() { e.Evaluate(nil) },
		"Expression.EvaluateContext": func() { e.EvaluateContext(ctx, nil) },
		"Expression.Wait":            func() { e.Wait(ctx, nil) },
		"NewVar":                     func() { knowledge.NewVar[int64](kb, "w") },
		"Var.Get":                    func() { v.Get() },
		"Var.Set":                    func() { v.Set(1) },
		"Var.Add":                    func() { v.Add(1) },
		"Var.Peek":                   func() { knowledge.NewVar[int64](kb, "u").Peek() },
	}
}

// TestReentry makes every call from inside every kind of function that runs
// under the lock: each must panic and say so, and leave the base usable.
func TestReentry(t *testing.T) {
	for _, opts := range [][]knowledge.Option{nil, {knowledge.WithNullLock()}} {
		kb := newBase(t, opts...)
		kb.Set("x", karl.Int(1))
		e, _ := kb.Compile("x")
		v := knowledge.NewVar[int64](kb, "v")
		for name, call := range calls(kb, e, v) {
			kinds := map[string]func(f func()){
				"function": func(f func()) {
					kb.Define("callback", func(*knowledge.Call) (karl.Value, error) { f(); return karl.Value{}, nil })
					kb.Evaluate("callback()", nil)
				},
				"nested function": func(f func()) {
					kb.Define("callback", func(*knowledge.Call) (karl.Value, error) { f(); return karl.Value{}, nil })
					kb.Define("outer", func(c *knowledge.Call) (karl.Value, error) { return c.Guard.Evaluate("callback()", nil) })
					kb.Evaluate("outer()", nil)
				},
				"Update": func(f func()) { kb.Update(func(knowledge.Guard) error { f(); return nil }) },
				"Lock": func(f func()) {
					g := kb.Lock()
					defer g.Unlock()
					f()
				},
				"wait": func(f func()) {
					kb.Define("callback", func(*knowledge.Call) (karl.Value, error) { f(); return karl.Int(1), nil })
					kb.Wait(t.Context(), "callback()", nil)
				},
			}
			if opts == nil {
				kinds["Await"] = func(f func()) {
					kb.Await(t.Context(), func(knowledge.Guard) (bool, error) { f(); return true, nil })
				}
			}
			for kind, run := range kinds {
				got := panicOf(func() { run(call) })
				if opts != nil && name == "Await" {
					continue // answers ErrNullLock wherever it is called from
				}
				if !strings.Contains(got, "knowledge: ") || !strings.Contains(got, "use the Guard") {
					t.Errorf("%s inside %s: panic %q", name, kind, got)
				}
				if v, err := kb.Evaluate("1 + 1", nil); err != nil || v.Int() != 2 {
					t.Fatalf("after %s inside %s the base evaluates to %v, %v", name, kind, v, err)
				}
			}
		}
	}
}

// TestSinkReentry makes every call from inside a sink, which runs without the lock.
func TestSinkReentry(t *testing.T) {
	var call func()
	var got string
	kb := newBase(t, knowledge.WithSink(func(uint64, []knowledge.Update) {
		if f := call; f != nil {
			call = nil
			got = panicOf(f)
		}
	}))
	e, _ := kb.Compile("++n")
	v := knowledge.NewVar[int64](kb, "v")
	for name, f := range calls(kb, e, v) {
		call, got = f, "not called"
		kb.Evaluate("++sent", nil)
		if name == "Send" || name == "Close" || name == "Resend" {
			if !strings.Contains(got, "called by a sink") {
				t.Errorf("%s inside a sink: panic %q", name, got)
			}
		} else if got != "" {
			t.Errorf("%s inside a sink: panic %q", name, got)
		}
	}
}
