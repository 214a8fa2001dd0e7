package main

import (
	"context"
	"errors"
	"time"

	"github.com/madara-go/madara/knowledge"
)

type waitCmd struct {
	Expr   string         `arg:"" help:"What is to become true. One that starts with - goes after --."`
	Within *time.Duration `placeholder:"TIME" help:"Give up after TIME, as 5s."`
	Print  bool           `help:"Print all variables at the end, a line name=value each."`
	JSON   bool           `name:"json" help:"Print one JSON object at the end: result, vars, and error if there is one."`
	Silent bool           `help:"Send nothing at the start. Otherwise peers that are there already are asked for what they know."`
	network
}

// Help is shown by kong below the usage.
func (c *waitCmd) Help() string {
	return `The exit code is 0 as soon as the expression is true, and 1 if it was not within the time or before an interrupt.

  karl wait --multicast 239.255.0.1:4150 'agent.1.ready && agent.2.ready' --within 5s`
}

// Validate is called by kong.
func (c *waitCmd) Validate() error {
	if err := positive(map[string]*time.Duration{"--within": c.Within}); err != nil {
		return err
	}
	return c.network.check(true)
}

// Run is called by kong.
func (c *waitCmd) Run(p *process) error {
	programs, err := parse([]text{{"<expr>", c.Expr}})
	s := newSession(p, &flags{Print: c.Print, JSON: c.JSON}, c.options(p)...)
	defer s.close()
	if err == nil {
		var bound []*knowledge.Expression
		if bound, err = s.bind(programs); err == nil {
			err = c.wait(s, bound[0])
		}
	}
	s.show(err)
	return err
}

func (c *waitCmd) wait(s *session, e *knowledge.Expression) error {
	ctx, stop := s.interruptible()
	defer stop()
	ctx, cancel := endsAfter(ctx, c.Within)
	defer cancel()
	if err := s.connect(&c.network, knowledge.Sharing{Depth: depth}); err != nil {
		return err
	}
	if !c.Silent {
		s.announce(&c.network)
	}
	v, err := e.Wait(ctx, nil)
	s.last, s.evaluated = v, true
	var failed *knowledge.EvalError
	switch cause := context.Cause(ctx); {
	case err == nil:
		return nil
	case errors.As(err, &failed):
		return fail(exitEvaluate, err)
	case errors.Is(cause, errOver):
		return failf(exitUnreached, "not true within %v", *c.Within)
	}
	return failf(exitUnreached, "stopped before it was true: %w", err)
}
