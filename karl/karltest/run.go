package karltest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// Run runs the chunks of all files that match the patterns as subtests. Each has
// a knowledge base of its own. Files are found from the directory of the test.
func Run(t *testing.T, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		for _, c := range Read(t, pattern) {
			t.Run(c.Name, func(t *testing.T) {
				for _, f := range c.Run() {
					t.Error(f)
				}
			})
		}
	}
}

// Failure is what a chunk did not do as it says.
type Failure struct {
	File         string
	Line, Column int // in the file; Column is 0 where there is none
	Message      string
}

// Error returns "file:line:column: message".
func (f Failure) Error() string {
	if f.Column == 0 {
		return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Message)
}

// MaxSteps is after how many steps a program fails that sets no steps.
const MaxSteps = 10_000_000

// run is one run of a chunk.
type run struct {
	*Chunk
	kb       *knowledge.Base
	settings knowledge.EvalSettings
	limits   knowledge.Limits
	times    int
	out      strings.Builder
	calls    map[string]int64
	failures []Failure
}

// Run runs the program on a knowledge base of its own and returns what is not as
// the chunk says, nil if all is. "with" takes the settings strict, local, overwrite
// and "steps 100", the limits array, string, variables and depth, and "times 3", or
// twice, to run the program again on what it left.
func (c *Chunk) Run() []Failure {
	r := &run{Chunk: c, times: 1, settings: knowledge.EvalSettings{MaxSteps: MaxSteps}, calls: map[string]int64{}}
	for _, with := range c.With {
		if !r.with(with) {
			r.fail(1, 0, "there is no setting %q", with)
			return r.failures
		}
	}
	r.kb = knowledge.New(knowledge.WithLimits(r.limits), knowledge.WithOutput(&r.out))
	defer r.kb.Close()
	for _, f := range c.Functions {
		if err := r.define(f); err != nil {
			r.fail(1, 0, "function %s: %v", f.Name, err)
		}
	}
	for _, s := range c.Stubs {
		if err := r.kb.Define(s.Name, r.stub(s)); err != nil {
			r.fail(1, 0, "stub %s: %v", s.Name, err)
		}
	}
	if r.failures != nil {
		return r.failures
	}
	var v karl.Value
	var err error
	for range r.times {
		r.out.Reset()
		v, err = r.kb.Evaluate(c.Source, &r.settings)
	}
	r.faults(err)
	r.expectations(v)
	return r.failures
}

func (r *run) with(setting string) bool {
	word, rest, _ := strings.Cut(setting, " ")
	n, err := strconv.Atoi(rest)
	switch word {
	case "strict", "local", "overwrite", "twice":
		if rest != "" {
			return false
		}
	default:
		if err != nil || n < 1 {
			return false
		}
	}
	switch word {
	case "strict":
		r.settings.Strict = true
	case "local":
		r.settings.LocalOnly = true
	case "overwrite":
		r.settings.Overwrite = true
	case "steps":
		r.settings.MaxSteps = uint64(n)
	case "array":
		r.limits.Array = n
	case "string":
		r.limits.String = n
	case "variables":
		r.limits.Variables = n
	case "depth":
		r.limits.CallDepth = n
	case "twice":
		r.times = 2
	case "times":
		r.times = n
	default:
		return false
	}
	return true
}

func (r *run) define(f Function) error {
	if f.Path != "" {
		if _, err := karl.Parse(f.Path, f.Body); err != nil {
			return err // with the name of the file
		}
	}
	return r.kb.DefineExpression(f.Name, f.Body)
}

// stub returns a function that counts its calls.
func (r *run) stub(s Stub) knowledge.Func {
	return func(c *knowledge.Call) (karl.Value, error) {
		n := r.calls[s.Name]
		r.calls[s.Name]++
		if s.Values == nil {
			return karl.Value{}, errors.New(s.Fails)
		}
		return s.Values[min(n, int64(len(s.Values)-1))], nil
	}
}

func (r *run) fail(line, column int, format string, args ...any) {
	r.failures = append(r.failures, Failure{r.File, r.Line + line - 1, column, fmt.Sprintf(format, args...)})
}

