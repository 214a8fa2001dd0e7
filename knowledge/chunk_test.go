package knowledge_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/karl/karltest"
	"github.com/madara-go/madara/knowledge"
)

// TestChunks runs the programs of testdata, each on a base of its own, and checks
// the values and faults that their files say. The place of a fault is the one in
// the chunk, where it called whatever failed; the message is the whole one.
// "with" takes the settings strict, local, overwrite and "steps 100", the limits
// array, string, variables and depth, and "twice", to run the program again on
// what it left.
func TestChunks(t *testing.T) {
	for _, c := range karltest.Read(t, "testdata/*.karl") {
		t.Run(c.Name, func(t *testing.T) { runChunk(t, c) })
	}
}

func runChunk(t *testing.T, c karltest.Chunk) {
	s := knowledge.EvalSettings{MaxSteps: 100_000}
	var limits knowledge.Limits
	runs := 1
	for _, with := range c.With {
		word, rest, _ := strings.Cut(with, " ")
		n, _ := strconv.Atoi(rest)
		switch word {
		case "strict":
			s.Strict = true
		case "local":
			s.LocalOnly = true
		case "overwrite":
			s.Overwrite = true
		case "steps":
			s.MaxSteps = uint64(n)
		case "array":
			limits.Array = n
		case "string":
			limits.String = n
		case "variables":
			limits.Variables = n
		case "depth":
			limits.CallDepth = n
		case "twice":
			runs = 2
		default:
			t.Fatalf("no setting %q", with)
		}
	}
	var out strings.Builder
	kb := newBase(t, knowledge.WithLimits(limits), knowledge.WithOutput(&out))
	for _, f := range c.Functions {
		if err := kb.DefineExpression(f.Name, f.Body); err != nil {
			t.Fatalf("function %s: %v", f.Name, err)
		}
	}
	var v karl.Value
	var err error
	for range runs {
		out.Reset()
		v, err = kb.Evaluate(c.Source, &s)
	}
	checkChunkFaults(t, c, err)
	if c.Result != nil && describeValue(v) != describeValue(*c.Result) {
		t.Errorf("%s\nis %.200s, want %.200s", c.Source, describeValue(v), describeValue(*c.Result))
	}
	for _, want := range c.Vars {
		if got := kb.Get(want.Name); describeValue(got) != describeValue(want.Value) {
			t.Errorf("%s\nleft %s = %.200s, want %.200s", c.Source, want.Name, describeValue(got), describeValue(want.Value))
		}
	}
	if c.Prints != nil && out.String() != *c.Prints {
		t.Errorf("%s\nprinted %q, want %q", c.Source, out.String(), *c.Prints)
	}
}

func checkChunkFaults(t *testing.T, c karltest.Chunk, err error) {
	t.Helper()
	var places []karl.Pos
	var messages []string
	var fault *knowledge.EvalError
	var faults karl.ErrorList
	switch {
	case errors.As(err, &fault):
		outermost := fault.Sites[len(fault.Sites)-1]
		if outermost.Function != "" && len(c.Faults) > 0 { // the chain of calls was too long to keep
			outermost.Pos.Line, outermost.Pos.Column = c.Faults[0].Line, c.Faults[0].Column
		}
		places, messages = append(places, outermost.Pos), append(messages, err.Error())
	case errors.As(err, &faults):
		for _, f := range faults {
			places, messages = append(places, f.Pos), append(messages, f.Msg)
		}
	case err != nil:
		t.Errorf("%s\n%v", c.Source, err)
	}
	for i, at := range places {
		if i >= len(c.Faults) {
			t.Errorf("%s\nunexpected fault: %v", c.Source, messages[i])
			continue
		}
		f := c.Faults[i]
		if f.Line != at.Line || f.Column != 0 && f.Column != at.Column || !f.Message.MatchString(messages[i]) {
			t.Errorf("%s\nfault at %s: %s\nwant %s at %d:%d", c.Source, at, messages[i], f.Message, f.Line, f.Column)
		}
	}
	for _, f := range c.Faults[min(len(places), len(c.Faults)):] {
		t.Errorf("%s\nno fault like %s at %s", c.Source, f.Message, fmt.Sprintf("%d:%d", f.Line, f.Column))
	}
}
