package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/peterh/liner"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

type replCmd struct {
	File    []string `arg:"" optional:"" help:"Program files to run first."`
	Set     []string `sep:"none" placeholder:"NAME=VALUE" help:"Set a variable first. May be repeated."`
	History *string  `placeholder:"FILE" help:"Where the lines are kept; '' is nowhere. The default is karl/history in your directory for settings."`
	network
}

// Help is shown by kong below the usage.
func (c *replCmd) Help() string {
	return `Each program that is typed is evaluated in one knowledge base and its value printed; one that is not complete goes on in the next line. Tab completes variables, functions and system calls. Ctrl-C stops a program or drops what was typed, Ctrl-D leaves. :help lists the commands.`
}

// Validate is called by kong.
func (c *replCmd) Validate() error {
	if err := (&flags{Set: c.Set}).Validate(); err != nil {
		return err
	}
	return c.network.check(false)
}

// Run is called by kong.
func (c *replCmd) Run(p *process) error {
	f := &flags{Set: c.Set}
	r := &repl{shown: map[string]karl.Value{}, functions: map[string]bool{}, out: &lineWriter{w: p.out}}
	r.session = newSession(p, f, append(c.network.options(p), knowledge.WithOutput(r.out))...)
	defer r.close()
	assignments := f.assignments()
	programs, err := parse(assignments.texts())
	if err != nil {
		return err
	}
	if c.given() {
		if err := r.connect(&c.network, knowledge.Sharing{}); err != nil {
			return err
		}
		r.announce(&c.network)
	}
	if err := r.set(context.Background(), assignments, programs); err != nil {
		return err
	}
	for _, file := range c.File {
		r.command("load", file)
	}
	if info, err := os.Stdin.Stat(); p.in != os.Stdin || err != nil || info.Mode()&os.ModeCharDevice == 0 || !liner.TerminalSupported() {
		lines := bufio.NewScanner(p.in)
		lines.Buffer(nil, karl.DefaultMaxSource)
		return r.loop(func(string) (string, error) {
			if lines.Scan() {
				return lines.Text(), nil
			}
			return "", errors.Join(lines.Err(), io.EOF)
		})
	}
	return r.terminal(c.historyFile())
}

// historyFile returns where the lines are kept, "" for nowhere.
func (c *replCmd) historyFile() string {
	if c.History != nil {
		return *c.History
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "karl", "history")
}

// repl is a session at a prompt.
type repl struct {
	*session
	out       *lineWriter
	edit      *liner.State // nil: no terminal
	functions map[string]bool
	watched   []*regexp.Regexp
	shown     map[string]karl.Value // of the watched variables
}

// terminal reads lines that can be edited.
func (r *repl) terminal(history string) error {
	signal.Notify(make(chan os.Signal, 1), os.Interrupt) // between two programs it ends nothing
	edit := liner.NewLiner()
	defer edit.Close()
	edit.SetCtrlCAborts(true)
	edit.SetTabCompletionStyle(liner.TabPrints)
	edit.SetWordCompleter(r.complete)
	if f, err := os.Open(history); err == nil {
		edit.ReadHistory(io.LimitReader(f, karl.DefaultMaxSource)) // what cannot be read is forgotten
		f.Close()
	}
	r.edit = edit
	fmt.Fprintln(r.out, "KaRL. :help lists the commands, Ctrl-D leaves.")
	err := r.loop(edit.Prompt)
	if history == "" {
		return err
	}
	// Only the user may read it: what was typed may be secret.
	kept := os.MkdirAll(filepath.Dir(history), 0o700)
	if kept == nil {
		var f *os.File
		if f, kept = os.OpenFile(history, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); kept == nil {
			_, kept = edit.WriteHistory(f)
			kept = errors.Join(kept, f.Close())
		}
	}
	if err == nil && kept != nil {
		return fail(exitIO, fmt.Errorf("the history: %w", kept))
	}
	return err
}

// loop reads programs and commands until the input ends.
func (r *repl) loop(read func(prompt string) (string, error)) error {
	src := ""
	for r.p.out.broken() == nil {
		prompt := "karl> "
		if src != "" {
			prompt = "  ... "
		}
		r.out.endLine()
		line, err := read(prompt)
		switch {
		case errors.Is(err, liner.ErrPromptAborted):
			src = ""
			continue
		case errors.Is(err, io.EOF):
			if src != "" {
				r.evaluate(src)
			}
			r.out.endLine()
			return nil
		case err != nil:
			return fail(exitIO, err)
		}
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), ":"); ok && src == "" {
			r.remember(line)
			name, argument, _ := strings.Cut(command, " ")
			if name == "quit" || name == "q" {
				return nil
			}
			r.command(name, strings.TrimSpace(argument))
			r.showWatched()
			continue
		}
		src += line + "\n"
		if strings.TrimSpace(src) == "" {
			src = ""
			continue
		}
		if _, err := karl.Parse("", src); karl.IsIncomplete(err) {
			continue
		}
		r.remember(strings.Join(strings.Fields(src), " "))
		r.evaluate(strings.TrimSuffix(src, "\n"))
		r.showWatched()
		src = ""
	}
	return nil
}

func (r *repl) remember(line string) {
	if r.edit != nil {
		r.edit.AppendHistory(line)
	}
}

// report prints an error, which ends nothing.
func (r *repl) report(err error) {
	r.out.endLine()
	io.WriteString(r.p.err, diagnostic(err))
}

// evaluate runs a program and prints its value. An interrupt stops it.
func (r *repl) evaluate(src string) bool {
	return r.evaluateAs("<input>", src)
}

func (r *repl) evaluateAs(name, src string) bool {
	program, err := karl.Parse(name, src)
	if err != nil {
		r.report(err)
		return false
	}
	e, err := r.kb.Bind(program)
	if err != nil {
		r.report(err)
		return false
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	v, err := e.EvaluateContext(ctx, nil)
	if err != nil {
		r.report(err)
		return false
	}
	r.out.endLine()
	if v.Exists() {
		fmt.Fprintln(r.out, show(v))
	} else {
		fmt.Fprintln(r.out, "nothing")
	}
	return true
}

// showWatched prints the watched variables that are not as they were.
func (r *repl) showWatched() {
	if r.watched == nil {
		return
	}
	for name, record := range r.kb.All("") {
		was, known := r.shown[name]
		if !r.watches(name) || known && was.Kind() == record.Value.Kind() && show(was) == show(record.Value) {
			continue
		}
		r.shown[name] = record.Value
		if known || record.Value.Exists() {
			r.out.endLine()
			fmt.Fprintf(r.out, "  %s = %s\n", plain(name), show(record.Value))
		}
	}
}

func (r *repl) watches(name string) bool {
	for _, w := range r.watched {
		if w.MatchString(name) {
			return true
		}
	}
	return false
}

// timed evaluates a program and says how long that took.
func (r *repl) timed(src string) {
	start := time.Now()
	if r.evaluate(src) {
		fmt.Fprintf(r.out, "in %v\n", time.Since(start))
	}
}

// lineWriter knows whether the last line was ended.
type lineWriter struct {
	w    io.Writer
	open bool
}

func (l *lineWriter) Write(b []byte) (int, error) {
	if len(b) > 0 {
		l.open = b[len(b)-1] != '\n'
	}
	return l.w.Write(b)
}

func (l *lineWriter) endLine() {
	if l.open {
		l.Write([]byte{'\n'})
	}
}
