package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// pair is two goroutines that shake hands: one sets ping to the next number, the
// other waits for it and sets pong to the same, which the first waits for. A
// hand-shake that is not answered in time is lost, and so is a wake-up that was
// due. Pairs differ by how they wait.
type pair struct {
	name       string
	ping, pong string
	asked      func(context.Context, *knowledge.WaitSettings) error // until there is a ping
	answered   func(context.Context, *knowledge.WaitSettings) error // until the pong is there
	before     func() error                                         // of each ping
}

func (s *soak) pairs() []*pair {
	var list []*pair
	add := func(name string) (p *pair, asked, answered string) {
		p = &pair{name: name, ping: "pair." + name + ".ping", pong: "pair." + name + ".pong"}
		list = append(list, p)
		return p, p.ping + " > " + p.pong, p.pong + " >= " + p.ping
	}
	byText := func(src string) func(context.Context, *knowledge.WaitSettings) error {
		return func(ctx context.Context, w *knowledge.WaitSettings) error {
			_, err := s.kb.Wait(ctx, src, w)
			return err
		}
	}
	byProgram := func(src string) func(context.Context, *knowledge.WaitSettings) error {
		e, err := s.kb.Compile(src)
		return func(ctx context.Context, w *knowledge.WaitSettings) error {
			if err != nil {
				return err
			}
			_, err := e.Wait(ctx, w)
			return err
		}
	}
	p, asked, answered := add("text")
	p.asked, p.answered = byText(asked), byText(answered)

	for i := range 3 {
		p, asked, answered = add(fmt.Sprint("compiled", i))
		p.asked, p.answered = byProgram(asked), byProgram(answered)
	}

	// Names that are found anew each time: writers wake the waiter, which looks.
	p, _, _ = add("dynamic")
	p.before = func() error { return s.kb.Set(".dynamic", karl.String("dynamic")) }
	p.asked = byText("pair.{.dynamic}.ping > pair.{.dynamic}.pong")
	p.answered = byProgram("pair.{.dynamic}.pong >= pair.{.dynamic}.ping")

	// A function, which is defined anew all the time.
	p, _, answered = add("function")
	p.asked, p.answered = byText("ahead()"), byText(answered)

	// With effects: looks at most once a millisecond.
	p, asked, answered = add("effects")
	p.asked, p.answered = byProgram("++.effects && "+asked), byText(answered)

	p, _, answered = add("await")
	ping, pong := p.ping, p.pong
	p.asked = func(ctx context.Context, w *knowledge.WaitSettings) error {
		return s.kb.Await(ctx, func(g knowledge.Guard) (bool, error) { return g.Get(ping).Int() > g.Get(pong).Int(), nil })
	}
	p.answered = byText(answered)

	// A watch answers.
	p, _, answered = add("watch")
	p.answered = byText(answered)
	return list
}

// ask begins hand-shakes until the load ends.
func (s *soak) ask(p *pair, r *rand.Rand) {
	handle := knowledge.NewVar[int64](s.kb, p.ping)
	for n := int64(1); s.load.Err() == nil; n++ {
		if err := s.shake(p, handle, n, r); err != nil {
			s.fail("hand-shake %d of pair %s: %v", n, p.name, err)
			return
		}
		s.handshakes.Add(1)
	}
}

func (s *soak) shake(p *pair, handle *knowledge.Var[int64], n int64, r *rand.Rand) error {
	s.gate.RLock()
	defer s.gate.RUnlock()
	var err error
	if p.before != nil {
		err = p.before()
	}
	switch r.IntN(3) {
	case 0:
		err = errors.Join(err, s.kb.Set(p.ping, karl.Int(n)))
	case 1:
		err = errors.Join(err, handle.Set(n))
	case 2:
		err = errors.Join(err, s.kb.Update(func(g knowledge.Guard) error { return g.Set(p.ping, karl.Int(n)) }))
	}
	if err != nil {
		return err
	}
	err = p.answered(context.Background(), &knowledge.WaitSettings{Timeout: s.patience})
	if errors.Is(err, knowledge.ErrTimeout) {
		return fmt.Errorf("lost: %w", err)
	}
	if got := s.kb.Get(p.pong).Int(); err == nil && got != n {
		return fmt.Errorf("answered with %d", got)
	}
	return err
}

// answer answers until nobody asks any more.
func (s *soak) answer(p *pair) {
	last := int64(0)
	reply := func(n int64) error {
		if n != last+1 {
			return fmt.Errorf("asked with %d after %d", n, last)
		}
		last = n
		return s.kb.Set(p.pong, karl.Int(n))
	}
	var err error
	if p.asked == nil {
		for c := range s.kb.Watch(s.end, p.ping) {
			// What was there when the watch began may be told again.
			if n := c.Record.Value.Int(); c.Kind == knowledge.Set && n != last && err == nil {
				err = reply(n)
			}
		}
	} else {
		for err == nil {
			if err = p.asked(s.end, nil); err == nil {
				err = reply(s.kb.Get(p.ping).Int())
			}
		}
	}
	if err != nil && s.end.Err() == nil {
		s.fail("answering pair %s: %v", p.name, err)
	}
}
