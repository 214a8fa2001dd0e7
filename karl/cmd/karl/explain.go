package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

type explainCmd struct {
	Program string   `arg:"" help:"A program file, - for standard input, or a program. One that starts with - goes after --."`
	Init    []string `sep:"none" placeholder:"EXPR" help:"Evaluate first, unexplained, after --set. May be repeated."`
	Set     []string `sep:"none" placeholder:"NAME=VALUE" help:"Set a variable first. May be repeated."`
	JSON    bool     `name:"json" help:"Print the tree as JSON."`
}

// Help is shown by kong below the usage.
func (c *explainCmd) Help() string {
	return `The program is evaluated, and each line says what a part of it came to, with its place: the parts of an expression below it, variables that changed as "old -> new". Of a rule it says whether its condition was true. Parts that did not run are not there. Calls show what they returned, but not what went on inside.`
}

// Validate is called by kong.
func (c *explainCmd) Validate() error { return (&flags{Set: c.Set}).Validate() }

// Run is called by kong.
func (c *explainCmd) Run(p *process) error {
	texts := []text{{"<expr>", c.Program}}
	if info, err := os.Stat(c.Program); c.Program == "-" || err == nil && !info.IsDir() {
		if texts, err = p.load([]string{c.Program}); err != nil {
			return err
		}
	}
	f := &flags{Set: c.Set}
	texts = append(texts, f.assignments().texts()...)
	texts = append(texts, (&runCmd{Init: c.Init}).inits()...)
	programs, err := parse(texts)
	if err != nil {
		return err
	}
	s := newSession(p, f, knowledge.WithOutput(p.err))
	defer s.close()
	ctx, stop := s.interruptible()
	defer stop()
	if err := s.set(ctx, f.assignments(), programs[1:1+len(c.Set)]); err != nil {
		return err
	}
	inits, err := s.bind(programs[1+len(c.Set):])
	if err == nil {
		err = s.run(ctx, inits)
	}
	if err != nil {
		return err
	}
	_, trace, err := s.kb.Explain(ctx, programs[0], nil)
	if trace != nil {
		w := bufio.NewWriter(p.out)
		e := &explainer{programs[0], programs[0].Positions(), w}
		if c.JSON {
			var b []byte
			b = append(e.json(b, trace.Steps), '\n')
			w.Write(b)
		} else {
			e.text(trace.Steps, 0)
			if trace.Dropped > 0 {
				fmt.Fprintf(w, "and %d steps more\n", trace.Dropped)
			}
		}
		w.Flush()
	}
	if err != nil {
		return fail(exitEvaluate, err)
	}
	return nil
}

// explainer writes what a program did.
type explainer struct {
	program  *karl.Program
	position func(int) karl.Pos
	w        *bufio.Writer
}

// maxSource bounds the text of a node in a line.
const maxSource = 60

// source returns the text of a node on one line.
func (e *explainer) source(n karl.Node) string {
	text := strings.Join(strings.Fields(e.program.Source[n.Pos():n.End()]), " ")
	if runes := []rune(text); len(runes) > maxSource {
		text = string(runes[:maxSource-1]) + "…"
	}
	return strings.ToValidUTF8(text, "?")
}

func (e *explainer) text(steps []*knowledge.Step, depth int) {
	for _, s := range steps {
		pos := e.position(s.Node.Pos())
		fmt.Fprintf(e.w, "%s%d:%d  %s", strings.Repeat("  ", depth), pos.Line, pos.Column, e.source(s.Node))
		if n, ok := s.Node.(*karl.Name); ok && n.Text != s.Name {
			fmt.Fprintf(e.w, "  [%s]", plain(s.Name))
		}
		if what := e.verdict(s); what != "" {
			fmt.Fprintf(e.w, "  %s", what)
		}
		fmt.Fprintln(e.w)
		e.text(s.Steps, depth+1)
	}
}

// verdict says what a step came to.
func (e *explainer) verdict(s *knowledge.Step) string {
	if s.Failed {
		return "failed"
	}
	switch n := s.Node.(type) {
	case *karl.Assign, *karl.IncDec:
		if s.Name != "" {
			return fmt.Sprintf("%s: %s -> %s", plain(s.Name), shown(s.Old), shown(s.New))
		}
	case *karl.Loop:
		return fmt.Sprintf("= %s, %s: %s -> %s", shown(s.Value), plain(s.Name), shown(s.Old), shown(s.New))
	case *karl.Binary:
		if n.Op == karl.OpImplies {
			if s.Value.IsTrue() {
				return "condition true"
			}
			return "condition false, not done"
		}
	}
	return "= " + shown(s.Value)
}

func shown(v karl.Value) string {
	if !v.Exists() {
		return "nothing"
	}
	return show(v)
}

// json appends the steps as a list.
func (e *explainer) json(b []byte, steps []*knowledge.Step) []byte {
	b = append(b, '[')
	for i, s := range steps {
		if i > 0 {
			b = append(b, ',')
		}
		from, to := e.position(s.Node.Pos()), e.position(s.Node.End())
		b = fmt.Appendf(b, `{"line":%d,"column":%d,"end_line":%d,"end_column":%d,"type":%q,"text":`,
			from.Line, from.Column, to.Line, to.Column, strings.TrimPrefix(fmt.Sprintf("%T", s.Node), "*karl."))
		b = appendName(b, e.program.Source[s.Node.Pos():s.Node.End()])
		if s.Name != "" {
			b = appendName(append(b, `,"name":`...), s.Name)
		}
		if s.Failed {
			b = append(b, `,"failed":true`...)
		} else {
			b = appendValue(append(b, `,"value":`...), s.Value)
			b = fmt.Appendf(b, `,"true":%v`, s.Value.IsTrue())
		}
		switch s.Node.(type) {
		case *karl.Assign, *karl.IncDec, *karl.Loop:
			b = appendValue(append(b, `,"old":`...), s.Old)
			b = appendValue(append(b, `,"new":`...), s.New)
		}
		if s.Steps != nil {
			b = e.json(append(b, `,"steps":`...), s.Steps)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}
