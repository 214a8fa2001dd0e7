package karl

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// machine runs trees without loops and calls, plainly and in the order the
// language asks for, so that tests can hold folded trees against others.
type machine struct {
	vars   map[string]Value
	format NumberFormat
}

// beyond is what run panics with at a node that it cannot run.
type beyond struct{ node string }

// tryRun runs n, and reports whether it could.
func (m *machine) tryRun(n Node) (v Value, ok bool) {
	defer func() {
		switch p := recover().(type) {
		case nil, beyond:
		default:
			panic(p)
		}
	}()
	return m.run(n), true
}

func (m *machine) run(n Node) Value {
	switch n := n.(type) {
	case *Literal:
		return n.Value
	case *Name:
		return m.vars[plain(n)]
	case *Index:
		return element(m.vars[plain(n.X)], m.run(n.At))
	case *Paren:
		if n.X == nil {
			return Int(0)
		}
		return m.run(n.X)
	case *Unary:
		x := m.run(n.X)
		switch n.Op {
		case OpNeg:
			return x.Neg()
		case OpPlus:
			return x.Plus()
		}
		return x.Not()
	case *IncDec:
		return m.step(n)
	case *Binary:
		return m.binary(n)
	case *Assign:
		y := m.run(n.Y)
		if op := n.Op.Operator(); op != 0 {
			y = op.Apply(m.run(n.X), y, &m.format)
		}
		m.store(n.X, y)
		return y
	case *Sequence:
		v := m.run(n.Stmts[0])
		for i, o := range n.Ops {
			w := m.run(n.Stmts[i+1])
			if o == OpLast || o == OpBoth && Greater(w, v) || o == OpEither && Less(w, v) {
				v = w
			}
		}
		return v
	case *Array:
		var elems []Value
		for _, e := range n.Elems {
			elems = append(elems, m.run(e))
		}
		return ArrayOf(elems)
	case *SystemCall:
		return m.call(n)
	}
	panic(beyond{fmt.Sprintf("%T", n)})
}

// plain returns a name that has no braces.
func plain(n *Name) string {
	if strings.Contains(n.Text, "{") {
		panic(beyond{n.Text})
	}
	return n.Text
}

func element(array, at Value) Value {
	i := at.Int()
	if i < 0 || i >= int64(array.Len()) {
		return Value{}
	}
	v, _ := array.At(int(i))
	return v
}

func (m *machine) store(target Node, v Value) {
	switch x := Unparen(target).(type) {
	case *Name:
		if !v.Exists() {
			v = Int(0)
		}
		m.vars[plain(x)] = v
	case *Index:
		if v.Kind() == KindInteger || v.Kind() == KindDouble {
			name := plain(x.X)
			m.vars[name] = m.vars[name].WithElement(int(m.run(x.At).Int()), v)
		}
	}
}

func (m *machine) step(n *IncDec) Value {
	delta := int64(1)
	if n.Op == OpDec {
		delta = -1
	}
	old := m.run(n.X)
	v := old.Step(delta)
	m.store(n.X, v)
	if n.Postfix {
		return old
	}
	return v
}

func (m *machine) binary(n *Binary) Value {
	x := m.run(n.X)
	switch n.Op {
	case OpAnd:
		return Bool(x.IsTrue() && m.run(n.Y).IsTrue())
	case OpOr:
		if x.IsTrue() || m.run(n.Y).IsTrue() {
			return Int(1)
		}
		return Value{}
	case OpImplies:
		if x.IsTrue() {
			m.run(n.Y)
		}
		return x
	}
	return n.Op.Apply(x, m.run(n.Y), &m.format)
}

func (m *machine) call(n *SystemCall) Value {
	var args []Value
	for _, a := range n.Args {
		args = append(args, m.run(a))
	}
	switch n.Func {
	case "precision":
		if len(args) > 0 {
			m.format.SetPrecision(args[0].Int())
		}
		return Int(m.format.Precision())
	case "fixed", "scientific":
		m.format.Scientific = n.Func == "scientific"
		return Value{}
	}
	v, ok := CallPure(n.Func, args, &m.format)
	if !ok {
		panic(beyond{n.Func})
	}
	return v
}

