package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/madara-go/madara/knowledge"
)

type runCmd struct {
	File          []string       `arg:"" help:"Program files, run in order in one knowledge base; - is standard input."`
	Init          []string       `sep:"none" placeholder:"EXPR" help:"Evaluate once, after --set and before the files. May be repeated."`
	Every         *time.Duration `placeholder:"TIME" help:"Run the files again each TIME, as 100ms."`
	For           *time.Duration `placeholder:"TIME" help:"Stop after TIME, as 5s."`
	Until         string         `placeholder:"EXPR" help:"Stop when EXPR is true, looked at after each run of the files. Without --every the files run once and then EXPR is waited for. The exit code is 1 if it did not become true."`
	Serve         string         `placeholder:"ADDR" help:"Let karl get and set, and programs that dial, use the variables while the program runs: the path of a socket, with a slash in it, or HOST:PORT of this host."`
	ServeEvaluate bool           `name:"serve-evaluate" help:"Let them evaluate programs too."`
	flags
	network
}

// Help is shown by kong below the usage.
func (c *runCmd) Help() string {
	return `With --every the files run at once, and then at each point of the time grid; points that were missed by up to 100 ms are made up for. An interrupt (Ctrl-C) ends the run as --for does: --print and --json still show the variables, and a second one ends the process.

With --udp, --peer or --multicast the knowledge base shares its variables with the peers, and asks those that are there for what they know: what the programs change is sent after each evaluation, and what arrives is there for the next one. Names that start with . stay here. --for keeps a program that runs once on the network for that time, so that peers that come later are told.

With --serve others use the variables while the program runs: karl get, karl set, and with --serve-evaluate karl eval --control. A socket by path is for processes of the same user. A program that runs once stays there for them until --for, --until or an interrupt ends it.

Times are written as 100ms, 2.5s, 1m30s. The first line of a file may be #!/usr/bin/env -S karl run`
}

// Validate is called by kong.
func (c *runCmd) Validate() error {
	switch {
	case c.Every != nil && *c.Every <= 0:
		return fmt.Errorf("--every %v: want a time above 0", *c.Every)
	case c.For != nil && *c.For <= 0:
		return fmt.Errorf("--for %v: want a time above 0", *c.For)
	}
	if c.ServeEvaluate && c.Serve == "" {
		return fmt.Errorf("--serve-evaluate goes with --serve only")
	}
	if err := c.network.check(false); err != nil {
		return err
	}
	return c.flags.Validate()
}

// Run is called by kong.
func (c *runCmd) Run(p *process) error {
	s := newSession(p, &c.flags, c.network.options(p)...)
	defer s.close()
	err := c.run(s)
	s.show(err)
	return err
}

func (c *runCmd) run(s *session) error {
	files, err := s.p.load(c.File)
	if err != nil {
		return err
	}
	texts := append(c.assignments().texts(), c.inits()...)
	first := len(texts)
	texts = append(texts, files...)
	if c.Until != "" {
		texts = append(texts, text{"--until", c.Until})
	}
	programs, err := parse(texts)
	if err != nil {
		return err
	}

	ctx, stop := s.interruptible()
	defer stop()
	l := loop{s: s, start: time.Now(), serves: c.Serve != ""}
	if c.For != nil {
		l.end = *c.For
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, l.start.Add(l.end), errOver)
		defer cancel()
	}
	if c.Every != nil {
		l.period = *c.Every
	}
	if c.given() {
		if err := s.connect(&c.network, knowledge.Sharing{}); err != nil {
			return err
		}
		s.announce(&c.network)
	}
	if c.Serve != "" {
		control, err := openControl("--serve", c.Serve, true)
		if err != nil {
			return err
		}
		defer control.Close()
		if _, err := s.kb.Serve(control, &knowledge.Rules{Evaluate: c.ServeEvaluate}); err != nil {
			return failf(exitIO, "--serve %s: %w", c.Serve, err)
		}
	}
	err = s.set(ctx, c.assignments(), programs[:len(c.Set)])
	if err == nil {
		l.init, err = s.bind(programs[len(c.Set):first])
	}
	if err == nil {
		l.files, err = s.bind(programs[first : first+len(files)])
	}
	if err == nil && c.Until != "" {
		l.until, err = s.kb.Bind(programs[first+len(files)])
	}
	if err == nil {
		err = l.run(ctx)
	}
	return c.ended(ctx, err)
}

func (c *runCmd) inits() []text {
	var texts []text
	for i, src := range c.Init {
		name := "--init"
		if len(c.Init) > 1 {
			name = fmt.Sprintf("--init %d", i+1)
		}
		texts = append(texts, text{name, src})
	}
	return texts
}

// errOver is the cause of a context whose --for is over.
var errOver = errors.New("--for is over")

// ended tells a run that its time or the user ended from one that failed.
func (c *runCmd) ended(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case err == nil, cause == nil, !errors.Is(err, cause):
		return err
	case c.Until == "":
		return nil
	case errors.Is(cause, errOver):
		return failf(exitUnreached, "--until was not true within %v", *c.For)
	}
	return failf(exitUnreached, "stopped before --until was true: %w", cause)
}

// caughtUp is how late a run on the grid may be; older ones are skipped.
const caughtUp = 100 * time.Millisecond

// loop runs programs on a time grid.
type loop struct {
	s      *session
	init   []*knowledge.Expression
	files  []*knowledge.Expression
	until  *knowledge.Expression // or nil
	start  time.Time
	period time.Duration // 0: once
	end    time.Duration // 0: none
	serves bool          // others write variables
}

// run returns nil when the programs have run, once or until l.until is true. If
// ctx ends first it returns its cause, as it is or in the error of a program.
func (l *loop) run(ctx context.Context) error {
	if err := l.s.run(ctx, l.init); err != nil {
		return err
	}
	next := l.period
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := l.s.run(ctx, l.files); err != nil {
			return err
		}
		if l.period == 0 {
			return l.wait(ctx)
		}
		if l.until != nil {
			v, err := l.s.evaluate(ctx, l.until, l.s.evalSettings())
			if err != nil || v.IsTrue() {
				return err
			}
		}
		now := time.Since(l.start)
		if late := now - next; late > caughtUp {
			next += (late - caughtUp) / l.period * l.period
		}
		if err := l.sleep(ctx, next); err != nil {
			return err
		}
		next += l.period
	}
}

// sleep returns at a time of the run, or with the cause of ctx.
func (l *loop) sleep(ctx context.Context, until time.Duration) error {
	if l.end > 0 && until >= l.end {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	t := time.NewTimer(until - time.Since(l.start))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wait waits for --until, or among others for --for. An --until that depends on
// variables alone is waited for only as long as the user said where nobody else
// writes variables.
func (l *loop) wait(ctx context.Context) error {
	if l.until == nil {
		if l.serves || l.s.net != nil && l.end > 0 {
			<-ctx.Done()
		}
		return nil
	}
	if l.end == 0 && l.until.Pure() && l.s.net == nil && !l.serves {
		v, err := l.s.evaluate(ctx, l.until, l.s.evalSettings())
		if err == nil && !v.IsTrue() {
			return failf(exitUnreached, "--until is not true, and nothing can change that: add --every")
		}
		return err
	}
	_, err := l.until.Wait(ctx, &knowledge.WaitSettings{EvalSettings: l.s.evalSettings()})
	var failed *knowledge.EvalError
	if errors.As(err, &failed) {
		return fail(exitEvaluate, err)
	}
	return err
}
