package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// Limits of a line of a batch, so that no line ends the batch.
const (
	maxLine      = 16 << 20 // bytes
	batchSteps   = 10_000_000
	batchTimeout = 10 * time.Second // bounds #sleep too
	batchPrinted = 1 << 20          // bytes
)

var batchLimits = knowledge.Limits{Variables: 100_000, Array: 1 << 17, String: 1 << 20}

// question is a line of a batch.
type question struct {
	ID        json.RawMessage            `json:"id"`
	Program   *string                    `json:"program"`
	Programs  []string                   `json:"programs"`
	Functions map[string]string          `json:"functions"`
	Settings  map[string]json.RawMessage `json:"settings"`

	strict bool
}

// batch is what the lines have in common.
type batch struct {
	steps   uint64
	timeout time.Duration
	files   *os.Root // an empty place
	memory  *memory
}

// batch answers the lines of a file, each at once.
func (p *process) batch(file string, f *flags) error {
	in := p.in
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return fail(exitIO, err)
		}
		defer opened.Close()
		in = opened
	}
	b := batch{steps: batchSteps, timeout: batchTimeout, memory: watchMemory()}
	defer b.memory.close()
	if f.MaxSteps != nil {
		b.steps = *f.MaxSteps
	}
	if f.Timeout != nil {
		b.timeout = *f.Timeout
	}
	files, remove, err := nowhere()
	if err != nil {
		return fail(exitIO, err)
	}
	defer remove()
	b.files = files

	lines := lineReader{r: bufio.NewReaderSize(in, 64<<10)}
	out := bufio.NewWriterSize(p.out, 64<<10)
	for {
		line, err := lines.next()
		if err == io.EOF {
			return nil
		}
		if err != nil && !errors.Is(err, errLongLine) {
			return failf(exitIO, "reading the batch: %w", err)
		}
		if err == nil && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var q *question
		if err == nil {
			q, err = parseQuestion(line)
		}
		if err != nil {
			err = refuse(q, lines.n, err).writeTo(out)
		} else {
			err = b.answer(q, out)
		}
		if err == nil {
			err = out.Flush()
		}
		if err != nil {
			return fail(exitIO, err)
		}
	}
}

// nowhere returns a directory without files where none can be made, as far as
// the system lets a directory in use be removed.
func nowhere() (*os.Root, func(), error) {
	dir, err := os.MkdirTemp("", "karl-batch-")
	if err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(dir)
	os.Remove(dir)
	if err != nil {
		return nil, nil, err
	}
	return root, func() {
		root.Close()
		os.RemoveAll(dir)
	}, nil
}

// lineReader reads lines of bounded length.
type lineReader struct {
	r   *bufio.Reader
	buf []byte
	n   int // the number of the line, from 1
}

var errLongLine = fmt.Errorf("the line is longer than %d bytes", maxLine)

// next returns the next line, valid until the next call. Of one that is too
// long it skips the rest.
func (l *lineReader) next() ([]byte, error) {
	l.n++
	l.buf = l.buf[:0]
	read := 0
	for {
		part, err := l.r.ReadSlice('\n')
		read += len(part)
		if read <= maxLine {
			l.buf = append(l.buf, part...)
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && read > 0:
		case err != nil:
			return nil, err
		}
		if read > maxLine {
			return nil, errLongLine
		}
		return l.buf, nil
	}
}

// parseQuestion reads a line. With an error it returns what was readable of it.
func parseQuestion(line []byte) (*question, error) {
	if !utf8.Valid(line) {
		return nil, errors.New("the line is not UTF-8")
	}
	q := &question{}
	if err := json.Unmarshal(line, q); err != nil {
		return q, err
	}
	switch {
	case bytes.TrimSpace(line)[0] != '{':
		return q, errors.New("the line is not an object")
	case q.Program == nil && len(q.Programs) == 0:
		return q, errors.New(`there is neither "program" nor "programs"`)
	case q.Program != nil && q.Programs != nil:
		return q, errors.New(`there are both "program" and "programs"`)
	case q.Program != nil:
		q.Programs = []string{*q.Program}
	}
	for _, name := range sortedKeys(q.Settings) {
		var on bool
		if err := json.Unmarshal(q.Settings[name], &on); err != nil {
			return q, fmt.Errorf("setting %q is %s, want true or false", name, clip(string(q.Settings[name])))
		}
		switch name {
		case "exception_on_uninitialized":
			q.strict = on
		case "expand_variables": // has no effect on names in KaRL
		default:
			return q, fmt.Errorf("unknown setting %q", clip(name))
		}
	}
	return q, nil
}