// anyValue generates values of every kind.
func anyValue() *rapid.Generator[Value] {
	texts := rapid.SampledFrom([]string{"", "a", "abc", "5", "-5", " 7", "2.5", "1e3", "1e", "9x", "0", "a\x00b", "a\x00c", "é"})
	ints := rapid.SampledFrom([]int64{0, 1, -1, 2, 5, -7, 1 << 53, 1<<53 + 1, 1<<63 - 1, -1 << 63})
	floats := rapid.OneOf(
		rapid.SampledFrom([]float64{0, 1, -1, 0.5, 2.5, 5, 9.3e18, -9.3e18, inf, -inf, nan, 1e300, 5e-324}),
		rapid.Float64())
	return rapid.Custom(func(t *rapid.T) Value {
		switch k := Kind(rapid.IntRange(0, kinds-1).Draw(t, "kind")); k {
		case KindInteger:
			return Int(ints.Draw(t, "int"))
		case KindDouble:
			return Float(floats.Draw(t, "float"))
		case KindIntegers:
			return Ints(rapid.SliceOfN(ints, 0, 3).Draw(t, "ints"))
		case KindDoubles:
			return Floats(rapid.SliceOfN(floats, 0, 3).Draw(t, "floats"))
		case KindUninitialized:
			return Value{}
		default:
			return File(k, []byte(texts.Draw(t, "text")))
		}
	})
}

// pureCalls are the functions CallPure knows, with their numbers of arguments.
var pureCalls = []string{
	"cos 1", "sin 1", "tan 1", "sqrt 1", "pow 2", "isinf 1", "double 1", "doubles 1", "integer 1",
	"integers 1", "string 1", "string 2", "size 1", "type 1", "fragment 3", "buffer 1",
}

func anyNode(t *rapid.T, depth int) Node {
	names := []string{"a", "b", "c"}
	name := func() *Name { return &Name{Text: rapid.SampledFrom(names).Draw(t, "name")} }
	choice := rapid.IntRange(0, 11).Draw(t, "node")
	if depth == 0 {
		choice %= 4
	}
	next := func() Node { return anyNode(t, depth-1) }
	switch choice {
	case 0, 1, 2:
		return &Literal{Value: anyValue().Draw(t, "value"), Text: "x"}
	case 3:
		return name()
	case 4:
		return &Paren{X: next()}
	case 5:
		return &Unary{Op: rapid.SampledFrom([]Op{OpNeg, OpPlus, OpNot}).Draw(t, "op"), X: next()}
	case 6:
		n := &IncDec{Op: rapid.SampledFrom([]Op{OpInc, OpDec}).Draw(t, "op"), X: next()}
		switch Unparen(n.X).(type) {
		case *Name:
			n.Postfix = rapid.Bool().Draw(t, "postfix")
		}
		return n
	case 7:
		n := &Array{}
		for range rapid.IntRange(0, 3).Draw(t, "elems") {
			n.Elems = append(n.Elems, next())
		}
		return n
	case 8:
		var fn string
		var count int
		if _, err := fmt.Sscan(rapid.SampledFrom(pureCalls).Draw(t, "call"), &fn, &count); err != nil {
			t.Fatal(err)
		}
		n := &SystemCall{Name: fn, Func: fn}
		for range count {
			n.Args = append(n.Args, next())
		}
		return n
	case 9:
		if rapid.Bool().Draw(t, "format") {
			return &SystemCall{Func: "precision", Args: []Node{&Literal{Value: Int(rapid.Int64Range(-1, 9).Draw(t, "precision"))}}}
		}
		return &Assign{Op: rapid.SampledFrom([]Op{OpAssign, OpAddAssign}).Draw(t, "op"), X: name(), Y: next()}
	case 10:
		return &Sequence{
			Stmts: []Node{next(), next()},
			Ops:   []Op{rapid.SampledFrom([]Op{OpBoth, OpEither, OpLast}).Draw(t, "op")},
		}
	}
	op := Op(rapid.IntRange(int(OpAnd)-1, int(OpRem)).Draw(t, "op"))
	if op < OpAnd {
		op = OpImplies
	}
	return &Binary{Op: op, X: next(), Y: next()}
}

