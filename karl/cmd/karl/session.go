package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// flags are those that eval and run have in common.
type flags struct {
	Set      []string       `sep:"none" placeholder:"NAME=VALUE" help:"Set a variable first. VALUE is a KaRL expression up to the end of the argument; a text has quotes of its own: --set \"name='a;b'\". May be repeated."`
	MaxSteps *uint64        `placeholder:"N" help:"Statements, loop turns and calls after which an evaluation fails; 0 is no limit."`
	Timeout  *time.Duration `placeholder:"TIME" help:"Time after which an evaluation fails, as 10s."`
	Print    bool           `help:"Print all variables at the end, a line name=value each."`
	JSON     bool           `name:"json" help:"Print one JSON object at the end: result, vars, and error if there is one. What programs print goes to standard error then."`
}

// Validate is called by those of the subcommands, which kong calls.
func (f *flags) Validate() error {
	if err := f.assignments().check(); err != nil {
		return err
	}
	if f.Timeout != nil && *f.Timeout <= 0 {
		return fmt.Errorf("--timeout %v: want a time above 0", *f.Timeout)
	}
	return nil
}

func (f *flags) assignments() assignments { return assignments{"--set ", f.Set} }

// assignments are arguments of the form NAME=VALUE, after a flag or none.
type assignments struct {
	flag string // "--set ", or ""
	args []string
}

func (a assignments) check() error {
	for _, arg := range a.args {
		name, value, ok := strings.Cut(arg, "=")
		switch {
		case !ok:
			return fmt.Errorf("%s%s: want NAME=VALUE", a.flag, arg)
		case !karl.IsName(name):
			return fmt.Errorf("%s%s: %q is not the name of a variable", a.flag, arg, name)
		case strings.TrimSpace(value) == "":
			return fmt.Errorf("%s%s: the value is missing; an empty text is %s''", a.flag, arg, arg)
		}
	}
	return nil
}

// texts returns the values as programs.
func (a assignments) texts() []text {
	var texts []text
	for _, arg := range a.args {
		name, value, _ := strings.Cut(arg, "=")
		texts = append(texts, text{a.flag + name, value})
	}
	return texts
}

// name returns the variable of an argument.
func (a assignments) name(i int) string {
	name, _, _ := strings.Cut(a.args[i], "=")
	return name
}

// text is the source of a program.
type text struct{ name, src string }

// load reads program files. The first line may be #! and a command.
func (p *process) load(files []string) ([]text, error) {
	var texts []text
	var errs []error
	for _, file := range files {
		b, err := p.read(file, karl.DefaultMaxSource+1)
		if err != nil {
			if errors.Is(err, errTwice) {
				return nil, fail(exitUsage, err)
			}
			errs = append(errs, err)
			continue
		}
		if file == "-" {
			file = "<stdin>"
		}
		texts = append(texts, text{file, withoutShebang(string(b))})
	}
	if errs != nil {
		return nil, fail(exitIO, errs...)
	}
	return texts, nil
}

var errTwice = errors.New("standard input (-) can be read once only")

// read returns a file, and of one that is too long only enough to tell so.
func (p *process) read(file string, limit int64) ([]byte, error) {
	in := p.in
	if file == "-" {
		if p.stdin {
			return nil, errTwice
		}
		p.stdin = true
	} else {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, limit))
}

// withoutShebang takes a byte order mark away, and blanks a first line that starts
// with #!, so that all positions stay as they are.
func withoutShebang(src string) string {
	src = strings.TrimPrefix(src, "\ufeff")
	if !strings.HasPrefix(src, "#!") {
		return src
	}
	end := strings.IndexByte(src, '\n')
	if end < 0 {
		end = len(src)
	}
	return strings.Repeat(" ", end) + src[end:]
}

// parse parses all texts, so that nothing runs if one is faulty.
func parse(texts []text) ([]*karl.Program, error) {
	var programs []*karl.Program
	var errs []error
	for _, t := range texts {
		program, err := karl.Parse(t.name, t.src)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		programs = append(programs, program)
	}
	if errs != nil {
		return nil, fail(exitCompile, errs...)
	}
	return programs, nil
}

// session is a knowledge base with the programs that run in it.
type session struct {
	p     *process
	flags *flags
	kb    *knowledge.Base
	net   *connection // nil for none
	files *os.Root

	evaluated bool
	last      karl.Value // of the program that ran last
}

