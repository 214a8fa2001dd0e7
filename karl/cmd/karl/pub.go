package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

type pubCmd struct {
	Set    []string       `arg:"" sep:"none" name:"name=value" help:"Variables to send. VALUE is a KaRL expression up to the end of the argument; a text has quotes of its own: \"name='a;b'\". It may use the variables before it."`
	Repeat *int           `placeholder:"N" help:"Send N more times."`
	Every  *time.Duration `placeholder:"TIME" help:"Send again each TIME; with --repeat the default is 1s."`
	For    *time.Duration `placeholder:"TIME" help:"Stop after TIME."`
	Settle *time.Duration `placeholder:"TIME" help:"How long to listen for newer values after the first message; the default is 1s, and 0s does not listen."`
	network
}

// Help is shown by kong below the usage.
func (c *pubCmd) Help() string {
	return `All variables go in one message. A peer drops a value that is older than its own, by a count of messages that starts at 0 here; so pub listens for a second and, if it hears of newer values, sends its own once more above them.

A peer that starts later hears what is sent again (--repeat, --every). With --every alone that goes on until an interrupt, or for --for. A value that a peer has replaced since is not sent again.`
}

func (c *pubCmd) assignments() assignments { return assignments{"", c.Set} }

// Validate is called by kong.
func (c *pubCmd) Validate() error {
	if err := c.assignments().check(); err != nil {
		return err
	}
	for i, arg := range c.Set {
		if name := c.assignments().name(i); strings.HasPrefix(name, ".") {
			return fmt.Errorf("%s: names that start with . are not sent", arg)
		}
	}
	switch {
	case c.Repeat != nil && *c.Repeat < 0:
		return fmt.Errorf("--repeat %d: want 0 or more", *c.Repeat)
	case c.Settle != nil && *c.Settle < 0:
		return fmt.Errorf("--settle %v: want 0s or more", *c.Settle)
	}
	if err := positive(map[string]*time.Duration{"--every": c.Every, "--for": c.For}); err != nil {
		return err
	}
	if err := c.network.check(true); err != nil {
		return err
	}
	if c.Multicast == "" && c.Broadcast == "" && len(c.Registry) == 0 && len(c.peers()) == 0 {
		return fmt.Errorf("nobody to send to: want --peer, or --udp once more")
	}
	return nil
}

// Run is called by kong.
func (c *pubCmd) Run(p *process) error {
	programs, err := parse(c.assignments().texts())
	if err != nil {
		return err
	}
	s := newSession(p, &flags{}, c.options(p)...)
	defer s.close()
	ctx, stop := s.interruptible()
	defer stop()
	ctx, cancel := endsAfter(ctx, c.For)
	defer cancel()
	if err := s.set(ctx, c.assignments(), programs); err != nil {
		return err
	}
	if err := s.connect(&c.network, knowledge.Sharing{}); err != nil {
		return err
	}
	s.registered(ctx, &c.network)
	mine := map[string]karl.Value{}
	for i := range c.Set {
		name := c.assignments().name(i)
		mine[name] = s.kb.Get(name)
	}
	if err := s.kb.Send(ctx); err != nil {
		return c.failed(ctx, err)
	}
	return c.repeat(ctx, s, mine)
}

// repeat sends again as the flags say, and once above newer values that others
// turn out to have.
func (c *pubCmd) repeat(ctx context.Context, s *session, mine map[string]karl.Value) error {
	settle, every, left := time.Second, time.Second, 0 // left is -1 without an end
	if c.Settle != nil {
		settle = *c.Settle
	}
	if c.Every != nil {
		every, left = *c.Every, -1
	}
	if c.Repeat != nil {
		left = *c.Repeat
	}
	settled := time.NewTimer(settle)
	defer settled.Stop()
	again := time.NewTicker(every)
	defer again.Stop()
	for settling := settle > 0; settling || left != 0; {
		tick := again.C
		if left == 0 {
			tick = nil
		}
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-settled.C:
			settling = false
			err = c.insist(ctx, s, mine)
		case <-tick:
			err = s.kb.Resend(ctx, knowledge.Own)
			if left > 0 {
				left--
			}
		}
		if err != nil {
			return c.failed(ctx, err)
		}
	}
	return nil
}

// insist sets again what newer values of others replaced, and sends what the
// base has marked since it heard of the others.
func (c *pubCmd) insist(ctx context.Context, s *session, mine map[string]karl.Value) error {
	for name, v := range mine {
		if s.kb.Get(name).Equal(v) {
			continue
		}
		if err := s.kb.Set(name, v); err != nil {
			return failf(exitEvaluate, "%s: the network has a value that this one may not replace: %w", name, err)
		}
	}
	return s.kb.Send(ctx)
}

// failed tells the end of the run from a failure to send.
func (c *pubCmd) failed(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) {
		return nil
	}
	if f := (*failure)(nil); errors.As(err, &f) {
		return err
	}
	return failf(exitIO, "sending: %w", err)
}
