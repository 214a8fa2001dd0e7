package main

import (
	"fmt"
	"io"
)

type evalCmd struct {
	Expr    []string `arg:"" optional:"" help:"Programs, evaluated in order in one knowledge base; - is standard input. One that starts with - goes after --."`
	Batch   string   `placeholder:"FILE" help:"Evaluate the JSON lines of a file, - for standard input, and write a JSON line for each."`
	Control string   `placeholder:"ADDR" help:"Evaluate in the knowledge base that serves there (karl run --serve --serve-evaluate); --timeout is how long to wait, 5s without it."`
	flags
}

// Help is shown by kong below the usage.
func (c *evalCmd) Help() string {
	return `The value of the last program is printed, as text.

A line of a batch is an object: "program" or "programs" (a list that runs in order), and optionally "id", "functions" (an object of names and programs) and "settings" (exception_on_uninitialized, expand_variables). Its answer has "id", "result" or "error", "vars" and "output". Each line has a knowledge base of its own, finds no files, and is bounded: 10,000,000 steps, 10 seconds (--max-steps and --timeout change these), 100,000 variables, strings of 1 MiB, arrays of 131,072 elements, 1 MiB of printed text, and about 512 MiB of memory (a line that needs more has no vars). A line may have 16 MiB. An error has "phase": compile, evaluate, or input for a line that is no question; "line" and "column" are places in the program, for input in the batch.

Strings and printed text that are not UTF-8 are lists of bytes in JSON, as files are; such a byte in a name is \udc80 to \udcff.`
}

// Validate is called by kong.
func (c *evalCmd) Validate() error {
	switch {
	case c.Batch == "" && len(c.Expr) == 0:
		return fmt.Errorf("expected a program (EXPR) or --batch")
	case c.Control != "" && (c.Batch != "" || len(c.Set) > 0 || c.Print || c.JSON || c.MaxSteps != nil):
		return fmt.Errorf("--control goes with --timeout only")
	case c.Batch != "" && (len(c.Expr) > 0 || len(c.Set) > 0 || c.Print || c.JSON):
		return fmt.Errorf("--batch goes with --max-steps and --timeout only")
	}
	return c.flags.Validate()
}

// Run is called by kong.
func (c *evalCmd) Run(p *process) error {
	if c.Batch != "" {
		return p.batch(c.Batch, &c.flags)
	}
	if c.Control != "" {
		return c.evaluateAt(p)
	}
	s := newSession(p, &c.flags)
	defer s.close()
	err := c.evaluate(s)
	if err == nil && !c.JSON {
		io.WriteString(p.out, s.text(s.last)+"\n")
	}
	s.show(err)
	return err
}

func (c *evalCmd) evaluate(s *session) error {
	texts, err := c.texts(s.p)
	if err != nil {
		return err
	}
	settings := c.assignments().texts()
	programs, err := parse(append(settings, texts...))
	if err != nil {
		return err
	}
	ctx, stop := s.interruptible()
	defer stop()
	if err := s.set(ctx, c.assignments(), programs[:len(settings)]); err != nil {
		return err
	}
	bound, err := s.bind(programs[len(settings):])
	if err != nil {
		return err
	}
	return s.run(ctx, bound)
}

// texts names the programs, so that errors say which one they are in.
func (c *evalCmd) texts(p *process) ([]text, error) {
	var texts []text
	for i, src := range c.Expr {
		if src == "-" {
			t, err := p.load([]string{src})
			if err != nil {
				return nil, err
			}
			texts = append(texts, t...)
			continue
		}
		name := "<expr>"
		if len(c.Expr) > 1 {
			name = fmt.Sprintf("<expr %d>", i+1)
		}
		texts = append(texts, text{name, src})
	}
	return texts, nil
}
