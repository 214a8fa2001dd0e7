package knowledge_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// TestTimedWait is the reference's timed wait, on a machine with nothing else to do.
func TestTimedWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		kb := newBase(t, knowledge.WithOutput(&out))
		start := time.Now()
		v, err := kb.Wait(t.Context(), "++.count && 0", &knowledge.WaitSettings{
			EvalSettings: knowledge.EvalSettings{
				Before: "WAIT STARTED: Waiting for 10 seconds.\n",
				After:  "WAIT ENDED: Number of executed waits was {.count}.\n",
			},
			Poll:    time.Millisecond,
			Timeout: 10 * time.Second,
		})
		if !errors.Is(err, knowledge.ErrTimeout) || v.IsTrue() {
			t.Errorf("wait = %v, %v", v, err)
		}
		if took := time.Since(start); took < 10*time.Second || took > 10*time.Second+time.Millisecond {
			t.Errorf("took %v", took)
		}
		n := kb.Get(".count").Int()
		if n < 10_000 || n > 10_001 {
			t.Errorf("%d evaluations", n)
		}
		want := fmt.Sprintf("WAIT STARTED: Waiting for 10 seconds.\nWAIT ENDED: Number of executed waits was %d.\n", n)
		if out.String() != want {
			t.Errorf("printed %q, want %q", out.String(), want)
		}
	})
}

// TestWaitEndings tells the ways apart in which a wait ends.
func TestWaitEndings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kb := newBase(t)
		kb.DefineExpression("fails", "x = [1]; x[-1] = 1")
		cause := errors.New("operator")
		start := time.Now()
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(cause) })
		time.AfterFunc(2*time.Second, func() { kb.Set("go", karl.Float(0.5)) })
		for _, c := range []struct {
			src   string
			s     *knowledge.WaitSettings
			value string
			err   error
			after time.Duration
		}{
			{"5", nil, "5", nil, 0},
			{"'yes'", nil, "yes", nil, 0}, // truth, not the integer
			{"stop", &knowledge.WaitSettings{Timeout: time.Second}, "", knowledge.ErrTimeout, time.Second},
			{"#rand_int(0, 0)", &knowledge.WaitSettings{Poll: 300 * time.Millisecond, Timeout: time.Second / 2}, "0", knowledge.ErrTimeout, time.Second * 3 / 2},
			{"go", nil, "0.500000", nil, 2 * time.Second},
			{"fails()", nil, "", knowledge.ErrIndex, 2 * time.Second},
			{"stop", nil, "", cause, 3 * time.Second},
		} {
			v, err := kb.Wait(ctx, c.src, c.s)
			if v.String() != c.value || !errors.Is(err, c.err) || (c.err == nil && err != nil) {
				t.Errorf("waiting for %s: %q, %v; want %q, %v", c.src, v, err, c.value, c.err)
			}
			if at := time.Since(start); at != c.after {
				t.Errorf("waiting for %s ended at %v, want %v", c.src, at, c.after)
			}
		}
		if _, err := kb.Wait(t.Context(), "1 +", nil); err == nil {
			t.Error("waiting for a text that cannot be parsed")
		}
		go func() { time.Sleep(time.Second); kb.Close() }()
		if _, err := kb.Wait(t.Context(), "stop", nil); !errors.Is(err, knowledge.ErrClosed) {
			t.Errorf("waiting on a base that is closed: %v", err)
		}
	})
}

// TestWaitWakes has a wait for each way an expression can depend on what changes,
// and checks that each ends at the moment of the change, not at a poll.
func TestWaitWakes(t *testing.T) {
	var long bytes.Buffer
	for i := range 300 {
		fmt.Fprintf(&long, "a%d && ", i)
	}
	long.WriteString("x")
	for _, c := range []struct {
		src, change string
	}{
		{"x == 5", "x = 5"},
		{"x > 2 && y", "x = 3; y = 1"},
		{"a[2]", "a[2] = 1"},
		{"v{.i}", "v3 = 1"},
		{"v{.i}", ".i = 4; v4 = 1"},
		{"#expand('{v{.i}}') == 'yes'", "v3 = 'yes'"},
		{"f()", "hidden = 1"},
		{"#eval('deep + 0')", "deep = 2"},
		{"looks()", "seen = 1"},
		{long.String(), ".i[0->300)(a{.i} = 1); x = 1"},
		{"!x", "#clear_var('x')"},
		{"!x", "#delete_var('x')"},
		{".tries += 1 ;> go", "go = 100000"},
	} {
		synctest.Test(t, func(t *testing.T) {
			kb := newBase(t)
			eval(t, kb, ".i = 3")
			if c.src == "!x" {
				eval(t, kb, "x = 1")
			}
			kb.DefineExpression("f", "hidden")
			kb.Define("looks", func(call *knowledge.Call) (karl.Value, error) { return call.Guard.Get("seen"), nil })
			at := 1234567 * time.Microsecond
			start := time.Now()
			time.AfterFunc(at, func() { eval(t, kb, c.change) })
			s := &knowledge.WaitSettings{Timeout: time.Hour}
			if _, err := kb.Wait(t.Context(), c.src, s); err != nil {
				t.Errorf("%.40s: %v", c.src, err)
			}
			if took := time.Since(start); took < at || took > at+time.Millisecond {
				t.Errorf("%.40s woke after %v, want %v", c.src, took, at)
			}
		})
	}
}

