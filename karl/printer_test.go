package karl

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// drawTree draws a tree that needs no parentheses of its own to be written: the
// printer must find out where.
func drawTree(t *rapid.T, depth int) Node {
	if depth == 0 {
		return drawLeaf(t)
	}
	sub := func() Node { return drawTree(t, depth-1) }
	subs := func(least, most int) (nodes []Node) {
		for range rapid.IntRange(least, most).Draw(t, "count") {
			nodes = append(nodes, sub())
		}
		return nodes
	}
	op := func(first, last Op) Op { return Op(rapid.IntRange(int(first), int(last)).Draw(t, "op")) }
	target := func() Node {
		if rapid.Bool().Draw(t, "index") {
			return &Index{X: drawName(t), At: sub()}
		}
		return drawName(t)
	}
	maybe := func() Node {
		if rapid.Bool().Draw(t, "absent") {
			return nil
		}
		return sub()
	}
	switch rapid.IntRange(0, 13).Draw(t, "node") {
	case 0:
		return drawLeaf(t)
	case 1:
		return &Unary{Op: op(OpNeg, OpNot), X: sub()}
	case 2:
		return &IncDec{Op: op(OpInc, OpDec), X: sub()}
	case 3:
		return &IncDec{Op: op(OpInc, OpDec), Postfix: true, X: target()}
	case 4:
		return &Assign{Op: op(OpAssign, OpDivAssign), X: target(), Y: sub()}
	case 5:
		return &Binary{Op: OpImplies, X: sub(), Y: sub()}
	case 6:
		n := &Sequence{Stmts: subs(2, 4)}
		for range len(n.Stmts) - 1 {
			n.Ops = append(n.Ops, op(OpBoth, OpLast))
		}
		return n
	case 7:
		return &Array{Elems: subs(0, 3)}
	case 8:
		return &Call{Name: "f{a}", Args: subs(0, 3)}
	case 9:
		return &SystemCall{Name: "to_string", Func: "string", Args: subs(1, 2)}
	case 10:
		return target()
	case 11:
		n := &Loop{Var: drawName(t), Start: maybe(), Step: maybe(), Stop: sub(), Through: rapid.Bool().Draw(t, "through")}
		if rapid.Bool().Draw(t, "body") {
			n.Body = &Paren{X: maybe()}
		}
		return n
	default:
		return &Binary{Op: op(OpAnd, OpRem), X: sub(), Y: sub()}
	}
}

func drawName(t *rapid.T) *Name {
	return &Name{Text: rapid.SampledFrom([]string{"a", ".i", "x{.i}", "{b}c"}).Draw(t, "name")}
}

func drawLeaf(t *rapid.T) Node {
	switch rapid.IntRange(0, 3).Draw(t, "leaf") {
	case 0:
		i := rapid.OneOf(rapid.Int64Range(-3, 3), rapid.Int64(), rapid.Just(int64(math.MinInt64))).Draw(t, "integer")
		return &Literal{Value: Int(i)}
	case 1:
		f := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, 0.5, -0.5, 2, 1e300, math.NaN(), math.Inf(1)})).
			Filter(func(f float64) bool { return !math.IsInf(f, -1) }).Draw(t, "double")
		return &Literal{Value: Float(f)}
	case 2:
		s := rapid.StringOf(rapid.SampledFrom([]rune(`'"\->);/*é `))).Filter(func(s string) bool {
			_, ok := quote(s)
			return ok
		}).Draw(t, "string")
		return &Literal{Value: String(s)}
	}
	return drawName(t)
}

// withoutParens takes the parentheses out of a tree, those of loop bodies and
// empty ones excepted.
func withoutParens(n Node) Node {
	all := func(nodes []Node) {
		for i := range nodes {
			nodes[i] = withoutParens(nodes[i])
		}
	}
	switch n := n.(type) {
	case *Paren:
		if n.X != nil {
			return withoutParens(n.X)
		}
	case *Index:
		n.At = withoutParens(n.At)
	case *Unary:
		n.X = withoutParens(n.X)
	case *IncDec:
		n.X = withoutParens(n.X)
	case *Binary:
		n.X, n.Y = withoutParens(n.X), withoutParens(n.Y)
	case *Assign:
		n.X, n.Y = withoutParens(n.X), withoutParens(n.Y)
	case *Sequence:
		all(n.Stmts)
	case *Array:
		all(n.Elems)
	case *Call:
		all(n.Args)
	case *SystemCall:
		all(n.Args)
	case *Loop:
		n.Start, n.Step, n.Stop = withoutParens(n.Start), withoutParens(n.Step), withoutParens(n.Stop)
		if n.Body != nil {
			n.Body.X = withoutParens(n.Body.X)
		}
	}
	return n
}

func TestPrintAnyTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := drawTree(t, rapid.IntRange(0, 5).Draw(t, "depth"))
		text := Print(tree)
		p, err := Parse("", text)
		if err != nil {
			t.Fatalf("%s is printed as %q: %v", dumpTree(tree), text, err)
		}
		if again := Print(p.Body); again != text {
			t.Fatalf("%q is printed as %q", text, again)
		}
		if got, want := dumpTree(withoutParens(p.Body)), dumpTree(tree); got != want {
			t.Fatalf("%q is %s, want %s", text, got, want)
		}
	})
}

func TestPrintAsWritten(t *testing.T) {
	for _, text := range []string{
		"a = 5; b = (a + 1) * 2 ;> c", "a => b => c = d += 1", "(a => b) => c", "1 - (2 - 3) - 4", "a || b && c", "!(a && b)",
		"- -a", "- --a", "---5", "+ ++a", "+-a", "- 5", "-5", "-a++", "- .5", "-.5", "++(a)", "a[1 + b]++", "a - -1",
		".i[0->10) (x += .i)", ".i[0 -2> 10] (x += .i)", ".i[-2> 4)", ".i[->3)", ".i[- 2 - 1> 3)", "a[(x - y > 2)]", "a[x > y - 2]",
		"f(1; 2, (3, 4), [a, 5.50])", "#print('a \"b\" {.i}', 0)", "x{.i}[0] = true", "nan == inf", "1e5 + 1.e2", "[]", "f()",
	} {
		p, err := Parse("", text)
		if err != nil {
			t.Error(err)
		} else if got := p.String(); got != text {
			t.Errorf("%q is printed as %q", text, got)
		}
	}
}

// TestPrintNeededParens prints trees that lack the parentheses they need.
func TestPrintNeededParens(t *testing.T) {
	for _, text := range []string{
		"a[(x - y > 2)]", "a[(x--; y > 2)]", ".i[0->(a > b))", ".i[(a - b) -c> 3)", ".i[a - b --c> 3)", ".i[(a - b) - - -c> 3)",
		".i[(a--) - -c> 3)", ".i[(a; -b) -c> 3)", ".i[a -b - c> 3)", ".i[(-a) -1> 3)", "a - (b - c)", "(a => b) => c", "!(a && b)",
		"(a = b) + 1", "f((a, b), c)", "[(a, b)]", "a; (b; c)", "(a + b) * c", "a = (b => c)", "-(a + b)", "++(a + b)", "(a; b) => c",
	} {
		p, err := Parse("", text)
		if err != nil {
			t.Error(err)
		} else if got := Print(withoutParens(p.Body)); got != text {
			t.Errorf("%q without its parentheses is printed as %q", text, got)
		}
	}
}

func TestPrintFolded(t *testing.T) {
	tests := []struct {
		value Value
		want  string
	}{
		{Int(-3), "-3"}, {Float(2), "2.0"}, {Float(1e21), "1e+21"}, {Float(math.Inf(-1)), "-inf"}, {String("it's"), `"it's"`},
		{String(`'"`), `"'" + '"'`}, {Ints([]int64{1, -2}), "[1, -2]"}, {Floats([]float64{0.5, 2}), "[0.5, 2.0]"}, {Value{}, "[]"},
	}
	for _, test := range tests {
		n := &Literal{Value: test.value}
		if got := Print(n); got != test.want {
			t.Errorf("%#v is printed as %s, want %s", test.value, got, test.want)
		}
	}
	product := &Binary{Op: OpMul, X: &Literal{Value: Int(2)}, Y: &Literal{Value: String(`'"`)}}
	if got, want := Print(product), `2 * ("'" + '"')`; got != want {
		t.Errorf("printed as %s, want %s", got, want)
	}
}
