package eval

import (
	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge/internal/store"
)

// A list of statements joined by ; has a code of its own, because that is what
// large programs are: one instruction a statement, those of one variable
// without a call. The value is the greatest of the statements' values.
//
// Measured per statement of 1,000 (native mutex increment M): see bench/reasoning,
// rows "Compiled Multiple …".

type opcode uint8

const (
	opNode     opcode = iota // value of node
	opAdd                    // rec += k, value is the new one
	opSet                    // rec = k
	opAddYield               // guarded by a constant: rec += k, value is yield
	opSetYield
)

type instruction struct {
	op    opcode
	yield int32
	k     int64
	rec   *store.Record
	node  node // the same statement in general form
}

func (c *compiler) sequence(n *karl.Sequence) node {
	same := true
	for _, op := range n.Ops {
		same = same && op == n.Ops[0]
	}
	at := n.Span
	count := int64(len(n.Stmts))
	switch {
	case same && n.Ops[0] == karl.OpBoth:
		code := make([]instruction, len(n.Stmts))
		for i, s := range n.Stmts {
			code[i] = c.instruction(s)
		}
		return func(f *Frame) karl.Value {
			if !f.charge(count, at) {
				return karl.Value{}
			}
			return f.greatest(code)
		}
	case same && n.Ops[0] == karl.OpLast:
		stmts := c.exprs(n.Stmts)
		last := stmts[len(stmts)-1]
		stmts = stmts[:len(stmts)-1]
		return func(f *Frame) karl.Value {
			if !f.charge(count, at) {
				return karl.Value{}
			}
			for _, s := range stmts {
				if s(f); f.err != nil {
					return karl.Value{}
				}
			}
			return last(f)
		}
	}
	stmts := c.exprs(n.Stmts)
	ops := n.Ops
	return func(f *Frame) karl.Value {
		if !f.charge(count, at) {
			return karl.Value{}
		}
		v := stmts[0](f)
		for i, s := range stmts[1:] {
			if f.err != nil {
				return karl.Value{}
			}
			w := s(f)
			switch ops[i] {
			case karl.OpBoth:
				if karl.Greater(w, v) {
					v = w
				}
			case karl.OpEither:
				if karl.Less(w, v) {
					v = w
				}
			default:
				v = w
			}
		}
		return v
	}
}

// instruction compiles one statement of a list.
func (c *compiler) instruction(s karl.Node) instruction {
	in := instruction{node: c.expr(s)}
	if c.trace != nil {
		return in
	}
	body := karl.Unparen(s)
	set, add := opSet, opAdd
	if b, ok := body.(*karl.Binary); ok && b.Op == karl.OpImplies {
		k, ok := intConstant(karl.Unparen(b.X))
		if !ok || k == 0 || int64(int32(k)) != k {
			return in
		}
		in.yield = int32(k)
		set, add = opSetYield, opAddYield
		body = karl.Unparen(b.Y)
	}
	var name karl.Node
	switch body := body.(type) {
	case *karl.IncDec:
		if body.Postfix {
			return in
		}
		name, in.k = karl.Unparen(body.X), 1
		if body.Op == karl.OpDec {
			in.k = -1
		}
	case *karl.Assign:
		k, ok := intConstant(karl.Unparen(body.Y))
		if !ok || body.Op != karl.OpAssign {
			return in
		}
		name, in.k = karl.Unparen(body.X), k
		add = set
	default:
		return in
	}
	if n, ok := name.(*karl.Name); ok && !dynamic(n) {
		in.rec, in.op = c.record(n, writes), add
	}
	return in
}

