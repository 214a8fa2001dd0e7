package eval

import (
	"strings"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge/internal/store"
)

// node runs a part of a program. When it returns with f.err set, its value
// means nothing and nothing may be done with it.
type node func(f *Frame) karl.Value

// cond runs a part of a program for its truth only.
type cond func(f *Frame) bool

// Program is a tree bound to the records of one store.
type Program struct {
	Tree     *karl.Program
	Function string // the name it was defined under, if it is a function's body

	// Reads and Writes are the records of the names without braces.
	Reads, Writes []*store.Record
	Dynamic       bool         // has names with braces, or other ways to read what it does not name
	Calls         bool         // calls functions or #eval
	Pure          bool         // has no effect, and its value depends on variables only
	Tests         []store.Test // conditions on single records, all of which must hold for the value to be true
	Size          int          // nodes of the tree
	Depth         int          // of the tree

	root node
	list bool // charges its own statements
}

// Compile binds a tree.
func (e *Env) Compile(tree *karl.Program, function string) (*Program, *Error) {
	return e.compile(tree, function, nil)
}

func (e *Env) compile(tree *karl.Program, function string, t *Trace) (*Program, *Error) {
	p := &Program{Tree: tree, Function: function, Pure: true}
	c := compiler{env: e, p: p, trace: t, seen: map[*store.Record]access{}}
	body := karl.Fold(tree.Body)
	_, p.list = karl.Unparen(body).(*karl.Sequence)
	p.root = c.expr(body)
	c.tests(body)
	p.Depth = c.deepest
	if c.err != nil {
		return nil, c.err
	}
	return p, nil
}

// access says how a program uses a record.
type access uint8

const (
	reads access = 1 << iota
	writes
)

type compiler struct {
	env            *Env
	p              *Program
	seen           map[*store.Record]access
	depth, deepest int
	effects        int    // parts compiled so far that have effects
	trace          *Trace // unless nil, nodes are compiled in their general forms and traced
	err            *Error
}

// effect notes that the part being compiled has an effect, or depends on more
// than variables.
func (c *compiler) effect() {
	c.p.Pure = false
	c.effects++
}

func (c *compiler) fail(at karl.Span, err error) {
	if c.err == nil {
		c.err = &Error{Err: err, Sites: []Site{{Program: c.p.Tree, Function: c.p.Function, From: at.Pos(), To: at.End()}}}
	}
}

// record finds or makes the record of a name without braces.
func (c *compiler) record(n *karl.Name, how access) *store.Record {
	r, err := c.env.Store.Intern(n.Text)
	if err != nil {
		c.fail(n.Span, err)
		return &store.Record{}
	}
	r.Hold(true)
	was := c.seen[r]
	c.seen[r] = was | how
	if how&^was&reads != 0 {
		c.p.Reads = append(c.p.Reads, r)
	}
	if how&^was&writes != 0 {
		c.p.Writes = append(c.p.Writes, r)
	}
	return r
}

func dynamic(n *karl.Name) bool { return strings.IndexByte(n.Text, '{') >= 0 }

func spanOf(n karl.Node) karl.Span { return karl.Span{From: int32(n.Pos()), To: int32(n.End())} }

func constant(v karl.Value) node { return func(*Frame) karl.Value { return v } }

// intConstant returns the integer of a literal.
func intConstant(n karl.Node) (int64, bool) {
	if l, ok := n.(*karl.Literal); ok && l.Value.Kind() == karl.KindInteger {
		return l.Value.Int(), true
	}
	return 0, false
}

// static returns the record of a variable whose name has no braces, for a node
// that reads it. In a program that is traced each variable is a node of its own.
func (c *compiler) static(n karl.Node) (*store.Record, bool) {
	name, ok := n.(*karl.Name)
	if !ok || dynamic(name) || c.trace != nil {
		return nil, false
	}
	return c.record(name, reads), true
}

func (c *compiler) expr(n karl.Node) node {
	n = karl.Unparen(n)
	if n == nil {
		return constant(karl.Int(0))
	}
	c.p.Size++
	c.depth++
	c.deepest = max(c.deepest, c.depth)
	defer func() { c.depth-- }()
	if c.trace != nil {
		return c.traced(n)
	}
	return c.plain(n)
}

