package knowledge_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

func text(c knowledge.Change) string {
	switch c.Kind {
	case knowledge.Set:
		return fmt.Sprintf("%s=%v", c.Name, c.Record.Value)
	case knowledge.Current, knowledge.Reset:
		return c.Kind.String()
	case knowledge.Ended:
		return fmt.Sprint(c.Kind, " ", c.Err)
	}
	return fmt.Sprint(c.Name, " ", c.Kind)
}

// TestWatch pins what a watch tells of each thing that can happen.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kb := newBase(t)
		eval(t, kb, "agent.1.x = 1; agent.2.x = 2; other = 3; agent.3 = 4")
		kb.Clear("agent.3")
		var told []string
		ctx, cancel := context.WithCancel(t.Context())
		done, hold := make(chan bool), make(chan bool)
		go func() {
			defer close(done)
			for c := range kb.Watch(ctx, "agent.*", "exact") {
				told = append(told, text(c))
				if c.Name == "agent.hold" {
					<-hold
				}
			}
		}()
		expect := func(what, want string) {
			t.Helper()
			synctest.Wait()
			if got := strings.Join(told, ", "); got != want {
				t.Errorf("%s told %q, want %q", what, got, want)
			}
			told = nil
		}
		expect("the start", "agent.1.x=1, agent.2.x=2, current")
		do := func(src, want string) {
			t.Helper()
			eval(t, kb, src)
			expect(src, want)
		}
		do("agent.1.x = 5", "agent.1.x=5")
		do("agent.1.x = 5", "agent.1.x=5") // a write tells, whatever it writes
		do("other = 6", "")
		do("exact = 1; exactly = 2", "exact=1")
		do("agent.new = 1; ++agent.new; agent.a[1] = 4", "agent.new=2, agent.a=0, 4")
		do("agent.3 = 7; #clear_var('agent.3')", "agent.3 cleared")
		do("#delete_var('agent.1.x'); agent.1.x = 8", "agent.1.x=8")
		do("#delete_var('agent.1.x')", "agent.1.x deleted")
		kb.Set("agent.free", karl.Int(1))
		expect("Set", "agent.free=1")
		kb.Delete("agent.free")
		expect("Delete", "agent.free deleted")
		g := kb.Lock()
		g.Set("agent.free", karl.Int(2))
		g.Delete("agent.free")
		g.Unlock()
		expect("set and delete in one hold", "agent.free deleted")
		kb.Evaluate("agent.1.x = 9", &knowledge.EvalSettings{NoSignal: true})
		expect("NoSignal", "agent.1.x=9")
		kb.Reset()
		expect("Reset", "reset")
		do("agent.2.x = 1", "agent.2.x=1")
		kb.Set("agent.hold", karl.Int(1))
		synctest.Wait()
		kb.Set("exact", karl.Int(1))
		kb.Reset() // what it takes away before it was told is not told
		kb.Set("exact", karl.Int(2))
		hold <- true
		expect("around a reset", "agent.hold=1, reset, exact=2")
		cancel()
		<-done
		do("agent.2.x = 1", "")
	})
}

func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kb := newBase(t)
		var told []string
		for c := range kb.Watch(t.Context(), "nothing.*") {
			told = append(told, text(c)) // zero matches: still told when current
			break
		}
		for c := range kb.Watch(t.Context()) {
			told = append(told, text(c))
			if text(c) == "x=5" {
				go kb.Close()
			}
			// The base may be used from the loop.
			if kb.Get("x").Int() < 5 {
				kb.Evaluate("++x", nil)
			}
		}
		if last := told[len(told)-1]; told[0] != "current" || last != "ended "+knowledge.ErrClosed.Error() {
			t.Errorf("told %q", told)
		}
		for c := range kb.Watch(t.Context()) {
			if !errors.Is(c.Err, knowledge.ErrClosed) {
				t.Errorf("watch of a closed base: %+v", c)
			}
		}
		null := newBase(t, knowledge.WithNullLock())
		for c := range null.Watch(t.Context()) {
			if !errors.Is(c.Err, knowledge.ErrNullLock) {
				t.Errorf("watch without a lock: %+v", c)
			}
		}
	})
}

// TestWatchSlowReader lets more variables change than the buffer holds: each is
// told with its last value before the watch is idle, and drops are counted.
func TestWatchSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kb := newBase(t)
		const n = 10_000
		seen := map[string]int64{}
		var dropped uint64
		ctx, cancel := context.WithCancel(t.Context())
		started, goOn, done := make(chan bool), make(chan bool), make(chan bool)
		changes := 0
		go func() {
			defer close(done)
			for c := range kb.Watch(ctx, "v*") {
				if c.Kind == knowledge.Current {
					started <- true
					<-goOn
					continue
				}
				changes++
				dropped += c.Dropped
				seen[c.Name] = c.Record.Value.Int()
			}
		}()
		<-started
		for round := range 3 {
			for i := range n {
				kb.Set(fmt.Sprint("v", i), karl.Int(int64(round*n+i)))
			}
		}
		goOn <- true
		synctest.Wait()
		for i := range n {
			if got, want := seen[fmt.Sprint("v", i)], int64(2*n+i); got != want {
				t.Fatalf("v%d was told as %d, want %d", i, got, want)
			}
		}
		if dropped < n-4096 || changes != n {
			t.Errorf("%d names dropped, %d changes", dropped, changes)
		}
		cancel()
		<-done
	})
}

