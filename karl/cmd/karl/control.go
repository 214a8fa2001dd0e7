package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/tcp"
)

// isPath reports whether the address of a Control is the path of a socket, and
// not host:port.
func isPath(address string) bool {
	return strings.HasPrefix(address, "@") || strings.Contains(address, "/")
}

// openControl returns a Control that serves at an address, or one for calls to
// it. The error names the flag.
func openControl(flag, address string, serve bool) (control transport.Control, err error) {
	listen := ""
	if serve {
		listen = address
	}
	if isPath(address) {
		control, err = openPath(listen)
	} else {
		control, err = tcp.NewControl(listen, nil)
	}
	if err != nil {
		return nil, failf(exitIO, "%s %s: %w", flag, address, err)
	}
	return control, nil
}

// remote is the flags of what talks to a knowledge base elsewhere.
type remote struct {
	Control string         `required:"" placeholder:"ADDR" help:"Where a knowledge base serves (karl run --serve): the path of a socket, with a slash in it, or HOST:PORT of this host."`
	Within  *time.Duration `placeholder:"TIME" help:"Time to wait for a program that serves there, and its answer. The default is 5s for the answer of one that is there."`
}

func (r *remote) check() error { return positive(map[string]*time.Duration{"--within": r.Within}) }

// dial calls use with the base.
func (r *remote) dial(p *process, use func(ctx context.Context, kb *knowledge.Remote) error) error {
	control, err := openControl("--control", r.Control, false)
	if err != nil {
		return err
	}
	defer control.Close()
	s := &session{p: p}
	ctx, stop := s.interruptible()
	defer stop()
	within := 5 * time.Second
	if r.Within != nil {
		within = *r.Within
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	kb := knowledge.Dial(control, r.Control)
	if r.Within != nil {
		appear(ctx, kb)
	}
	err = use(ctx, kb)
	var f *failure
	var remote *transport.RemoteError
	switch {
	case err == nil || errors.As(err, &f):
		return err
	case errors.Is(err, transport.ErrTimeout) && !errors.Is(err, transport.ErrUnreachable):
		return failf(exitIO, "%s: no answer within %v", r.Control, within)
	case errors.As(err, &remote):
		return failf(exitEvaluate, "%s: %s", r.Control, remote.Message)
	case errors.Is(err, transport.ErrUnreachable), errors.Is(err, transport.ErrMethod):
		return fail(exitIO, err)
	}
	return fail(exitEvaluate, err)
}

// appear waits for somebody who serves.
func appear(ctx context.Context, kb *knowledge.Remote) {
	for {
		_, err := kb.Get(ctx, "any")
		if !errors.Is(err, transport.ErrUnreachable) || errors.Is(err, transport.ErrSettings) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

type getCmd struct {
	Name []string `arg:"" help:"Variables to print; one that ends with * stands for all that begin so."`
	JSON bool     `name:"json" help:"Print one JSON object with all of them."`
	remote
}

// Help is shown by kong below the usage.
func (c *getCmd) Help() string {
	return `The value is printed as text, those of several names as name=value, a line each. If a name has no value, the exit code is 1.`
}

// Validate is called by kong.
func (c *getCmd) Validate() error { return c.check() }

// Run is called by kong.
func (c *getCmd) Run(p *process) error {
	var found []knowledge.Update
	var missing []string
	err := c.dial(p, func(ctx context.Context, kb *knowledge.Remote) error {
		for _, name := range c.Name {
			prefix, all := strings.CutSuffix(name, "*")
			if !all {
				r, ok, err := kb.Lookup(ctx, name)
				if err != nil {
					return err
				}
				if !ok {
					missing = append(missing, name)
					continue
				}
				found = append(found, knowledge.Update{Name: name, Record: r})
				continue
			}
			for u, err := range kb.All(ctx, prefix) {
				if err != nil {
					return err
				}
				found = append(found, u)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	switch {
	case c.JSON:
		(&record{vars: pairs(found)}).writeTo(p.out)
	case len(c.Name) == 1 && len(found) == 1 && found[0].Name == c.Name[0]:
		fmt.Fprintln(p.out, found[0].Value)
	default:
		for _, u := range found {
			fmt.Fprintf(p.out, "%s=%v\n", u.Name, u.Value)
		}
	}
	if missing != nil {
		return failf(exitUnreached, "not set: %s", strings.Join(missing, ", "))
	}
	return nil
}

func pairs(updates []knowledge.Update) iter.Seq2[string, knowledge.Record] {
	return func(yield func(string, knowledge.Record) bool) {
		for _, u := range updates {
			if !yield(u.Name, u.Record) {
				return
			}
		}
	}
}

type setCmd struct {
	Set []string `arg:"" sep:"none" name:"name=value" help:"Variables to write. VALUE is a KaRL expression up to the end of the argument; a text has quotes of its own: \"name='a;b'\". It may use the variables before it."`
	remote
}

// Validate is called by kong.
func (c *setCmd) Validate() error {
	if err := (assignments{"", c.Set}).check(); err != nil {
		return err
	}
	return c.check()
}

// Run is called by kong.
func (c *setCmd) Run(p *process) error {
	a := assignments{"", c.Set}
	programs, err := parse(a.texts())
	if err != nil {
		return err
	}
	s := newSession(p, &flags{})
	defer s.close()
	if err := s.set(context.Background(), a, programs); err != nil {
		return err
	}
	return c.dial(p, func(ctx context.Context, kb *knowledge.Remote) error {
		for i := range c.Set {
			if err := kb.Set(ctx, a.name(i), s.kb.Get(a.name(i))); err != nil {
				return err
			}
		}
		return nil
	})
}

// evaluateAt evaluates programs in a knowledge base elsewhere.
func (c *evalCmd) evaluateAt(p *process) error {
	texts, err := c.texts(p)
	if err != nil {
		return err
	}
	if _, err := parse(texts); err != nil {
		return err
	}
	r := remote{Control: c.Control, Within: c.Timeout}
	return r.dial(p, func(ctx context.Context, kb *knowledge.Remote) error {
		var last karl.Value
		for _, t := range texts {
			if last, err = kb.Evaluate(ctx, t.src); err != nil {
				return err
			}
		}
		fmt.Fprintln(p.out, last)
		return nil
	})
}
