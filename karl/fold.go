package karl

import "math"

// maxFolded is the greatest payload, in bytes, of a string or array that
// folding puts into a tree. Larger ones are left to be made when the program runs.
const maxFolded = 64 << 10

// Fold returns n with each part whose value is known replaced by a [Literal]
// without text. The result evaluates to the same value and has the same effects
// as n, which stays as it is and may share parts with the result. Not folded is
// what depends on a variable, on the settings of the evaluation, or on the
// [NumberFormat], as doubles in texts do. A nil n gives nil.
func Fold(n Node) Node {
	switch n := n.(type) {
	case *Index:
		return foldIndex(n)
	case *Paren:
		return foldParen(n)
	case *Unary:
		return foldUnary(n)
	case *IncDec:
		return foldIncDec(n)
	case *Binary:
		return foldBinary(n)
	case *Assign:
		x, y := foldTarget(n.X), Fold(n.Y)
		if x != n.X || y != n.Y {
			return &Assign{n.Span, n.Op, x, y}
		}
	case *Sequence:
		if stmts, changed := foldAll(n.Stmts); changed {
			return &Sequence{n.Span, stmts, n.Ops}
		}
	case *Array:
		return foldArray(n)
	case *Call:
		if args, changed := foldAll(n.Args); changed {
			return &Call{n.Span, n.Name, args}
		}
	case *SystemCall:
		return foldSystemCall(n)
	case *Loop:
		return foldLoop(n)
	}
	return n
}

// known returns the value of a literal.
func known(n Node) (Value, bool) {
	if l, ok := n.(*Literal); ok {
		return l.Value, true
	}
	return Value{}, false
}

// literal returns a literal of v in the place of n, or n itself if v is too large.
func literal(v Value, n Node) Node {
	size := v.bits
	switch {
	case v.kind == KindInteger || v.kind == KindDouble:
		size = 0
	case v.kind.IsArray():
		size *= 8
	}
	if size > maxFolded {
		return n
	}
	return &Literal{Span: Span{int32(n.Pos()), int32(n.End())}, Value: v}
}

// foldAll folds each node, into a new slice if any changes.
func foldAll(nodes []Node) (folded []Node, changed bool) {
	folded = nodes
	for i, n := range nodes {
		f := Fold(n)
		if f == n {
			continue
		}
		if !changed {
			folded, changed = append([]Node(nil), nodes...), true
		}
		folded[i] = f
	}
	return folded, changed
}

// values returns the values of nodes that are all literals.
func values(nodes []Node) ([]Value, bool) {
	for _, n := range nodes {
		if _, ok := n.(*Literal); !ok {
			return nil, false
		}
	}
	vs := make([]Value, len(nodes))
	for i, n := range nodes {
		vs[i] = n.(*Literal).Value
	}
	return vs, true
}

func foldIndex(n *Index) Node {
	if at := Fold(n.At); at != n.At {
		return &Index{n.Span, n.X, at}
	}
	return n
}

// foldTarget folds the index of a variable that is written to, perhaps in parentheses.
func foldTarget(n Node) Node {
	switch n := n.(type) {
	case *Index:
		return foldIndex(n)
	case *Paren:
		if x := foldTarget(n.X); x != n.X {
			return &Paren{n.Span, x}
		}
	}
	return n
}

func foldParen(n *Paren) Node {
	if n.X == nil {
		return n
	}
	x := Fold(n.X)
	if v, ok := known(x); ok {
		return literal(v, n)
	}
	if x != n.X {
		return &Paren{n.Span, x}
	}
	return n
}

func foldUnary(n *Unary) Node {
	x := Fold(n.X)
	if v, ok := known(x); ok {
		switch n.Op {
		case OpNeg:
			return literal(v.Neg(), n)
		case OpPlus:
			return literal(v.Plus(), n)
		case OpNot:
			return literal(v.Not(), n)
		}
	}
	if x != n.X {
		return &Unary{n.Span, n.Op, x}
	}
	return n
}

func foldIncDec(n *IncDec) Node {
	switch Unparen(n.X).(type) {
	case *Name, *Index: // a variable
		if x := foldTarget(n.X); x != n.X {
			return &IncDec{n.Span, n.Op, n.Postfix, x}
		}
		return n
	}
	x := Fold(n.X)
	if v, ok := known(x); ok && !n.Postfix {
		if n.Op == OpDec {
			return literal(v.Step(-1), n)
		}
		return literal(v.Step(1), n)
	}
	if x != n.X {
		return &IncDec{n.Span, n.Op, n.Postfix, x}
	}
	return n
}