// expectations compares what the comments at the end say.
func (r *run) expectations(v karl.Value) {
	last := 1 + strings.Count(strings.TrimRight(r.Source, "\n"), "\n")
	line := func(prefix string) int {
		lines := strings.Split(r.Source, "\n")
		for i := len(lines) - 1; i >= 0 && strings.HasPrefix(lines[i], "//"); i-- {
			if strings.HasPrefix(lines[i], prefix) {
				return i + 1
			}
		}
		return last
	}
	if r.Result != nil && !same(v, *r.Result) {
		r.fail(line("// = "), 0, "the value is %s, want %s", describe(v), describe(*r.Result))
	}
	for _, want := range r.Vars {
		if got := r.kb.Get(want.Name); !same(got, want.Value) {
			r.fail(line("// "+want.Name+" = "), 0, "%s is %s, want %s", want.Name, describe(got), describe(want.Value))
		}
	}
	for _, want := range r.Calls {
		if got := r.calls[want.Name]; got != want.Count {
			r.fail(line("// called "+want.Name+" = "), 0, "%s was called %d times, want %d", want.Name, got, want.Count)
		}
	}
	if r.Prints != nil && r.out.String() != *r.Prints {
		r.fail(line("// prints "), 0, "printed %q, want %q", r.out.String(), *r.Prints)
	}
}

// faults compares what went wrong with what must. The place of a fault is the one
// in the chunk, where it called whatever failed; the message is the whole one.
func (r *run) faults(err error) {
	var places []karl.Pos
	var messages []string
	var fault *knowledge.EvalError
	var list karl.ErrorList
	switch {
	case errors.As(err, &fault):
		outermost := fault.Sites[len(fault.Sites)-1]
		if outermost.Function != "" && len(r.Faults) > 0 { // the chain of calls was too long to keep
			outermost.Pos.Line, outermost.Pos.Column = r.Faults[0].Line, r.Faults[0].Column
		}
		places, messages = append(places, outermost.Pos), append(messages, err.Error())
	case errors.As(err, &list):
		for _, f := range list {
			places, messages = append(places, f.Pos), append(messages, f.Msg)
		}
	case err != nil:
		r.fail(1, 0, "%v", err)
	}
	for i, at := range places {
		if i >= len(r.Faults) {
			r.fail(max(at.Line, 1), at.Column, "%s", messages[i])
			continue
		}
		f := r.Faults[i]
		if f.Line != at.Line || f.Column != 0 && f.Column != at.Column || !f.Message.MatchString(messages[i]) {
			r.fail(f.Line, f.Column, "the fault is at %s: %s; want one like %q here", at, messages[i], f.Message)
		}
	}
	for _, f := range r.Faults[min(len(places), len(r.Faults)):] {
		r.fail(f.Line, f.Column, "no fault like %q", f.Message)
	}
}

// same reports whether two values are of one kind and have the same bytes; nan is
// the same as nan.
func same(v, w karl.Value) bool {
	k, bits, _ := v.Words()
	l, others, _ := w.Words()
	switch {
	case k != l:
		return false
	case k == karl.KindDouble && v.Float() != v.Float():
		return w.Float() != w.Float()
	case k == karl.KindInteger || k == karl.KindDouble:
		return bits == others
	}
	return string(v.Buffer().Bytes()) == string(w.Buffer().Bytes())
}

// describe returns a value as an expression, and its kind where that says too little.
func describe(v karl.Value) string {
	const most = 200
	text := v.String()
	switch {
	case !v.Exists():
		return "nothing"
	case v.Kind() == karl.KindDouble:
		text = strconv.FormatFloat(v.Float(), 'g', -1, 64)
		if strings.Trim(text, "-0123456789") == "" {
			text += ".0"
		}
	case v.Kind() == karl.KindString:
		text = "'" + text + "'"
	case v.Kind().IsArray():
		var elems []string
		for i := range min(v.Len(), most) {
			e, _ := v.At(i)
			elems = append(elems, describe(e))
		}
		text = "[" + strings.Join(elems, ", ") + "]"
	case v.Kind() != karl.KindInteger:
		text = v.Kind().String() + " " + text
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
