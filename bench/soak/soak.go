package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

const (
	resetPause   = 500 * time.Millisecond // between two resets
	longRun      = 10 * time.Minute       // from which on so many hand-shakes must have happened
	longRunShook = 1_000_000

	manyVariables = 1_000 // v0, v1…: written by everybody, named by programs
	manyDeleted   = 2_000 // d0, d1…: written and deleted
	histories     = 64    // h.0, h.1…
	historyLength = 16
)

// soak is one run.
type soak struct {
	*config
	kb  *knowledge.Base
	out io.Writer

	// load ends when the load shall end, or at the first fault; then those that
	// began something finish it. end comes last, for those that only answer.
	load, end         context.Context
	stopLoad, stopEnd context.CancelFunc

	// Whoever relies on values that a reset would take away holds gate for
	// reading; the one that resets holds it for writing.
	gate sync.RWMutex

	counts     [kinds]atomic.Int64
	handshakes atomic.Int64
	sunk       atomic.Int64
	fallen     atomic.Int64 // how often the clock that the sink is given went back

	mu     sync.Mutex
	faults []string
}

// fail notes what went wrong and ends the load.
func (s *soak) fail(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.faults) < 20 {
		s.faults = append(s.faults, fmt.Sprintf(format, args...))
	}
	s.stopLoad()
}

// soakBase runs the load and returns what went wrong.
func soakBase(c *config, out io.Writer) []string {
	goroutines, empty := runtime.NumGoroutine(), heap()
	s := &soak{config: c, out: out}
	s.end, s.stopEnd = context.WithCancel(context.Background())
	s.load, s.stopLoad = context.WithCancel(s.end)
	s.open()
	var workers, answerers sync.WaitGroup
	s.start(&workers, &answerers)
	m := s.monitor()

	quiet := s.within("those that work", &workers)
	if quiet {
		s.checkMirror()
	}
	s.stopEnd()
	if !quiet || !s.within("those that answer", &answerers) {
		return append(s.faults, stacks())
	}
	if err := s.kb.Close(); err != nil {
		s.fail("closing the base: %v", err)
	}
	if fallen, n := s.fallen.Load(), s.counts[resets].Load(); fallen > n {
		s.fail("the clock given to the sink went back %d times in %d resets", fallen, n)
	}
	if shook := s.handshakes.Load(); c.length >= longRun && shook < longRunShook {
		s.fail("%d hand-shakes, at least %d were expected", shook, longRunShook)
	}
	m.end(s, goroutines, empty)
	return s.faults
}

// open makes the base with everything that the load uses, so that its size does
// not depend on which random choices came first.
func (s *soak) open() {
	var clock uint64
	sink := func(at uint64, updates []knowledge.Update) {
		if at < clock {
			s.fallen.Add(1)
		}
		clock = at
		for _, u := range updates {
			if strings.HasPrefix(u.Name, ".") {
				s.fail("the local variable %s was sent", u.Name)
			}
		}
		s.sunk.Add(int64(len(updates)))
	}
	s.kb = knowledge.New(knowledge.WithSink(sink), knowledge.WithOutput(io.Discard),
		knowledge.WithHistory("h.*", historyLength), knowledge.WithLimits(knowledge.Limits{Variables: 50_000}))
	for i := range manyVariables {
		s.kb.Set(fmt.Sprint("v", i), karl.Int(int64(i)))
	}
	for i := range manyDeleted {
		s.kb.Set(fmt.Sprint("d", i), karl.Int(int64(i)))
	}
	for i := range histories {
		for n := range historyLength + 1 {
			s.kb.Set(fmt.Sprint("h.", i), karl.Int(int64(n)))
		}
	}
	s.redefine(0)
}

// start starts everybody. Answerers run until there is nobody left to ask.
func (s *soak) start(workers, answerers *sync.WaitGroup) {
	stream := uint64(0)
	random := func() *rand.Rand {
		stream++
		return rand.New(rand.NewPCG(s.seed, stream))
	}
	for i := range s.workers {
		r := random()
		workers.Go(func() { s.work(i, r) })
	}
	for i := range 3 {
		r := random()
		workers.Go(func() { s.wait(i, r) })
	}
	for i := range 2 {
		r := random()
		workers.Go(func() { s.watch(i, r) })
	}
	for _, p := range s.pairs() {
		r := random()
		workers.Go(func() { s.ask(p, r) })
		answerers.Go(func() { s.answer(p) })
	}
	workers.Go(s.reset)
	answerers.Go(s.mirror)
}

// reset takes all variables away now and then.
func (s *soak) reset() {
	for {
		select {
		case <-s.load.Done():
			return
		case <-time.After(resetPause):
			s.gate.Lock()
			s.kb.Reset()
			s.gate.Unlock()
			s.counts[resets].Add(1)
		}
	}
}

// within waits for goroutines, and reports whether they ended in time.
func (s *soak) within(who string, all *sync.WaitGroup) bool {
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
		return true
	case <-time.After(2 * s.patience):
		s.fail("%s did not end within %v", who, 2*s.patience)
		return false
	}
}

// stacks shows where the goroutines are.
func stacks() string {
	var b strings.Builder
	pprof.Lookup("goroutine").WriteTo(&b, 1)
	return "goroutines:\n" + b.String()
}