// greatest runs the code of a list joined by ; while all values are integers,
// and hands over to greatestFrom with the first other one.
func (f *Frame) greatest(code []instruction) karl.Value {
	pattern := f.ints
	top := int64(0)
	first := true
	for i := range code {
		in := &code[i]
		var v int64
		if in.op != opNode && in.rec.Settled(pattern) {
			switch in.op {
			case opAdd:
				v = in.rec.Int() + in.k
				in.rec.PutInt(v)
			case opSet:
				v = in.k
				in.rec.PutInt(v)
			case opAddYield:
				in.rec.PutInt(in.rec.Int() + in.k)
				v = int64(in.yield)
			default:
				in.rec.PutInt(in.k)
				v = int64(in.yield)
			}
		} else {
			w := in.node(f)
			if f.err != nil {
				return karl.Value{}
			}
			if w.Kind() != karl.KindInteger {
				if !first && !karl.Greater(w, karl.Int(top)) {
					continue
				}
				return f.greatestFrom(code[i+1:], w)
			}
			v = w.Int()
		}
		if first || v > top {
			top, first = v, false
		}
	}
	return karl.Int(top)
}

func (f *Frame) greatestFrom(code []instruction, v karl.Value) karl.Value {
	for i := range code {
		w := code[i].node(f)
		if f.err != nil {
			return karl.Value{}
		}
		if karl.Greater(w, v) {
			v = w
		}
	}
	return v
}

func (c *compiler) loop(n *karl.Loop) node {
	at := n.Span
	c.effect()
	if n.Body == nil {
		// Without a body the loop stores where it would end and is that value.
		end := c.expr(n.Stop)
		t := c.target(n.Var, writes)
		through := n.Through
		return func(f *Frame) karl.Value {
			v := end(f)
			if through {
				v = karl.OpAdd.Apply(v, karl.Int(1), nil)
			}
			if f.err != nil {
				return v
			}
			if r := t.write(f); r != nil {
				f.store(r, v, t.at)
			}
			return v
		}
	}
	l := loop{at: at, through: n.Through, step: 1}
	l.start = constant(karl.Int(0))
	if n.Start != nil {
		l.start = c.expr(n.Start)
	}
	l.stepNode = nil
	if n.Step != nil {
		if k, ok := intConstant(karl.Unparen(karl.Fold(n.Step))); ok {
			l.step = k
		} else {
			l.stepNode = c.expr(n.Step)
		}
	}
	l.end = c.expr(n.Stop)
	l.target = c.target(n.Var, reads|writes)
	if n.Body.X != nil {
		l.body = c.expr(n.Body)
	}
	return l.run
}

type loop struct {
	at       karl.Span
	target   *target
	start    node
	end      node
	stepNode node // nil: step
	step     int64
	body     node // nil: empty
	through  bool
}

// run is the loop. The variable lives in its record, because the body may read
// and change it.
func (l *loop) run(f *Frame) karl.Value {
	t, at := l.target, l.at
	v := l.start(f)
	if f.err != nil {
		return v
	}
	r := t.write(f)
	if r == nil {
		return v
	}
	f.store(r, v, t.at)
	meter := &f.Env.meter
	count := int64(0)
	for {
		end := l.end(f)
		if f.err != nil {
			return karl.Value{}
		}
		if t.rec == nil {
			if r = t.write(f); r == nil {
				return karl.Value{}
			}
		}
		if end.Kind() == karl.KindInteger && r.Is(karl.KindInteger) {
			if i := r.Int(); i > end.Int() || i == end.Int() && !l.through {
				break
			}
		} else if !l.below(r.Value(), end) {
			break
		}
		if meter.budget--; meter.budget < 0 && !f.refill(at) {
			return karl.Value{}
		}
		if l.body != nil {
			l.body(f)
		}
		count++
		step := l.step
		if f.err != nil {
			return karl.Value{}
		}
		if l.stepNode == nil && t.rec != nil && r.Settled(f.ints) {
			r.PutInt(r.Int() + step)
			continue
		}
		by := karl.Int(step)
		if l.stepNode != nil {
			by = l.stepNode(f)
		}
		if t.rec == nil {
			r = t.write(f)
		}
		if f.err != nil {
			return karl.Value{}
		}
		v = f.apply(karl.OpAdd, r.Value(), by, at)
		if f.err != nil {
			return karl.Value{}
		}
		f.store(r, v, t.at)
	}
	return karl.Int(count)
}

func (l *loop) below(v, end karl.Value) bool {
	if l.through {
		return karl.OpLessEqual.Apply(v, end, nil).IsTrue()
	}
	return karl.Less(v, end)
}