// plain compiles a node without a trace.
func (c *compiler) plain(n karl.Node) node {
	switch n := n.(type) {
	case *karl.Literal:
		return constant(n.Value)
	case *karl.Name:
		return c.variable(n)
	case *karl.Index:
		return c.element(n)
	case *karl.Unary:
		return c.unary(n)
	case *karl.IncDec:
		return c.incDec(n)
	case *karl.Binary:
		return c.binary(n)
	case *karl.Assign:
		return c.assign(n)
	case *karl.Sequence:
		return c.sequence(n)
	case *karl.Array:
		return c.array(n)
	case *karl.Call:
		return c.call(n)
	case *karl.SystemCall:
		return c.systemCall(n)
	case *karl.Loop:
		return c.loop(n)
	}
	panic("eval: unknown node")
}

func (c *compiler) exprs(list []karl.Node) []node {
	nodes := make([]node, len(list))
	for i, n := range list {
		nodes[i] = c.expr(n)
	}
	return nodes
}

func (c *compiler) variable(n *karl.Name) node {
	if dynamic(n) {
		d := c.dynamicName(n)
		return func(f *Frame) karl.Value { return d.read(f) }
	}
	r, at := c.record(n, reads), n.Span
	return func(f *Frame) karl.Value {
		if r.Is(karl.KindInteger) || r.Is(karl.KindDouble) {
			return r.Value()
		}
		return f.load(r, at)
	}
}

// load reads a variable that may be of any kind.
func (f *Frame) load(r *store.Record, at karl.Span) karl.Value {
	v := r.Value()
	if f.strict && !v.Exists() {
		return f.missing(r.Name(), at)
	}
	return v
}

func (c *compiler) unary(n *karl.Unary) node {
	switch n.Op {
	case karl.OpNot:
		x := c.cond(n.X)
		return func(f *Frame) karl.Value { return karl.Bool(!x(f)) }
	case karl.OpNeg:
		x := c.expr(n.X)
		return func(f *Frame) karl.Value {
			v := x(f)
			if v.Kind() == karl.KindInteger {
				return karl.Int(-v.Int())
			}
			return v.Neg()
		}
	}
	x := c.expr(n.X)
	return func(f *Frame) karl.Value { return x(f).Plus() }
}

func (c *compiler) array(n *karl.Array) node {
	elems := c.exprs(n.Elems)
	return func(f *Frame) karl.Value {
		e := f.Env
		base := len(e.values)
		for _, x := range elems {
			v := x(f)
			if f.err != nil {
				e.pop(base)
				return v
			}
			e.values = append(e.values, v)
		}
		v := karl.ArrayOf(e.values[base:])
		e.pop(base)
		return v
	}
}

func (c *compiler) binary(n *karl.Binary) node {
	switch n.Op {
	case karl.OpImplies:
		return c.implies(n)
	case karl.OpOr:
		x, y := c.cond(n.X), c.cond(n.Y)
		return func(f *Frame) karl.Value {
			if x(f) || (f.err == nil && y(f)) {
				return karl.Int(1)
			}
			return karl.Value{}
		}
	case karl.OpAnd, karl.OpEqual, karl.OpNotEqual, karl.OpLess, karl.OpLessEqual, karl.OpGreater, karl.OpGreaterEqual:
		x := c.condOf(n)
		return func(f *Frame) karl.Value { return karl.Bool(x(f)) }
	}
	return c.arithmetic(n)
}

func (c *compiler) implies(n *karl.Binary) node {
	if l, ok := karl.Unparen(n.X).(*karl.Literal); ok {
		y := c.expr(n.Y)
		v := l.Value
		if !v.IsTrue() {
			return constant(v)
		}
		return func(f *Frame) karl.Value { y(f); return v }
	}
	if b, ok := karl.Unparen(n.X).(*karl.Binary); ok && isCondition(b.Op) {
		x, y := c.cond(b), c.expr(n.Y)
		return func(f *Frame) karl.Value {
			if x(f) && f.err == nil {
				y(f)
				return karl.Int(1)
			}
			return karl.Int(0)
		}
	}
	x, y := c.expr(n.X), c.expr(n.Y)
	return func(f *Frame) karl.Value {
		v := x(f)
		if v.IsTrue() && f.err == nil {
			y(f)
		}
		return v
	}
}

