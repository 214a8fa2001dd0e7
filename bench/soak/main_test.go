package main

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"-h", 0, "-for"},
		{"-nonsense", 2, "not defined: -nonsense"},
		{"-for 1s", 2, "-for is 1s, it must be from 2s to 24h"},
		{"-for 25h", 2, "-for is 25h0m0s"},
		{"-for long", 2, "invalid value"},
		{"-every 1ms", 2, "-every is 1ms, it must be from 100ms to 1h"},
		{"-workers 0", 2, "-workers is 0, it must be from 1 to 64"},
		{"-seed -1", 2, "invalid value"},
		{"file", 2, `unexpected argument "file"`},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(strings.Fields(c.args), &stdout, &stderr); code != c.code {
			t.Errorf("%s: exit code %d, want %d", c.args, code, c.code)
		}
		if !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%s: standard error lacks %q:\n%s", c.args, c.says, &stderr)
		}
	}
}

// TestSoak is a short run of everything.
func TestSoak(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run([]string{"-for", "2s", "-every", "500ms", "-seed", "1"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, &stderr, &stdout)
	}
	for _, says := range []string{"-seed 1\n", "warm: heap", "goroutines", "\nok\n"} {
		if !strings.Contains(stdout.String(), says) {
			t.Errorf("it did not print %q:\n%s", says, &stdout)
		}
	}
}

// newSoak returns a run that has not started.
func newSoak(t *testing.T) *soak {
	s := &soak{config: &config{patience: 100 * time.Millisecond, every: time.Hour, length: time.Second}, out: io.Discard}
	s.end, s.stopEnd = context.WithCancel(t.Context())
	s.load, s.stopLoad = context.WithCancel(s.end)
	s.open()
	t.Cleanup(func() { s.kb.Close() })
	return s
}

func faulty(t *testing.T, s *soak, says string) {
	t.Helper()
	if !slices.ContainsFunc(s.faults, func(f string) bool { return strings.Contains(f, says) }) {
		t.Errorf("no fault %q in %q", says, s.faults)
	}
	if s.load.Err() == nil {
		t.Error("the load goes on")
	}
}

// TestLost sees each pair's hand-shake fail that nobody answers, or in a wrong way.
func TestLost(t *testing.T) {
	s := newSoak(t)
	r := rand.New(rand.NewPCG(1, 1))
	for _, p := range s.pairs() {
		s.load, s.stopLoad = context.WithCancel(s.end)
		s.ask(p, r)
		faulty(t, s, "hand-shake 1 of pair "+p.name+": lost")
	}
	p := s.pairs()[0]
	s.load, s.stopLoad = context.WithCancel(s.end)
	s.kb.Set(p.pong, karl.Int(100))
	s.ask(p, r)
	faulty(t, s, "answered with 100")

	s.load, s.stopLoad = context.WithCancel(s.end)
	s.kb.Set(p.ping, karl.Int(200))
	s.answer(p)
	faulty(t, s, "asked with 200 after 0")
}

// TestStuck sees goroutines that do not end.
func TestStuck(t *testing.T) {
	s := newSoak(t)
	var all sync.WaitGroup
	stop := make(chan struct{})
	all.Go(func() { <-stop })
	if s.within("the stuck", &all) {
		t.Error("the stuck ended")
	}
	faulty(t, s, "the stuck did not end within")
	close(stop)
	all.Wait()
	if !strings.Contains(stacks(), "TestStuck") {
		t.Error("the stacks lack this goroutine")
	}
}

// TestMirror sees a last value that is not told.
func TestMirror(t *testing.T) {
	s := newSoak(t)
	s.checkMirror()
	faulty(t, s, "was not told the last value")

	seen := view{}
	for _, c := range []struct {
		change knowledge.Change
		says   string
	}{
		{knowledge.Change{Kind: knowledge.Set, Name: "d1", Record: knowledge.Record{Value: karl.Int(5)}}, "d1 is 1, last told was \"5\""},
		{knowledge.Change{Kind: knowledge.Set, Name: "d1", Record: knowledge.Record{Value: karl.Int(1)}}, ""},
		{knowledge.Change{Kind: knowledge.Set, Name: "d1.old", Record: knowledge.Record{Value: karl.Int(1)}}, "2 variables of d1* are told"},
		{knowledge.Change{Kind: knowledge.Deleted, Name: "d1.old"}, ""},
		{knowledge.Change{Kind: knowledge.Reset}, "d1 is 1, last told was \"\""},
	} {
		for i := range manyDeleted {
			if name := "d" + karl.Int(int64(i)).String(); name != "d1" {
				s.kb.Delete(name)
			}
		}
		seen.tell(c.change)
		if what := seen.differs(s.kb, "d1"); (c.says == "") != (what == "") || !strings.Contains(what, c.says) {
			t.Errorf("after %v of %s: %q, want %q", c.change.Kind, c.change.Name, what, c.says)
		}
	}
}

func TestGrown(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		warm, loaded, closed, empty int64
		goroutines                  int
		says                        string
	}{
		{20 * mib, 20 * mib, mib, mib, 3, ""},
		{20 * mib, 26 * mib, mib, mib, 3, ""},
		{20 * mib, 27 * mib, mib, mib, 3, "memory grew: heap 20.0 MiB after the warm-up, 27.0 MiB at the end"},
		{20 * mib, 20 * mib, 4 * mib, mib, 3, "memory is left: heap 4.0 MiB"},
		{20 * mib, 20 * mib, mib, mib, 4, "4 goroutines are left, there were 3"},
	} {
		m := marks{warm: c.warm, loaded: c.loaded}
		if what := m.grown(c.closed, c.empty, c.goroutines, 3); (c.says == "") != (what == "") || !strings.Contains(what, c.says) {
			t.Errorf("%+v: %q, want %q", c, what, c.says)
		}
	}
}