// foldBinary walks along the left sides, of which a long sum has very many, and
// recurses into the right ones only.
func foldBinary(n *Binary) Node {
	var spine []*Binary // outermost first
	first := Node(n)
	for b, ok := n, true; ok; b, ok = first.(*Binary) {
		spine = append(spine, b)
		first = b.X
	}
	x := Fold(first)
	left, constant := known(x) // while constant, left is what x stands for
	var joined []byte          // the bytes of left where that came of joining texts
	for i := len(spine) - 1; i >= 0; i-- {
		b := spine[i]
		y := Fold(b.Y)
		if constant {
			if right, ok := known(y); ok {
				if b.Op == OpAdd && left.class() == textual && right.class() != floating {
					if joined == nil {
						joined = append(joined, left.text()...)
					}
					joined = right.AppendText(joined, nil, listSeparator)
					if len(joined) <= maxFolded {
						left, x = String(owned(joined)), b
						continue
					}
				} else if v, ok := foldOperator(b.Op, left, right); ok {
					left, x, joined = v, b, nil
					continue
				}
			}
			constant = false
			if _, ok := x.(*Literal); !ok {
				x = literal(left, x)
			}
		}
		if x != b.X || y != b.Y {
			b = &Binary{b.Span, b.Op, x, y}
		}
		x = b
	}
	if _, ok := x.(*Literal); constant && !ok {
		x = literal(left, x)
	}
	return x
}

// foldOperator returns the value of x o y where nothing else has a say, and
// whether that is so. (The right side of && and || is folded only when it is a
// literal too, even if it would not run: its names belong to the program.)
func foldOperator(o Op, x, y Value) (Value, bool) {
	switch o {
	case OpAnd:
		return Bool(x.IsTrue() && y.IsTrue()), true
	case OpOr:
		if x.IsTrue() || y.IsTrue() {
			return Int(1), true
		}
		return Value{}, true
	case OpImplies:
		return x, true
	case OpAdd:
		if x.class() == textual && y.class() == floating {
			return Value{}, false // depends on the number format
		}
	}
	return o.Apply(x, y, nil), true
}

func foldArray(n *Array) Node {
	elems, changed := foldAll(n.Elems)
	if vs, ok := values(elems); ok {
		if f := literal(ArrayOf(vs), n); f != Node(n) {
			return f
		}
	}
	if changed {
		return &Array{n.Span, elems}
	}
	return n
}

func foldSystemCall(n *SystemCall) Node {
	args, changed := foldAll(n.Args)
	if vs, ok := values(args); ok && !needsFormat(n.Func, vs) {
		if v, ok := CallPure(n.Func, vs, nil); ok {
			if f := literal(v, n); f != Node(n) {
				return f
			}
		}
	}
	if changed {
		return &SystemCall{n.Span, n.Name, n.Func, args}
	}
	return n
}

func foldLoop(n *Loop) Node {
	start, step, stop, body := Fold(n.Start), Fold(n.Step), Fold(n.Stop), n.Body
	if body != nil && body.X != nil {
		if x := Fold(body.X); x != body.X {
			body = &Paren{body.Span, x}
		}
	}
	if start == n.Start && step == n.Step && stop == n.Stop && body == n.Body {
		return n
	}
	return &Loop{n.Span, n.Var, start, step, stop, n.Through, body}
}

// needsFormat reports whether a pure call prints doubles.
func needsFormat(fn string, args []Value) bool {
	if fn != "string" {
		return false
	}
	for _, v := range args {
		if v.class() == floating {
			return true
		}
	}
	return false
}

// CallPure returns what the language's function #fn does, for those whose value
// depends on nothing but their arguments and the number format f (nil for the
// default): cos, sin, tan, sqrt, pow, isinf, double, doubles, integer, integers,
// string, size, type, fragment and buffer, by the names of [SystemCall].Func. It
// reports false for any other function and for a wrong number of arguments. It
// keeps nothing of args.
func CallPure(fn string, args []Value, f *NumberFormat) (Value, bool) {
	switch len(args) {
	case 1:
		return callUnary(fn, args[0], f)
	case 2:
		switch fn {
		case "pow":
			return Float(math.Pow(args[0].Float(), args[1].Float())), true
		case "string":
			return String(args[0].Text(f, args[1].Text(f, listSeparator))), true
		}
	case 3:
		if fn == "fragment" {
			return args[0].Fragment(args[1].Int(), args[2].Int()), true
		}
	}
	return Value{}, false
}

func callUnary(fn string, v Value, f *NumberFormat) (Value, bool) {
	switch fn {
	case "cos":
		return Float(math.Cos(v.Float())), true
	case "sin":
		return Float(math.Sin(v.Float())), true
	case "tan":
		return Float(math.Tan(v.Float())), true
	case "sqrt":
		return Float(math.Sqrt(v.Float())), true
	case "isinf":
		return Bool(math.IsInf(v.Float(), 0)), true
	case "double":
		return Float(v.Float()), true
	case "doubles":
		return v.Doubles(), true
	case "integer":
		return Int(v.Int()), true
	case "integers":
		return v.Integers(), true
	case "string":
		return String(v.Text(f, listSeparator)), true
	case "size":
		return Int(v.Size()), true
	case "type":
		return Int(int64(v.kind.Code())), true
	case "buffer":
		return v.Buffer(), true
	}
	return Value{}, false
}