// isCondition reports whether the operator's value is always the integer 0 or 1.
func isCondition(op karl.Op) bool {
	return op == karl.OpAnd || op >= karl.OpEqual && op <= karl.OpGreaterEqual
}

// add, sub, and mul have closures of their own for the shapes of operands that
// control programs are made of; everything else goes through apply.
func (c *compiler) arithmetic(n *karl.Binary) node {
	op, at := n.Op, n.Span
	xn, yn := karl.Unparen(n.X), karl.Unparen(n.Y)
	if k, ok := intConstant(yn); ok {
		if r, ok := c.static(xn); ok {
			rat, y := spanOf(xn), karl.Int(k)
			c.p.Size += 2
			slow := func(f *Frame) karl.Value { return f.apply(op, f.load(r, rat), y, at) }
			switch op {
			case karl.OpAdd:
				return func(f *Frame) karl.Value {
					if r.Is(karl.KindInteger) {
						return karl.Int(r.Int() + k)
					}
					return slow(f)
				}
			case karl.OpSub:
				return func(f *Frame) karl.Value {
					if r.Is(karl.KindInteger) {
						return karl.Int(r.Int() - k)
					}
					return slow(f)
				}
			case karl.OpMul:
				return func(f *Frame) karl.Value {
					if r.Is(karl.KindInteger) {
						return karl.Int(r.Int() * k)
					}
					return slow(f)
				}
			}
			return slow
		}
		x, y := c.expr(xn), karl.Int(k)
		c.p.Size++
		switch op {
		case karl.OpAdd:
			return func(f *Frame) karl.Value {
				if v := x(f); v.Kind() == karl.KindInteger {
					return karl.Int(v.Int() + k)
				} else {
					return f.apply(op, v, y, at)
				}
			}
		case karl.OpSub:
			return func(f *Frame) karl.Value {
				if v := x(f); v.Kind() == karl.KindInteger {
					return karl.Int(v.Int() - k)
				} else {
					return f.apply(op, v, y, at)
				}
			}
		}
		return func(f *Frame) karl.Value { return f.apply(op, x(f), y, at) }
	}
	if ry, ok := c.static(yn); ok {
		yat := spanOf(yn)
		x := c.expr(xn)
		c.p.Size++
		switch op {
		case karl.OpAdd:
			return func(f *Frame) karl.Value {
				v := x(f)
				if v.Kind() == karl.KindInteger && ry.Is(karl.KindInteger) {
					return karl.Int(v.Int() + ry.Int())
				}
				return f.apply(op, v, f.load(ry, yat), at)
			}
		case karl.OpSub:
			return func(f *Frame) karl.Value {
				v := x(f)
				if v.Kind() == karl.KindInteger && ry.Is(karl.KindInteger) {
					return karl.Int(v.Int() - ry.Int())
				}
				return f.apply(op, v, f.load(ry, yat), at)
			}
		}
		return func(f *Frame) karl.Value { v := x(f); return f.apply(op, v, f.load(ry, yat), at) }
	}
	if l, ok := yn.(*karl.Literal); ok {
		x, y := c.expr(xn), l.Value
		c.p.Size++
		return func(f *Frame) karl.Value { return f.apply(op, x(f), y, at) }
	}
	x, y, checked := c.operands(xn, yn)
	if checked {
		return func(f *Frame) karl.Value {
			v := x(f)
			if f.err != nil {
				return v
			}
			return f.apply(op, v, y(f), at)
		}
	}
	return func(f *Frame) karl.Value { v := x(f); return f.apply(op, v, y(f), at) }
}

// operands compiles both sides of an operator. Where the right side has an
// effect, it must not run after the left one failed: then checked is true.
func (c *compiler) operands(xn, yn karl.Node) (x, y node, checked bool) {
	x = c.expr(xn)
	before := c.effects
	y = c.expr(yn)
	return x, y, c.effects != before
}

// apply is an arithmetic operator on values of any kind.
func (f *Frame) apply(op karl.Op, x, y karl.Value, at karl.Span) karl.Value {
	if v, ok := applyDoubles(op, x, y); ok {
		return v
	}
	if op == karl.OpAdd && x.Kind().IsString() {
		return f.concat(x, y, at)
	}
	return op.Apply(x, y, &f.Env.Format)
}

