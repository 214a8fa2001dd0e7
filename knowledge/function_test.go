package knowledge_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

func TestFunctions(t *testing.T) {
	kb := newBase(t)
	e, err := kb.Compile("r = f(1, 'two', x)")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Evaluate(nil); !errors.Is(err, knowledge.ErrUndefined) {
		t.Errorf("calling an undefined function: %v", err)
	}
	kb.Define("f", func(c *knowledge.Call) (karl.Value, error) {
		if c.Name != "f" || len(c.Args) != 3 || c.Arg(0).Int() != 1 || c.Arg(1).String() != "two" || c.Arg(2).Exists() || c.Arg(3).Exists() {
			t.Errorf("call %s(%v)", c.Name, c.Args)
		}
		c.Guard.Set("seen", c.Arg(1))
		return c.Guard.Evaluate("seen + '!'", nil)
	})
	e.Evaluate(nil)
	check(t, kb, map[string]string{"r": "two!", "seen": "two", ".0": "1", ".1": "two", ".2": ""})
	kb.DefineExpression("f", "#args() + #arg(0)")
	e.Evaluate(nil)
	check(t, kb, map[string]string{"r": "4"})
	kb.Define("f", nil)
	if _, err := e.Evaluate(nil); !errors.Is(err, knowledge.ErrUndefined) {
		t.Errorf("calling a function that was taken away: %v", err)
	}
	for _, name := range []string{"", "1f", ".5", "a b", "a{b}", "true", "nan", "#f"} {
		if err := kb.Define(name, nil); !errors.Is(err, knowledge.ErrName) {
			t.Errorf("Define(%q): %v", name, err)
		}
	}
}