// TestWatchDeletedNames: names that come and go under a watch leave nothing.
func TestWatchDeletedNames(t *testing.T) {
	kb := newBase(t, knowledge.WithLimits(knowledge.Limits{Variables: 100}))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	ready := make(chan bool)
	wg.Go(func() {
		for c := range kb.Watch(ctx) {
			if c.Kind == knowledge.Current {
				close(ready)
			}
		}
	})
	<-ready
	for i := range 20_000 {
		name := fmt.Sprint("n", i)
		if err := kb.Set(name, karl.Int(1)); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			kb.Clear(name)
		}
		kb.Delete(name)
	}
	cancel()
	wg.Wait()
}

// TestWatchLastValue: under random writers, every reader ends with what is there.
func TestWatchLastValue(t *testing.T) {
	kb := newBase(t)
	ctx, cancel := context.WithCancel(t.Context())
	var writers, readers sync.WaitGroup
	views := make([]map[string]string, 4)
	final := make(chan string, len(views))
	for i := range views {
		views[i] = map[string]string{}
		readers.Go(func() {
			for c := range kb.Watch(ctx, "a*", "b*") {
				switch c.Kind {
				case knowledge.Set:
					views[i][c.Name] = c.Record.Value.String()
				case knowledge.Cleared, knowledge.Deleted:
					delete(views[i], c.Name)
				case knowledge.Reset:
					clear(views[i])
				}
				if c.Name == "b.last" {
					final <- c.Name
					return
				}
			}
		})
	}
	for seed := range uint64(4) {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			for i := range 5000 {
				name := fmt.Sprintf("a%d", random.IntN(6000))
				switch random.IntN(20) {
				case 0:
					kb.Delete(name)
				case 1:
					kb.Clear(name)
				case 2:
					kb.Evaluate(fmt.Sprintf("%s = 'x%d'; ++a1", name, i), &knowledge.EvalSettings{NoSignal: i%2 == 0})
				case 3:
					if random.IntN(200) == 0 {
						kb.Reset()
					}
				default:
					kb.Set(name, karl.Int(int64(i)))
				}
			}
		})
	}
	writers.Wait()
	want := map[string]string{}
	for name, r := range kb.All("") {
		if strings.HasPrefix(name, "a") {
			want[name] = r.Value.String()
		}
	}
	kb.Set("b.last", karl.Int(1))
	for range views {
		<-final
	}
	cancel()
	readers.Wait()
	for i, view := range views {
		delete(view, "b.last")
		if len(view) != len(want) {
			t.Errorf("reader %d sees %d variables, want %d", i, len(view), len(want))
		}
		for name, v := range want {
			if view[name] != v {
				t.Errorf("reader %d sees %s = %q, want %q", i, name, view[name], v)
			}
		}
	}
}

func TestHistory(t *testing.T) {
	kb := newBase(t, knowledge.WithHistory("pose*", 3), knowledge.WithHistory("pose.none", 0))
	history := func(name string) string {
		var values []string
		last := knowledge.Record{}
		for _, r := range kb.History(name) {
			if r.Time < last.Time || r.Clock < last.Clock {
				t.Errorf("history of %s goes back: %+v after %+v", name, r, last)
			}
			last = r
			values = append(values, r.Value.String())
		}
		return strings.Join(values, "|")
	}
	for _, c := range []struct{ src, want string }{
		{"pose = 1", "1"},
		{"pose = 2; ++pose", "1|2|3"},
		{"pose = 'four'", "2|3|four"},
		{"pose = [1, 2]; pose[0] = 5", "four|1, 2|5, 2"},
		{"pose.none = 1; other = 1; pose", "four|1, 2|5, 2"},
		{"#clear_var('pose')", "four|1, 2|5, 2"},
		{"pose = 7; #set_clock(100); pose = 8", "5, 2|7|8"},
		{"#delete_var('pose')", ""},
		{"pose = 9; pose = 10", "9|10"},
	} {
		eval(t, kb, c.src)
		if got := history("pose"); got != c.want {
			t.Errorf("after %s: %q, want %q", c.src, got, c.want)
		}
	}
	for _, name := range []string{"pose.none", "other", "absent"} {
		if got := kb.History(name); got != nil {
			t.Errorf("history of %s: %v", name, got)
		}
	}
	if got := kb.Get("pose").Int(); got != 10 {
		t.Errorf("pose = %d, want the newest", got)
	}
	kb.Reset()
	if got := history("pose"); got != "" {
		t.Errorf("after a reset: %q", got)
	}
}
