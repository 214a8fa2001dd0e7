package knowledge_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// TestOneExpressionManyGoroutines evaluates one expression everywhere at once.
func TestOneExpressionManyGoroutines(t *testing.T) {
	kb := newBase(t)
	e, err := kb.Compile("++n; s = 'a' + n; a[n % 8] = n; v{.i} += 1")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	const goroutines, rounds = 64, 200
	for range goroutines {
		wg.Go(func() {
			for range rounds {
				if _, err := e.Evaluate(nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	check(t, kb, map[string]string{"n": fmt.Sprint(goroutines * rounds), "v": fmt.Sprint(goroutines * rounds)})
}

// TestAllCallsAtOnce makes all public calls from many goroutines, for the race
// detector and for deadlocks.
func TestAllCallsAtOnce(t *testing.T) {
	kb := newBase(t, knowledge.WithOutput(io.Discard), knowledge.WithSink(func(uint64, []knowledge.Update) {}),
		knowledge.WithLimits(knowledge.Limits{Variables: 5000}))
	kb.Define("host", func(c *knowledge.Call) (karl.Value, error) { return c.Guard.Evaluate("x + 1", nil) })
	shared, _ := kb.Compile("++x; host(); a[x % 16] = x; s = 'n' + x")
	i, f := knowledge.NewVar[int64](kb, "x"), knowledge.NewVar[float64](kb, "f")
	calls := []func(n int){
		func(int) { shared.Evaluate(nil) },
		func(n int) { kb.Evaluate(fmt.Sprintf("v%d = x; v{.i}", n%50), nil) },
		func(n int) { kb.Set(fmt.Sprint("w", n%50), karl.Int(int64(n))) },
		func(n int) { kb.Get(fmt.Sprint("w", n%50)); kb.Get("a"); kb.Get("s") },
		func(n int) { kb.Delete(fmt.Sprint("w", n%50)); kb.Clear("s") },
		func(int) { kb.Lookup("x"); i.Peek(); f.Peek() },
		func(int) { i.Add(1); f.Add(0.5); f.Set(float64(i.Get())) },
		func(int) {
			for name, r := range kb.All("v") {
				if r.Value.String() == name {
					t.Errorf("%s holds its name", name)
				}
			}
		},
		func(n int) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			kb.Wait(ctx, fmt.Sprintf("x %% 7 == %d", n%7), nil)
			kb.Wait(ctx, "v{.i} == 5", &knowledge.WaitSettings{Poll: time.Millisecond / 4, Timeout: time.Millisecond})
			kb.Await(ctx, func(g knowledge.Guard) (bool, error) { return g.Get("x").Int()%5 == 0, nil })
		},
		func(n int) {
			kb.DefineExpression("g", fmt.Sprint("#arg(0) + ", n))
			kb.Evaluate("y = g(x)", &knowledge.EvalSettings{Delay: true, Before: "{x}", After: "{y}\n"})
		},
		func(int) {
			g := kb.Lock()
			g.Set("q", karl.Int(1))
			i.In(g).Add(1)
			g.Run(shared, nil)
			g.Unlock()
			kb.Update(func(g knowledge.Guard) error { return g.SetIndex("a", 3, karl.Float(0.5)) })
		},
		func(int) { kb.Send(t.Context()); kb.Print("{x}\n"); kb.Expand("{a} {v{.i}}") },
		func(n int) {
			if n%50 == 0 {
				kb.Reset()
			}
		},
	}
	var wg sync.WaitGroup
	for k := range 64 {
		wg.Go(func() {
			for n := range 60 {
				calls[(k+n)%len(calls)](n)
			}
		})
	}
	wg.Wait()
	kb.Close()
}
