package knowledge_test

import (
	"strings"
	"testing"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// TestDeepTrees calls a function whose tree is deep inside itself: the stack is
// bounded by an error, which leaves nothing behind.
func TestDeepTrees(t *testing.T) {
	kb := newBase(t)
	err := kb.DefineExpression("deep", "--n > 0 => total = deep()"+strings.Repeat(" + 1", 30_000)+" ;> total")
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if v, err := kb.Evaluate("n = 3; total = 0 ;> deep()", nil); err != nil || v.Int() != 60_000 {
			t.Fatalf("three deep: %v, %v", v, err)
		}
		if _, err := kb.Evaluate("n = 9 ;> deep()", nil); !isLimit(err) {
			t.Fatalf("nine deep: %v, want the limit of nesting", err)
		}
	}
}

// TestArgumentsEnd runs programs from a host function where a function's body
// ran before: they have no arguments.
func TestArgumentsEnd(t *testing.T) {
	kb := newBase(t)
	count, err := kb.Compile("#args() * 10 + #size(#arg(0))")
	if err != nil {
		t.Fatal(err)
	}
	if err := kb.DefineExpression("f", "#args()"); err != nil {
		t.Fatal(err)
	}
	kb.Define("host", func(c *knowledge.Call) (karl.Value, error) { return c.Guard.Run(count, nil) })
	if v := eval(t, kb, "f('long', 2) ;> host(3, 4, 5)"); v.Int() != 1 {
		t.Errorf("a program run by a host function has arguments: %v", v)
	}
	if v, err := count.Evaluate(nil); err != nil || v.Int() != 1 {
		t.Errorf("a program has arguments: %v, %v", v, err)
	}
}

// TestStepsOfNestedRuns has a host function run programs with limits of their
// own: their steps count for the outer limit too, which ends them in turn.
func TestStepsOfNestedRuns(t *testing.T) {
	kb := newBase(t)
	turns, err := kb.Compile(".i[0->30) (++n)")
	if err != nil {
		t.Fatal(err)
	}
	kb.Define("nested", func(c *knowledge.Call) (karl.Value, error) {
		return c.Guard.Run(turns, &knowledge.EvalSettings{MaxSteps: 50})
	})
	for _, c := range []struct {
		max   uint64
		turns int64
	}{{0, 120}, {200, 120}, {100, 90}, {40, 30}, {20, 15}} {
		eval(t, kb, "n = 0")
		_, err := kb.Evaluate("nested() ;> nested() ;> nested() ;> nested()", &knowledge.EvalSettings{MaxSteps: c.max})
		if n := kb.Get("n").Int(); isLimit(err) != (c.turns < 120) || n > c.turns+2 || n < c.turns-6 {
			t.Errorf("limit %d: %d turns, %v; want about %d", c.max, n, err, c.turns)
		}
	}
}