// TestWaitGrid: an expression with effects and a Poll is evaluated on the grid,
// whatever changes.
func TestWaitGrid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kb := newBase(t)
		done := make(chan bool)
		go func() {
			defer close(done)
			for range 1000 {
				time.Sleep(time.Millisecond)
				kb.Set("x", karl.Int(0))
			}
		}()
		kb.Wait(t.Context(), "++.n ;> x", &knowledge.WaitSettings{Poll: 100 * time.Millisecond, Timeout: 950 * time.Millisecond})
		<-done
		check(t, kb, map[string]string{".n": "10"})
	})
}

// TestImpureWaitsDoNotSpin: two waits that change what the other reads.
func TestImpureWaitsDoNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kb := newBase(t)
		var wg sync.WaitGroup
		for _, src := range []string{"++.n ;> a = b + 1 ;> 0 * a", "++.n ;> b = a + 1 ;> 0 * b"} {
			wg.Go(func() { kb.Wait(t.Context(), src+" > 1000000000", &knowledge.WaitSettings{Timeout: time.Second}) })
		}
		wg.Wait()
		if n := kb.Get(".n").Int(); n < 100 || n > 2100 {
			t.Errorf("%d evaluations in a second", n)
		}
	})
}

// TestWaitFailsByWriter: what a writer makes of the expression is the waiter's error.
func TestWaitFailsByWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kb := newBase(t)
		time.AfterFunc(time.Second, func() { kb.Clear("x") })
		kb.Set("x", karl.Int(0))
		_, err := kb.Wait(t.Context(), "x == 1", &knowledge.WaitSettings{EvalSettings: knowledge.EvalSettings{Strict: true}})
		if !errors.Is(err, knowledge.ErrMissing) {
			t.Errorf("wait: %v", err)
		}
	})
}

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kb := newBase(t)
		boom := errors.New("boom")
		if err := kb.Await(t.Context(), func(knowledge.Guard) (bool, error) { return false, boom }); err != boom {
			t.Errorf("Await = %v", err)
		}
		calls := 0
		time.AfterFunc(time.Second, func() { kb.Set("unrelated", karl.Int(1)) })
		time.AfterFunc(2*time.Second, func() { kb.Set("a.1", karl.Int(1)) })
		time.AfterFunc(3*time.Second, func() { kb.Set("b", karl.Int(1)) })
		start := time.Now()
		err := kb.Await(t.Context(), func(g knowledge.Guard) (bool, error) {
			calls++
			g.Set("calls", karl.Int(int64(calls))) // its own write does not wake it
			return g.Get("a.1").IsTrue() && g.Get("b").IsTrue(), nil
		})
		if err != nil || time.Since(start) != 3*time.Second || calls != 3 {
			t.Errorf("Await = %v after %v and %d calls", err, time.Since(start), calls)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := kb.Await(ctx, func(g knowledge.Guard) (bool, error) { return g.Get("never").IsTrue(), nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Await = %v", err)
		}
		if got := panicOf(func() {
			kb.Await(t.Context(), func(knowledge.Guard) (bool, error) { panic("mine") })
		}); got != "mine" {
			t.Errorf("panic %q", got)
		}
		eval(t, kb, "1")
	})
	kb := newBase(t, knowledge.WithNullLock())
	if err := kb.Await(t.Context(), nil); !errors.Is(err, knowledge.ErrNullLock) {
		t.Errorf("Await without a lock: %v", err)
	}
}

func TestNullLockWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kb := newBase(t, knowledge.WithNullLock())
		v, err := kb.Wait(t.Context(), "++n > 5", &knowledge.WaitSettings{Poll: time.Second})
		if err != nil || v.Int() != 1 {
			t.Errorf("wait = %v, %v", v, err)
		}
		check(t, kb, map[string]string{"n": "6"})
	})
}

