package knowledge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/karl/karltest"
	"github.com/madara-go/madara/knowledge"
)

// TestExplainDoesTheSame runs the programs of testdata with and without a trace:
// values, variables, texts and faults must be the same.
func TestExplainDoesTheSame(t *testing.T) {
	explained := 0
	for _, c := range karltest.Read(t, "testdata/*.karl") {
		p, err := karl.Parse("", c.Source)
		if err != nil || strings.Contains(c.Source, "#rand") || strings.Contains(c.Source, "#get_time") {
			continue // nothing runs, or something of chance or time
		}
		run := func(traced bool) string {
			var out strings.Builder
			kb := newBase(t, knowledge.WithOutput(&out), knowledge.WithLimits(knowledge.Limits{CallDepth: 20}))
			for _, f := range c.Functions {
				if err := kb.DefineExpression(f.Name, f.Body); err != nil {
					t.Fatal(err)
				}
			}
			s := &knowledge.EvalSettings{MaxSteps: 20_000, Strict: strings.Contains(strings.Join(c.With, " "), "strict")}
			var v karl.Value
			var err error
			if traced {
				v, _, err = kb.Explain(context.Background(), p, s)
			} else {
				var e *knowledge.Expression
				if e, err = kb.Bind(p); err == nil {
					v, err = e.Evaluate(s)
				}
			}
			text := fmt.Sprintf("%s\n%v\n%s\n", describeValue(v), err, out.String())
			for name, r := range kb.All("") {
				text += name + " = " + describeValue(r.Value) + "\n"
			}
			return text
		}
		want := run(false)
		explained++
		if got := run(true); got != want {
			t.Errorf("%s:\n%s\nwith a trace:\n%s\nwithout:\n%s", c.Name, c.Source, got, want)
		}
	}
	if explained < 300 {
		t.Errorf("%d programs were compared, there are more", explained)
	}
}

// TestExplain checks the tree of a program with each kind of step.
func TestExplain(t *testing.T) {
	kb := newBase(t)
	kb.Define("twice", func(c *knowledge.Call) (karl.Value, error) { return karl.Int(2 * c.Arg(0).Int()), nil })
	explain := func(src string) (string, error) {
		t.Helper()
		p, err := karl.Parse("", src)
		if err != nil {
			t.Fatal(err)
		}
		_, trace, err := kb.Explain(context.Background(), p, nil)
		var b strings.Builder
		var write func([]*knowledge.Step, int)
		write = func(steps []*knowledge.Step, depth int) {
			for _, s := range steps {
				fmt.Fprintf(&b, "%s%s: ", strings.Repeat(" ", depth), src[s.Node.Pos():s.Node.End()])
				if s.Failed {
					b.WriteString("failed")
				} else {
					b.WriteString(s.Value.String())
				}
				if s.Name != "" {
					fmt.Fprintf(&b, " %s %q %q", s.Name, s.Old, s.New)
				}
				b.WriteString("\n")
				write(s.Steps, depth+1)
			}
		}
		write(trace.Steps, 0)
		return b.String(), err
	}
	for src, want := range map[string]string{
		"b = b = 4":          "b = b = 4: 4 b \"4\" \"4\"\n b = 4: 4 b \"\" \"4\"\n",
		"c > 1 => d = 1":     "c > 1 => d = 1: 0\n c > 1: 0\n  c:  c \"\" \"\"\n",
		"e = twice(21)":      "e = twice(21): 42 e \"\" \"42\"\n twice(21): 42\n",
		"f{n} = 1":           "f{n} = 1: 1 f \"\" \"1\"\n",
		"++g || h":           "++g || h: 1\n ++g: 1 g \"\" \"1\"\n",
		"i[0 -> 2)(j += i)":  "i[0 -> 2)(j += i): 2 i \"\" \"2\"\n j += i: 0 j \"\" \"0\"\n  i: 0 i \"\" \"\"\n j += i: 1 j \"0\" \"1\"\n  i: 1 i \"\" \"\"\n",
		"k = 1 ;> nobody(k)": "k = 1 ;> nobody(k): failed\n k = 1: 1 k \"\" \"1\"\n nobody(k): failed\n  k: 1 k \"\" \"\"\n",
		"l[1] = 5; l[1]":     "l[1] = 5; l[1]: 5\n l[1] = 5: 5 l \"\" \"0, 5\"\n l[1]: 5\n",
	} {
		got, err := explain(src)
		if got != want || (err != nil) != strings.Contains(want, "failed") {
			t.Errorf("%s\n%s%v\nwant\n%s", src, got, err, want)
		}
	}
	kb.Close()
	if _, _, err := kb.Explain(context.Background(), &karl.Program{}, nil); !errors.Is(err, knowledge.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestExplainIsBounded checks that a long run keeps a bounded number of steps.
func TestExplainIsBounded(t *testing.T) {
	kb := newBase(t)
	p, err := karl.Parse("", ".i[0 -> 100000)(x += .i)")
	if err != nil {
		t.Fatal(err)
	}
	v, trace, err := kb.Explain(context.Background(), p, nil)
	if err != nil || v.Int() != 100_000 || trace.Dropped != 100_001 {
		t.Errorf("value %v, %d steps left out, %v", v, trace.Dropped, err)
	}
}
