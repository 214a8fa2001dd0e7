package knowledge

import (
	"context"
	"slices"
	"strings"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge/internal/eval"
	"github.com/madara-go/madara/knowledge/internal/store"
)

// Expression is a program bound to the variables of one base. It may be used by
// many goroutines at the same time, and for as long as the base: variables that
// are deleted and made anew stay the ones it means. MADARA knows it as
// CompiledExpression.
type Expression struct {
	base *Base
	tree *karl.Program
	prog *eval.Program
}

// Compile parses a program and binds it to the base. Texts are remembered, so
// compiling one again costs a look-up. A fault in the text is a karl.ErrorList.
func (b *Base) Compile(src string) (*Expression, error) {
	if e := b.texts.get(src); e != nil {
		return e, nil
	}
	e, err := b.parse(src)
	if err != nil {
		return nil, err
	}
	b.lock("Base.Compile")
	defer b.unlock()
	return b.bind(e, src)
}

// Bind binds a program that was parsed before.
func (b *Base) Bind(p *karl.Program) (*Expression, error) {
	b.lock("Base.Bind")
	defer b.unlock()
	return b.bind(p, "")
}

// parse parses a text once, however many goroutines ask at the same time.
func (b *Base) parse(src string) (*karl.Program, error) {
	p, err, _ := b.texts.parsing.Do(src, func() (any, error) {
		return karl.Parse("", strings.Clone(src))
	})
	if err != nil {
		return nil, err
	}
	return p.(*karl.Program), nil
}

// bind binds a tree under the lock, and remembers it under its text unless that
// is "".
func (b *Base) bind(p *karl.Program, src string) (*Expression, error) {
	if b.closed {
		return nil, ErrClosed
	}
	if src != "" {
		if e := b.texts.get(src); e != nil {
			return e, nil
		}
	}
	prog, fail := b.env.Compile(p, "")
	if fail != nil {
		return nil, newEvalError(fail)
	}
	e := &Expression{base: b, tree: p, prog: prog}
	if src != "" {
		b.texts.put(p.Source, e)
	}
	return e, nil
}

// Evaluate runs the expression and returns its value; what it changed is sent.
// s may be nil. The error is an *EvalError or ErrClosed; what the program did
// before it failed stays, and is not sent. Values allocate nothing but strings
// and arrays that the program makes.
func (e *Expression) Evaluate(s *EvalSettings) (karl.Value, error) {
	return e.base.evaluate(e, s, nil)
}

// EvaluateContext is Evaluate, but stops at the next loop turn or call once ctx
// is done; the error wraps the context's cause.
func (e *Expression) EvaluateContext(ctx context.Context, s *EvalSettings) (karl.Value, error) {
	return e.base.evaluate(e, s, ctx)
}

func (b *Base) evaluate(e *Expression, s *EvalSettings, ctx context.Context) (karl.Value, error) {
	if s != nil && s.Before != "" {
		b.Print(s.Before)
	}
	b.lock("Expression.Evaluate")
	if b.closed {
		b.unlock()
		return karl.Value{}, ErrClosed
	}
	b.evaluating = true
	v, fail := s.run(b.env, e.prog, ctx)
	b.evaluating = false
	b.finish(s, fail)
	if fail != nil {
		return karl.Value{}, b.failure(fail)
	}
	if s != nil && s.After != "" {
		b.Print(s.After)
	}
	return v, nil
}

// finish ends the hold of an evaluation: it sends, unlocks and prints.
func (b *Base) finish(s *EvalSettings, fail *eval.Error) {
	if b.sender.active && fail == nil && b.store.Marked() > 0 && (s == nil || !s.Delay) {
		var only []string
		if s != nil {
			only = s.SendOnly
		}
		b.sendAndUnlock(only)
	} else {
		b.unlock()
	}
	if b.printer.pending.Load() {
		b.printer.drain()
	}
}

// failure turns what stopped a program into what the caller gets: a panic where
// the base was misused from within.
func (b *Base) failure(fail *eval.Error) error {
	if m, ok := fail.Err.(eval.Misuse); ok {
		panic(m)
	}
	return newEvalError(fail)
}

// Reads returns the names that the expression names and reads, in order. Names
// with braces, and those that functions read, are not among them.
func (e *Expression) Reads() []string { return names(e.prog.Reads) }

// Writes returns the names that the expression names and may write, in order.
func (e *Expression) Writes() []string { return names(e.prog.Writes) }

func names(records []*store.Record) []string {
	list := make([]string, len(records))
	for i, r := range records {
		list[i] = r.Name()
	}
	slices.Sort(list)
	return list
}

// Pure reports whether the expression changes nothing and depends on nothing but
// variables, so that only a change of a variable can change its value.
func (e *Expression) Pure() bool { return e.prog.Pure }

// String returns the program as text.
func (e *Expression) String() string { return e.tree.String() }

// head is the beginning of the text, for messages.
func (e *Expression) head() string {
	s := e.tree.Source
	if len(s) > 40 {
		s = s[:37] + "..."
	}
	return s
}