// dump writes a tree so that two equal texts are equal trees.
func dump(n Node) string {
	if l, ok := n.(*Literal); ok {
		return fmt.Sprintf("%s %q", l.Value.Kind(), l.Value.String())
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%T(", n)
	switch n := n.(type) {
	case *Paren:
		b.WriteString(dump(n.X))
	case *Unary:
		b.WriteString(n.Op.String() + dump(n.X))
	case *IncDec:
		fmt.Fprint(&b, n.Op, n.Postfix, dump(n.X))
	case *Binary:
		b.WriteString(dump(n.X) + n.Op.String() + dump(n.Y))
	case *Assign:
		b.WriteString(dump(n.X) + n.Op.String() + dump(n.Y))
	case *Sequence:
		for _, s := range n.Stmts {
			b.WriteString(dump(s) + ";")
		}
	case *Array:
		for _, e := range n.Elems {
			b.WriteString(dump(e) + ",")
		}
	case *SystemCall:
		b.WriteString(n.Func)
		for _, e := range n.Args {
			b.WriteString(dump(e) + ",")
		}
	case *Name:
		b.WriteString(n.Text)
	}
	return b.String() + ")"
}

func TestFoldKeepsMeaning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := anyNode(t, 4)
		before := dump(n)
		folded := Fold(n)
		if after := dump(n); after != before {
			t.Fatalf("folding changed its argument\n%s\n%s", before, after)
		}
		newMachine := func() *machine {
			m := &machine{vars: map[string]Value{"b": String("2"), "c": Floats([]float64{1.5, 2})}}
			m.format.SetPrecision(2)
			return m
		}
		m, f := newMachine(), newMachine()
		want, got := m.run(n), f.run(folded)
		if !got.Equal(want) {
			t.Fatalf("%s\nfolded %s\n= %v %v, want %v %v", before, dump(folded), got.Kind(), got, want.Kind(), want)
		}
		for name, want := range m.vars {
			if got := f.vars[name]; !got.Equal(want) {
				t.Fatalf("%s: %v, want %v", name, got, want)
			}
		}
		if m.format != f.format {
			t.Fatal("the number format differs")
		}
		if again := Fold(folded); dump(again) != dump(folded) {
			t.Fatalf("folding twice\n%s\n%s", dump(folded), dump(again))
		}
	})
}

func lit(v Value) Node { return &Literal{Value: v, Text: "x"} }

func chain(op Op, count int, elem func(i int) Node) Node {
	n := elem(0)
	for i := 1; i < count; i++ {
		n = &Binary{Span{0, int32(i)}, op, n, elem(i)}
	}
	return n
}

func TestFoldLongChains(t *testing.T) {
	const count = 50_000
	sum := Fold(chain(OpAdd, count, func(int) Node { return lit(Int(1)) }))
	if v, ok := known(sum); !ok || !v.Equal(Int(count)) {
		t.Errorf("sum: %v %v", v, ok)
	}
	if l := sum.(*Literal); l.Text != "" || l.To != count-1 {
		t.Errorf("literal %+v", l)
	}
	text := Fold(chain(OpAdd, count, func(int) Node { return lit(String("a")) }))
	if v, ok := known(text); !ok || v.Len() != count {
		t.Errorf("text: %v %v", v.Len(), ok)
	}
	mixed := chain(OpAdd, count, func(i int) Node {
		if i == 0 {
			return lit(Int(1))
		}
		return &Name{Text: "x"}
	})
	if Fold(mixed) != mixed {
		t.Error("nothing to fold, but another tree")
	}
	implies := lit(Int(1))
	assign := Node(&Name{Text: "x"})
	for range count {
		implies = &Binary{Op: OpImplies, X: lit(Int(1)), Y: implies}
		assign = &Assign{Op: OpAssign, X: &Name{Text: "x"}, Y: assign}
	}
	if v, ok := known(Fold(implies)); !ok || !v.Equal(Int(1)) {
		t.Errorf("implies: %v %v", v, ok)
	}
	if Fold(assign) != assign {
		t.Error("assignments changed")
	}
}