func TestFunctionErrors(t *testing.T) {
	kb := newBase(t)
	boom := errors.New("boom")
	kb.Define("fails", func(*knowledge.Call) (karl.Value, error) { return karl.Value{}, boom })
	kb.Define("panics", func(*knowledge.Call) (karl.Value, error) { panic(boom) })
	kb.Define("exits", func(*knowledge.Call) (karl.Value, error) { runtime.Goexit(); return karl.Value{}, nil })
	kb.DefineExpression("outer", "a = 1;\n  fails()")
	_, err := kb.Evaluate("before = 1;\n1 + outer();\nafter = 1", nil)
	var failed *knowledge.EvalError
	if !errors.As(err, &failed) || !errors.Is(err, boom) {
		t.Fatalf("error %v", err)
	}
	if got, want := err.Error(), "outer():2:3: boom (called at 2:5)"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	if got, want := failed.Snippet(), "  fails()\n  ^^^^^^^"; got != want {
		t.Errorf("snippet\n%s\nwant\n%s", got, want)
	}
	check(t, kb, map[string]string{"before": "1", "a": "1", "after": ""})
	if _, err := kb.Evaluate("panics(); after = 1", nil); !errors.Is(err, boom) || !strings.Contains(err.Error(), "panicked") {
		t.Errorf("a panic gave %v", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		kb.Evaluate("exits()", nil)
	}()
	<-done
	check(t, kb, map[string]string{"after": ""})
	if v := eval(t, kb, "outer2 = 5"); v.Int() != 5 {
		t.Errorf("after a function ended its goroutine: %v", v)
	}
}

func TestCallDepth(t *testing.T) {
	kb := newBase(t)
	kb.DefineExpression("r", "++.n; r()")
	kb.DefineExpression("counted", "++.m; (.m < 250) => counted()")
	kb.DefineExpression("wide", "wide()"+strings.Repeat(" + 1", 40_000))
	kb.Define("host", func(c *knowledge.Call) (karl.Value, error) { return c.Guard.Evaluate("host()", nil) })
	eval(t, kb, "counted()")
	check(t, kb, map[string]string{".m": "250"})
	for _, src := range []string{"r()", "wide()", "host()", ".t = '#eval(.t)'; #eval(.t)"} {
		if _, err := kb.Evaluate(src, nil); !isLimit(err) {
			t.Errorf("%s: %v", src, err)
		}
		if v := eval(t, kb, "1 + 1"); v.Int() != 2 {
			t.Fatalf("base unusable after %s", src)
		}
	}
	check(t, kb, map[string]string{".n": "256"})
}

func TestSteps(t *testing.T) {
	kb := newBase(t)
	kb.DefineExpression("f", ".j[0->10)(++.f)")
	kb.Define("nested", func(c *knowledge.Call) (karl.Value, error) {
		return c.Guard.Evaluate(".k[0->1000000)(++.g)", &knowledge.EvalSettings{MaxSteps: 1 << 40})
	})
	for _, src := range []string{".i[0-0>1)(1)", ".i[0->1000000000)(++.x)", ".i[0->1000000000)(;)", ".i[0->1000000)(f())",
		"nested()", ".i[0->1000000000)(#eval('++.x'))", "x = 1; y = 2; .i[0->1000000)(x; y; 3)"} {
		_, err := kb.Evaluate(src, &knowledge.EvalSettings{MaxSteps: 1000})
		if !isLimit(err) {
			t.Errorf("%s with 1,000 steps: %v", src, err)
		}
	}
	if got := kb.Get(".x").Int(); got > 2000 {
		t.Errorf("%d turns with 1,000 steps", got)
	}
	if _, err := kb.Evaluate(".i[0->900)(++.y)", &knowledge.EvalSettings{MaxSteps: 1000}); err != nil {
		t.Error(err)
	}
	if _, err := kb.Evaluate(".i[0->2000)(++.y)", nil); err != nil {
		t.Errorf("a limit of steps outlived its evaluation: %v", err)
	}
}

func TestEvaluateContext(t *testing.T) {
	kb := newBase(t, knowledge.WithSleep())
	cause := errors.New("operator said stop")
	for _, src := range []string{".i[0->1000000000000)(++.x)", "#sleep(3600)", "spin()"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		kb.DefineExpression("spin", ".j[0-0>1)(;)")
		time.AfterFunc(10*time.Millisecond, func() { cancel(cause) })
		_, err := kb.EvaluateContext(ctx, src, nil)
		if !errors.Is(err, cause) {
			t.Errorf("%s: %v", src, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := kb.EvaluateContext(ctx, "after = 1", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over: %v", err)
	}
	check(t, kb, map[string]string{"after": ""})
	kb.Define("ctx", func(c *knowledge.Call) (karl.Value, error) { return karl.Bool(c.Context().Err() != nil), nil })
	if v := eval(t, kb, "ctx()"); v.Int() != 0 {
		t.Error("the context of a call without one is over")
	}
}

func TestArrayAndStringLimits(t *testing.T) {
	kb := newBase(t, knowledge.WithLimits(knowledge.Limits{Array: 10, String: 100}))
	for _, src := range []string{"x[9] = 1", "y = 'a'; .i[0->6)(y += y)", "z = ['1', 2]"} {
		eval(t, kb, src)
	}
	for _, src := range []string{
		"x[10] = 1", "x[2000000000] = 1", "x[-1] = 1", "++x[10]", "x[99] += 1",
		".i[0->10)(y += y)", "#to_string(x, '                    ')", "#expand('{y}{y}')", "y + x + x + x + x + x",
		"w{y}{y} = 1", "#buffer(big)",
	} {
		before := dump(kb)
		kb.Set("big", karl.Ints(make([]int64, 13)))
		_, err := kb.Evaluate(src, nil)
		var failed *knowledge.EvalError
		if !errors.As(err, &failed) || !failed.Pos().IsValid() || !(isLimit(err) || errors.Is(err, knowledge.ErrIndex)) {
			t.Errorf("%s: %v", src, err)
		}
		kb.Delete("big")
		if after := dump(kb); src[0] == 'x' && after != before {
			t.Errorf("%s left\n%s\nof\n%s", src, after, before)
		}
	}
	unlimited := newBase(t)
	if _, err := unlimited.Evaluate("x[2000000000] = 1", nil); !errors.Is(err, knowledge.ErrIndex) || !strings.HasPrefix(err.Error(), "1:1: ") {
		t.Errorf("x[2000000000] = 1: %v", err)
	}
}

func TestPrint(t *testing.T) {
	var out bytes.Buffer
	kb := newBase(t, knowledge.WithOutput(&out))
	kb.Define("p", func(c *knowledge.Call) (karl.Value, error) { c.Guard.Print("{x}."); return karl.Value{}, nil })
	kb.Evaluate("x = 100; #print('{x}% %d\n'); p(); #print('quiet', 5)", &knowledge.EvalSettings{Before: "before {x}\n", After: "\nafter {x}\n"})
	if got, want := out.String(), "before \n100% %d\n100.\nafter 100\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	out.Reset()
	eval(t, kb, ".i[0->200000)(#print('0123456789'))")
	if got := out.Len(); got != 2_000_000 {
		t.Errorf("printed %d bytes, want 2,000,000", got)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestPrintCallsBase lets a writer use the base, which must not deadlock.
func TestPrintCallsBase(t *testing.T) {
	var kb *knowledge.Base
	var lines []string
	kb = newBase(t, knowledge.WithOutput(writerFunc(func(p []byte) (int, error) {
		lines = append(lines, string(p))
		if len(lines) < 3 {
			kb.Evaluate("++n; #print('again {n}')", nil)
		}
		if len(lines) == 3 {
			panic("writer failed")
		}
		return len(p), nil
	})))
	eval(t, kb, "n = 0; #print('first')")
	if got := fmt.Sprint(lines); got != "[first again 1 again 2]" {
		t.Errorf("wrote %s", got)
	}
	eval(t, kb, "#print('still works')")
}

// TestGoexit lets functions end their goroutine in every kind of hold: the lock
// must be free afterwards, and given back once.
func TestGoexit(t *testing.T) {
	kb := newBase(t)
	kb.Define("exits", func(*knowledge.Call) (karl.Value, error) { runtime.Goexit(); return karl.Value{}, nil })
	kb.Define("nested", func(c *knowledge.Call) (karl.Value, error) { return c.Guard.Evaluate("1 + exits()", nil) })
	exits := func(g knowledge.Guard) error { _, err := g.Evaluate("exits()", nil); return err }
	for name, f := range map[string]func(){
		"Evaluate": func() { kb.Evaluate("exits()", nil) },
		"nested":   func() { kb.Evaluate("1 + nested()", nil) },
		"limited":  func() { kb.Evaluate("nested()", &knowledge.EvalSettings{MaxSteps: 100}) },
		"Update":   func() { kb.Update(exits) },
		"Wait":     func() { kb.Wait(t.Context(), "nested()", nil) },
		"Await":    func() { kb.Await(t.Context(), func(g knowledge.Guard) (bool, error) { return true, exits(g) }) },
		"Lock": func() {
			g := kb.Lock()
			defer g.Unlock()
			exits(g)
		},
		"twice in Lock": func() {
			g := kb.Lock()
			defer g.Unlock()
			defer g.Evaluate("x = 1", nil)
			g.Evaluate("nested()", nil)
		},
	} {
		done := make(chan bool)
		go func() {
			defer close(done)
			f()
			t.Errorf("%s returned", name)
		}()
		<-done
		if v := eval(t, kb, ".i[0->10)(++n); f = 5"); v.Int() < 5 {
			t.Errorf("after %s the base evaluates to %v", name, v)
		}
		if _, err := kb.Evaluate(".i[0->100)(1)", &knowledge.EvalSettings{MaxSteps: 50}); !isLimit(err) {
			t.Errorf("after %s: %v", name, err)
		}
	}
	check(t, kb, map[string]string{"x": "1"})
}

// TestCancelSlowFunctions: a context that ends while functions take their time
// ends the program after the one that runs, and a wait's time ends it too.
func TestCancelSlowFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kb := newBase(t)
		kb.Define("slow", func(*knowledge.Call) (karl.Value, error) { time.Sleep(10 * time.Millisecond); return karl.Int(1), nil })
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		start := time.Now()
		if _, err := kb.EvaluateContext(ctx, ".i[0->300)(slow())", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("evaluation: %v", err)
		}
		if took := time.Since(start); took > 60*time.Millisecond {
			t.Errorf("took %v", took)
		}
		start = time.Now()
		_, err := kb.Wait(t.Context(), ".i[0->200)(slow()) && 0", &knowledge.WaitSettings{Timeout: 50 * time.Millisecond})
		if took := time.Since(start); !errors.Is(err, knowledge.ErrTimeout) || took > 60*time.Millisecond {
			t.Errorf("wait: %v after %v", err, took)
		}
		if v, err := kb.Wait(t.Context(), "++.tries && 0", &knowledge.WaitSettings{Timeout: -time.Second}); !errors.Is(err, knowledge.ErrTimeout) || v.Int() != 0 {
			t.Errorf("wait whose time has passed: %v, %v", v, err)
		}
		check(t, kb, map[string]string{".tries": "1"})
	})
}

// TestAwaitNewNames: listing names is a look at those that come to be.
func TestAwaitNewNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kb := newBase(t)
		for i := range 3 {
			time.AfterFunc(time.Duration(i+1)*time.Second, func() { kb.Set(fmt.Sprint("robot.", i), karl.Int(1)) })
		}
		start := time.Now()
		err := kb.Await(t.Context(), func(g knowledge.Guard) (bool, error) {
			n := 0
			for range g.All("robot.") {
				n++
			}
			return n == 3, nil
		})
		if took := time.Since(start); err != nil || took != 3*time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// TestFailedOperationsLeaveNothing: what fails makes no variable.
func TestFailedOperationsLeaveNothing(t *testing.T) {
	kb := newBase(t, knowledge.WithLimits(knowledge.Limits{Variables: 20}))
	for i := range 100 {
		kb.Set(fmt.Sprint("a", i), karl.Value{})
		kb.SetIndex(fmt.Sprint("b", i), -1, karl.Int(1))
		kb.Set(".n", karl.Int(int64(i)))
		kb.Evaluate("c{.n}[-1] = 5", nil)
	}
	if err := kb.Set("room", karl.Int(1)); err != nil {
		t.Error(err)
	}
}

// TestSinkGoexit: a sink that ends its goroutine holds nobody up.
func TestSinkGoexit(t *testing.T) {
	first := true
	var got []string
	kb := newBase(t, knowledge.WithSink(func(_ uint64, updates []knowledge.Update) {
		if first {
			first = false
			runtime.Goexit()
		}
		for _, u := range updates {
			got = append(got, u.Name)
		}
	}))
	done := make(chan bool)
	go func() {
		defer close(done)
		kb.Evaluate("a = 1", nil)
	}()
	<-done
	eval(t, kb, "b = 1")
	if fmt.Sprint(got) != "[a b]" { // what the first round took is marked again
		t.Errorf("sent %v", got)
	}
}