func newSession(p *process, f *flags, more ...knowledge.Option) *session {
	s := &session{p: p, flags: f}
	var printed io.Writer = p.out
	if f.JSON {
		printed = p.err
	}
	options := []knowledge.Option{knowledge.WithOutput(printed), knowledge.WithEnv(), knowledge.WithSleep()}
	if files, err := os.OpenRoot("."); err == nil {
		s.files = files
		options = append(options, knowledge.WithFiles(files))
	}
	s.kb = knowledge.New(append(options, more...)...)
	return s
}

func (s *session) close() {
	if s.net != nil && s.net.leave != nil {
		s.net.leave()
	}
	s.kb.Close()
	if s.net != nil {
		s.net.close()
	}
	if s.files != nil {
		s.files.Close()
	}
}

// interruptible returns a context that ends with the first signal to stop, or
// when the output breaks. The next signal ends the process.
func (s *session) interruptible() (context.Context, func()) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	ctx, cancel := context.WithCancelCause(ctx)
	s.p.out.onError(cancel)
	return ctx, func() {
		s.p.out.onError(nil)
		cancel(nil)
		stop()
	}
}

// evalSettings returns the settings of an evaluation.
func (s *session) evalSettings() knowledge.EvalSettings {
	var settings knowledge.EvalSettings
	if s.flags.MaxSteps != nil {
		settings.MaxSteps = *s.flags.MaxSteps
	}
	return settings
}

// evaluate runs an expression once.
func (s *session) evaluate(ctx context.Context, e *knowledge.Expression, settings knowledge.EvalSettings) (karl.Value, error) {
	if s.flags.Timeout != nil {
		limit := *s.flags.Timeout
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("stopped after %v", limit))
		defer cancel()
	}
	v, err := e.EvaluateContext(ctx, &settings)
	if err != nil {
		return v, fail(exitEvaluate, err)
	}
	return v, nil
}

// set evaluates the programs of assignments and stores what they return.
func (s *session) set(ctx context.Context, a assignments, programs []*karl.Program) error {
	for i, program := range programs {
		name := a.name(i)
		settings := s.evalSettings()
		settings.Strict = true // a word without quotes is most likely a mistake
		e, err := s.kb.Bind(program)
		if err != nil {
			return fail(exitEvaluate, err)
		}
		v, err := s.evaluate(ctx, e, settings)
		if errors.Is(err, knowledge.ErrMissing) {
			var f *failure
			errors.As(err, &f)
			return fail(exitEvaluate, f.errs[0], fmt.Errorf("a text has quotes of its own: %s\"%s='...'\"", a.flag, name))
		}
		if err != nil {
			return err
		}
		if !v.Exists() {
			v = karl.Int(0) // as NAME = VALUE does
		}
		if err := s.kb.Set(name, v); err != nil {
			return failf(exitEvaluate, "%s%s: %w", a.flag, name, err)
		}
	}
	return nil
}

// run evaluates programs, one after the other.
func (s *session) run(ctx context.Context, programs []*knowledge.Expression) error {
	for _, e := range programs {
		v, err := s.evaluate(ctx, e, s.evalSettings())
		if err != nil {
			return err
		}
		s.last, s.evaluated = v, true
	}
	return nil
}

// bind binds programs to the base.
func (s *session) bind(programs []*karl.Program) ([]*knowledge.Expression, error) {
	var bound []*knowledge.Expression
	for _, program := range programs {
		e, err := s.kb.Bind(program)
		if err != nil {
			return nil, fail(exitCompile, err)
		}
		bound = append(bound, e)
	}
	return bound, nil
}

// show prints what --json or --print asks for.
func (s *session) show(err error) {
	switch {
	case s.flags.JSON:
		r := record{vars: s.kb.All("")}
		var f *failure
		errors.As(err, &f)
		if s.evaluated && (err == nil || f != nil && f.code == exitUnreached) {
			r.result = &s.last
		}
		if f != nil && (f.code == exitCompile || f.code == exitEvaluate) {
			r.fault = faultOf(f.code, f.errs[0])
		}
		r.writeTo(s.p.out)
	case s.flags.Print:
		s.kb.WriteTo(s.p.out)
	}
}

// text returns a value as #to_string does, in the number format that the
// programs have set.
func (s *session) text(v karl.Value) string {
	const name = "karl_result"
	if s.kb.Define(name, func(*knowledge.Call) (karl.Value, error) { return v, nil }) == nil {
		if t, err := s.kb.Evaluate("#to_string("+name+"())", nil); err == nil {
			return t.String()
		}
	}
	return v.String()
}