func TestFoldBoundsPayloads(t *testing.T) {
	big := lit(String(strings.Repeat("a", maxFolded)))
	for name, n := range map[string]Node{
		"join":   &Binary{Op: OpAdd, X: big, Y: lit(String("b"))},
		"call":   &SystemCall{Func: "doubles", Args: []Node{big}},
		"larger": &Paren{X: lit(String(strings.Repeat("a", maxFolded+1)))},
	} {
		if f := Fold(n); f != n {
			t.Errorf("%s: folded to %T", name, f)
		}
	}
	// What is left unfolded keeps its value, and so does what is around it.
	n := &Binary{Op: OpAdd, X: &Binary{Op: OpAdd, X: big, Y: lit(String("b"))}, Y: &Binary{Op: OpAdd, X: lit(Int(1)), Y: lit(Int(2))}}
	m := &machine{}
	if f := Fold(n); !m.run(f).Equal(m.run(n)) || dump(f) == dump(n) {
		t.Error("the sum on the right is not folded")
	}
	if _, ok := known(Fold(&Binary{Op: OpAdd, X: &Binary{Op: OpAdd, X: lit(String("")), Y: lit(String(""))}, Y: lit(Int(5))})); !ok {
		t.Error("empty strings")
	}
}

func TestFoldLeaves(t *testing.T) {
	x := &Name{Text: "x"}
	add := func(a, b Node) Node { return &Binary{Op: OpAdd, X: a, Y: b} }
	three := add(lit(Int(1)), lit(Int(2)))
	text := lit(String("v"))
	for name, n := range map[string]Node{
		"double after text":       add(text, lit(Float(1))),
		"doubles after text":      add(text, lit(Floats([]float64{1}))),
		"text of a double":        &SystemCall{Func: "string", Args: []Node{lit(Float(1))}},
		"delimiter of a double":   &SystemCall{Func: "string", Args: []Node{lit(Ints([]int64{1, 2})), lit(Float(1))}},
		"right side that is idle": &Binary{Op: OpAnd, X: lit(Int(0)), Y: x},
		"empty parentheses":       &Paren{},
		"empty right parentheses": add(x, &Paren{X: x}),
		"step of a variable":      &IncDec{Op: OpInc, X: &Paren{X: x}},
		"unknown call":            &SystemCall{Func: "rand_int", Args: []Node{lit(Int(1)), lit(Int(1))}},
		"loop":                    &Loop{Var: x, Stop: x, Body: &Paren{X: x}},
		"wrong count":             &SystemCall{Func: "cos", Args: []Node{lit(Int(1)), lit(Int(1))}},
		"constant last":           add(add(x, lit(Int(1))), lit(Int(1))),
	} {
		if f := Fold(n); f != n {
			t.Errorf("%s: %s", name, dump(f))
		}
	}
	index := &Index{X: x, At: three}
	for name, n := range map[string]Node{
		"index":         index,
		"target":        &Assign{Op: OpAssign, X: &Paren{X: index}, Y: x},
		"step":          &IncDec{Op: OpInc, Postfix: true, X: index},
		"step in ()":    &IncDec{Op: OpInc, X: &Paren{X: index}},
		"call":          &Call{Name: "f", Args: []Node{x, three}},
		"system call":   &SystemCall{Func: "print", Args: []Node{three}},
		"sequence":      &Sequence{Stmts: []Node{x, three}, Ops: []Op{OpLast}},
		"loop body":     &Loop{Var: x, Stop: x, Body: &Paren{X: three}},
		"loop stop":     &Loop{Var: x, Stop: three, Body: &Paren{}},
		"loop start":    &Loop{Var: x, Start: three, Stop: x},
		"array":         &Array{Elems: []Node{three, x}},
		"parentheses":   &Paren{X: add(three, x)},
		"minus":         &Unary{Op: OpNeg, X: add(x, &Paren{X: three})},
		"double () * x": &Binary{Op: OpMul, X: &Paren{X: &Paren{X: three}}, Y: x},
	} {
		if f := Fold(n); f == n || fmt.Sprintf("%T", f) != fmt.Sprintf("%T", n) {
			t.Errorf("%s: %T", name, f)
		}
	}
	if Fold(nil) != nil {
		t.Error("nil")
	}
}
