package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

const (
	fewNames  = 40
	manyNames = 5_000 // more than a watch buffers
	slowEvery = 200   // watches, of which one has a reader that sleeps
)

// view is what a watch has told: the variables that there are, by it.
type view map[string]string

func (v view) tell(c knowledge.Change) {
	switch c.Kind {
	case knowledge.Set:
		v[c.Name] = c.Record.Value.String()
	case knowledge.Cleared, knowledge.Deleted:
		delete(v, c.Name)
	case knowledge.Reset:
		clear(v)
	}
}

// differs says where the view is not what the base holds.
func (v view) differs(kb *knowledge.Base, prefix string) string {
	n := 0
	for name, r := range kb.All(prefix) {
		if got, ok := v[name]; !ok || got != r.Value.String() {
			return fmt.Sprintf("%s is %v, last told was %q (%t)", name, r.Value, got, ok)
		}
		n++
	}
	told := 0
	for name := range v {
		if strings.HasPrefix(name, prefix) {
			told++
		}
	}
	if told != n {
		return fmt.Sprintf("%d variables of %s* are told to be there, there are %d", told, prefix, n)
	}
	return ""
}

// watch begins and ends watches and verifies what they tell.
func (s *soak) watch(id int, r *rand.Rand) {
	for n := int64(1); s.load.Err() == nil; n++ {
		if err := s.watchOnce(id, n, n%slowEvery == 1, r); err != nil {
			s.fail("watch %d of watcher %d: %v", n, id, err)
			return
		}
		s.counts[watches].Add(1)
	}
}

// watchOnce watches variables that nobody else writes while it writes them. A
// slow reader sleeps meanwhile, and more names change than are buffered.
func (s *soak) watchOnce(id int, n int64, slow bool, r *rand.Rand) error {
	s.gate.RLock()
	defer s.gate.RUnlock()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	prefix := fmt.Sprintf("w%d.", id)
	last := prefix + "last"
	names := fewNames
	if slow {
		names = manyNames
	}
	seen := view{}
	current, goOn, told := make(chan struct{}), make(chan struct{}), make(chan bool, 1)
	go func() {
		for c := range s.kb.Watch(ctx, prefix+"*") {
			if c.Kind == knowledge.Current {
				close(current)
				if slow {
					<-goOn
				}
			}
			seen.tell(c)
			if c.Name == last && c.Record.Value.Int() == n {
				told <- true
				return
			}
		}
		told <- false
	}()
	<-current
	for i := range names {
		name := fmt.Sprint(prefix, "n", r.IntN(names))
		var err error
		switch r.IntN(10) {
		case 0:
			s.kb.Delete(name)
		case 1:
			s.kb.Clear(name)
		case 2:
			err = s.kb.Set(name, karl.String(name))
		default:
			err = s.kb.Set(name, karl.Int(int64(i)))
		}
		if err != nil {
			close(goOn)
			return err
		}
	}
	if err := s.kb.Set(last, karl.Int(n)); err != nil {
		close(goOn)
		return err
	}
	close(goOn)
	select {
	case ok := <-told:
		if !ok {
			return fmt.Errorf("it ended by itself")
		}
	case <-time.After(s.patience):
		return fmt.Errorf("the last value was not told within %v", s.patience)
	}
	if what := seen.differs(s.kb, prefix); what != "" {
		return fmt.Errorf("a last value was missed: %s", what)
	}
	if slow { // for the next ones to be quick
		for i := range manyNames {
			s.kb.Delete(fmt.Sprint(prefix, "n", i))
		}
	}
	return nil
}

const mirrored = "d"

// mirror watches from the beginning to the end what everybody writes and deletes.
func (s *soak) mirror() {
	seen := view{}
	for c := range s.kb.Watch(s.end, mirrored+"*", "final") {
		seen.tell(c)
		if c.Name == "final" && c.Kind == knowledge.Set {
			if what := seen.differs(s.kb, mirrored); what != "" {
				s.fail("the watch that saw everything missed a last value: %s", what)
			}
			s.kb.Set("final.seen", karl.Int(1))
		}
	}
}

// checkMirror lets the mirror compare itself with the base, when nobody writes.
func (s *soak) checkMirror() {
	if err := s.kb.Set("final", karl.Int(1)); err != nil {
		s.fail("setting the last value: %v", err)
	}
	if _, err := s.kb.Wait(s.end, "final.seen", &knowledge.WaitSettings{Timeout: s.patience}); err != nil {
		s.fail("the watch that saw everything was not told the last value: %v", err)
	}
}