// TestHandshakes passes a turn to and fro between pairs of goroutines, with
// delays of up to 4 µs: no wake-up may be lost.
func TestHandshakes(t *testing.T) {
	const pairs = 10
	rounds := 100_000 / pairs
	if testing.Short() {
		rounds = 1000
	}
	kb := newBase(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for pair := range pairs {
		eval(t, kb, fmt.Sprintf("turn%d = 0", pair)) // before anybody waits for it
	}
	var wg sync.WaitGroup
	for side := range uint64(2 * pairs) {
		turn := fmt.Sprint("turn", side/2)
		wg.Go(func() {
			mine, err := kb.Compile(fmt.Sprintf("%s %% 2 == %d", turn, side%2))
			if err != nil {
				t.Error(err)
				return
			}
			random := rand.New(rand.NewPCG(1, side))
			for range rounds / 2 {
				if _, err := mine.Wait(ctx, nil); err != nil {
					t.Errorf("%s = %v: %v", turn, kb.Get(turn), err)
					cancel()
					return
				}
				delay := time.Duration(random.IntN(4000))
				for began := time.Now(); time.Since(began) < delay; {
				}
				eval(t, kb, "++"+turn)
			}
		})
	}
	wg.Wait()
	for pair := range pairs {
		if n := kb.Get(fmt.Sprint("turn", pair)).Int(); n != int64(rounds) {
			t.Errorf("pair %d made %d turns, want %d", pair, n, rounds)
		}
	}
}

// TestManyWaiters wakes one of many waiters on one variable, and then all.
func TestManyWaiters(t *testing.T) {
	kb := newBase(t)
	const n = 2000
	woken := make(chan int, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if _, err := kb.Wait(t.Context(), fmt.Sprintf("x == %d || all", i+1), nil); err != nil {
				t.Error(err)
			}
			woken <- i
		})
	}
	for i := range 10 {
		kb.Set("x", karl.Int(int64(i*100)+1))
		if got := <-woken; got != i*100 {
			t.Errorf("waiter %d woke, want %d", got, i*100)
		}
	}
	kb.Set("all", karl.Int(1))
	wg.Wait()
}

// TestWaitLeavesNothing: names that only a wait looked at go with it.
func TestWaitLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kb := newBase(t, knowledge.WithLimits(knowledge.Limits{Variables: 20}))
		for i := range 100 {
			kb.Set(".i", karl.Int(int64(i)))
			kb.Wait(t.Context(), "v{.i}", &knowledge.WaitSettings{Timeout: time.Second})
			kb.Await(t.Context(), func(g knowledge.Guard) (bool, error) { g.Get(fmt.Sprint("w", i)); return true, nil })
		}
		if err := kb.Set("room", karl.Int(1)); err != nil {
			t.Error(err)
		}
	})
}

// TestWriterTests: conditions that are made without going to the waiter must
// not keep one asleep.
func TestWriterTests(t *testing.T) {
	for _, c := range []struct{ src, not, ends string }{
		{"x == 5", "x = 4", "x = 5"},
		{"x == 5", "x = 'four'", "x = 5.0"},
		{"x != 0", "x = 0", "x = -1"},
		{"x < 3 && x > 1", "x = 1", "x = 2"},
		{"x >= 3 && y <= 2 && z", "x = 3; y = 2", "z = 1"},
		{"x == 5 && s + 'a' == 'ba'", "x = 5; s = 'c'", "s = 'b'"},
		{"x == 0", "x = 1", "#clear_var('x')"},
		{"(x > 1) && (y)", "x = 2", "y = [1]"},
		{"x == 5 || y", "x = 4", "y = 1"},
		{"!(x == 5)", "x = 5", "x = 6"},
		{"x == '5'", "x = 4", "x = 5"},
	} {
		synctest.Test(t, func(t *testing.T) {
			kb := newBase(t)
			eval(t, kb, c.not)
			time.AfterFunc(time.Second, func() { eval(t, kb, c.not) })
			time.AfterFunc(2*time.Second, func() { eval(t, kb, c.ends) })
			start := time.Now()
			_, err := kb.Wait(t.Context(), c.src, &knowledge.WaitSettings{Timeout: time.Hour})
			if took := time.Since(start); err != nil || took != 2*time.Second {
				t.Errorf("%s ended after %v: %v", c.src, took, err)
			}
		})
	}
}

// TestTextFlood: texts that were compiled and forgotten take no memory.
func TestTextFlood(t *testing.T) {
	kb := newBase(t)
	var before, after runtime.MemStats
	text := strings.Repeat("++x;", 2000)
	flood := func(from, to int) {
		for i := from; i < to; i++ {
			if _, err := kb.Evaluate(fmt.Sprintf("x = %d;%s", i, text), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	flood(0, 200)
	runtime.GC()
	runtime.ReadMemStats(&before)
	flood(200, 600)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 || after.HeapAlloc > 96<<20 {
		t.Errorf("the heap grew by %d bytes to %d", grown, after.HeapAlloc)
	}
}