// cond compiles a node for its truth.
func (c *compiler) cond(n karl.Node) cond {
	n = karl.Unparen(n)
	if c.trace != nil && n != nil {
		x := c.expr(n)
		return func(f *Frame) bool { return x(f).IsTrue() }
	}
	switch n := n.(type) {
	case nil:
		return func(*Frame) bool { return false }
	case *karl.Literal:
		c.p.Size++
		t := n.Value.IsTrue()
		return func(*Frame) bool { return t }
	case *karl.Binary:
		if isCondition(n.Op) || n.Op == karl.OpOr {
			c.p.Size++
			c.depth++
			c.deepest = max(c.deepest, c.depth)
			x := c.condOf(n)
			c.depth--
			return x
		}
	case *karl.Unary:
		if n.Op == karl.OpNot {
			c.p.Size++
			x := c.cond(n.X)
			return func(f *Frame) bool { return !x(f) }
		}
	}
	if r, ok := c.static(n); ok {
		c.p.Size++
		at := spanOf(n)
		return func(f *Frame) bool {
			if r.Is(karl.KindInteger) {
				return r.Int() != 0
			}
			return f.load(r, at).IsTrue()
		}
	}
	x := c.expr(n)
	return func(f *Frame) bool { return x(f).IsTrue() }
}

func (c *compiler) condOf(n *karl.Binary) cond {
	switch n.Op {
	case karl.OpAnd:
		x, y := c.cond(n.X), c.cond(n.Y)
		return func(f *Frame) bool { return x(f) && f.err == nil && y(f) }
	case karl.OpOr:
		x, y := c.cond(n.X), c.cond(n.Y)
		return func(f *Frame) bool { return x(f) || (f.err == nil && y(f)) }
	}
	return c.comparison(n)
}

func (c *compiler) comparison(n *karl.Binary) cond {
	op := n.Op
	xn, yn := karl.Unparen(n.X), karl.Unparen(n.Y)
	k, isConst := intConstant(yn)
	if r, ok := c.static(xn); ok && isConst {
		at, y := spanOf(xn), karl.Int(k)
		c.p.Size += 2
		slow := func(f *Frame) bool { return compare(op, f.load(r, at), y) }
		switch op {
		case karl.OpEqual:
			return func(f *Frame) bool {
				if r.Is(karl.KindInteger) {
					return r.Int() == k
				}
				return slow(f)
			}
		case karl.OpNotEqual:
			return func(f *Frame) bool {
				if r.Is(karl.KindInteger) {
					return r.Int() != k
				}
				return slow(f)
			}
		case karl.OpLess:
			return func(f *Frame) bool {
				if r.Is(karl.KindInteger) {
					return r.Int() < k
				}
				return slow(f)
			}
		case karl.OpLessEqual:
			return func(f *Frame) bool {
				if r.Is(karl.KindInteger) {
					return r.Int() <= k
				}
				return slow(f)
			}
		case karl.OpGreater:
			return func(f *Frame) bool {
				if r.Is(karl.KindInteger) {
					return r.Int() > k
				}
				return slow(f)
			}
		default:
			return func(f *Frame) bool {
				if r.Is(karl.KindInteger) {
					return r.Int() >= k
				}
				return slow(f)
			}
		}
	}
	x, y, checked := c.operands(xn, yn)
	return func(f *Frame) bool {
		v := x(f)
		if checked && f.err != nil {
			return false
		}
		w := y(f)
		if v.Kind() == karl.KindInteger && w.Kind() == karl.KindInteger {
			return store.CompareInts(op, v.Int(), w.Int())
		}
		return compare(op, v, w)
	}
}

// tests collects the comparisons of a variable with an integer that a program is
// made of, or begins with, joined by &&: for it to be true, or to fail, all must
// hold.
func (c *compiler) tests(n karl.Node) bool {
	b, ok := karl.Unparen(n).(*karl.Binary)
	switch {
	case !ok:
		return false
	case b.Op == karl.OpAnd:
		return c.tests(b.X) && c.tests(b.Y)
	case b.Op < karl.OpEqual || b.Op > karl.OpGreaterEqual:
		return false
	}
	name, isName := karl.Unparen(b.X).(*karl.Name)
	k, isConstant := intConstant(karl.Unparen(b.Y))
	if !isName || !isConstant || dynamic(name) {
		return false
	}
	c.p.Tests = append(c.p.Tests, store.Test{Record: c.record(name, reads), Op: b.Op, K: k})
	return true
}