// refuse is the answer to a line that is no question.
func refuse(q *question, n int, err error) *record {
	f := &fault{phase: "input", message: err.Error(), pos: karl.Pos{Line: n, Column: 1}}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		f.pos.Column = max(int(syntax.Offset), 1)
	case errors.As(err, &kind):
		f.message = fmt.Sprintf("%q is a JSON %s, want a %s", kind.Field, kind.Value, jsonKind(kind.Type.Kind().String()))
		if kind.Field == "" {
			f.message = fmt.Sprintf("the line is a JSON %s, want an object", kind.Value)
		}
	}
	r := &record{id: []byte("null"), fault: f}
	if q != nil && len(q.ID) > 0 {
		r.id = q.ID
	}
	return r
}

func jsonKind(goKind string) string {
	switch goKind {
	case "slice":
		return "list"
	case "map", "struct":
		return "object"
	}
	return goKind
}

var (
	errPrinted = fmt.Errorf("printed more than %d bytes", batchPrinted)
	errMemory  = fmt.Errorf("used more than %d bytes of memory", maxMemory)
)

// answer evaluates a question in a base of its own.
func (b *batch) answer(q *question, w io.Writer) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	ctx, done := context.WithTimeoutCause(ctx, b.timeout, fmt.Errorf("stopped after %v", b.timeout))
	defer done()
	defer b.memory.guard(cancel)()

	printed := &limited{cancel: cancel}
	kb := knowledge.New(knowledge.WithOutput(printed), knowledge.WithLimits(batchLimits),
		knowledge.WithFiles(b.files), knowledge.WithEnv(), knowledge.WithSleep())
	defer kb.Close()

	v, f := b.evaluate(ctx, kb, q)
	stopped := context.Cause(ctx)
	if f == nil && (stopped == errMemory || stopped == errPrinted) { // just before its end
		f = &fault{phase: "evaluate", message: stopped.Error()}
	}
	text := printed.String()
	r := record{id: q.ID, output: &text, fault: f}
	if stopped != errMemory {
		r.vars = kb.All("")
	}
	if len(r.id) == 0 {
		r.id = []byte("null")
	}
	if f == nil {
		r.result = &v
	}
	return r.writeTo(w)
}

func (b *batch) evaluate(ctx context.Context, kb *knowledge.Base, q *question) (v karl.Value, f *fault) {
	for _, name := range sortedKeys(q.Functions) {
		if err := kb.DefineExpression(name, q.Functions[name]); err != nil {
			f := faultOf(exitCompile, err)
			f.message = fmt.Sprintf("function %q: %s", clip(name), f.message)
			return v, f
		}
	}
	settings := &knowledge.EvalSettings{MaxSteps: b.steps, Strict: q.strict}
	for i, src := range q.Programs {
		code := exitCompile
		e, err := kb.Compile(src)
		if err == nil {
			code = exitEvaluate
			v, err = e.EvaluateContext(ctx, settings)
		}
		if err != nil {
			f := faultOf(code, err)
			if len(q.Programs) > 1 {
				f.program = i + 1
			}
			return karl.Value{}, f
		}
	}
	return v, nil
}

// limited keeps what is printed, up to the limit.
type limited struct {
	strings.Builder
	full   bool
	cancel context.CancelCauseFunc
}

func (l *limited) Write(p []byte) (int, error) {
	if l.full || l.Len()+len(p) > batchPrinted {
		l.full = true
		l.cancel(errPrinted)
		return 0, errPrinted
	}
	return l.Builder.Write(p)
}

// WriteString is what io.WriteString calls.
func (l *limited) WriteString(s string) (int, error) { return l.Write([]byte(s)) }

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// clip shortens a text for a message.
func clip(s string) string {
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:61], "") + "..."
	}
	return s
}
