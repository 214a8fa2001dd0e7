package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// Exit codes.
const (
	exitOK        = 0
	exitUnreached = 1 // --until or wait did not become true, a packet is bad, or check or fmt found something
	exitUsage     = 2
	exitCompile   = 3
	exitEvaluate  = 4
	exitIO        = 5
)

// failure is why a subcommand failed, with its exit code.
type failure struct {
	code int
	errs []error
}

func fail(code int, errs ...error) error { return &failure{code: code, errs: errs} }

func failf(code int, format string, args ...any) error {
	return fail(code, fmt.Errorf(format, args...))
}

func (f *failure) Error() string   { return errors.Join(f.errs...).Error() }
func (f *failure) Unwrap() []error { return f.errs }

// report prints what went wrong and returns the exit code.
func (p *process) report(err error) int {
	if broken := p.out.broken(); broken != nil {
		fmt.Fprintf(p.err, "karl: %v\n", broken)
		return exitIO
	}
	if err == nil {
		return exitOK
	}
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{code: exitIO, errs: []error{err}}
	}
	for _, err := range f.errs {
		io.WriteString(p.err, diagnostic(err))
	}
	return f.code
}

// diagnostic returns the lines that describe an error.
func diagnostic(err error) string {
	var b strings.Builder
	var list karl.ErrorList
	var run *knowledge.EvalError
	switch {
	case errors.As(err, &run) && len(run.Sites) > 0 && run.Pos().IsValid():
		for i, s := range run.Sites {
			if i == 0 {
				fmt.Fprintf(&b, "%s: %v\n", s, run.Err)
				quote(&b, run.Snippet())
			} else {
				fmt.Fprintf(&b, "  called at %s\n", s)
			}
		}
	case errors.As(err, &list):
		for _, e := range list {
			fmt.Fprintf(&b, "%v\n", e)
			quote(&b, e.Snippet())
		}
	default:
		fmt.Fprintf(&b, "karl: %v\n", err)
	}
	return b.String()
}

// quote writes the lines of a snippet, indented alike so that the caret stays
// in its place.
func quote(b *strings.Builder, snippet string) {
	for line := range strings.Lines(snippet) {
		b.WriteString("  ")
		b.WriteString(line)
	}
	b.WriteByte('\n')
}

// output is a stream that remembers its first error; all later writes fail.
type output struct {
	mu   sync.Mutex
	w    io.Writer
	err  error
	stop func(error) // unless nil, told of the error
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(b)
	if err != nil {
		o.err = err
		if o.stop != nil {
			o.stop(err)
		}
	}
	return n, err
}

func (o *output) broken() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// onError sets what is told when the stream breaks.
func (o *output) onError(stop func(error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stop = stop
}
