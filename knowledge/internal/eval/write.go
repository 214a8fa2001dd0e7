package eval

import (
	"math"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge/internal/store"
)

// A target is what an assignment writes to: a variable or an element of one.
type target struct {
	at      karl.Span
	rec     *store.Record // of a name without braces
	dynamic *dynamicName  // of one with
	index   node          // nil for a whole variable
}

func (c *compiler) target(n karl.Node, how access) *target {
	c.effect()
	c.p.Size++
	t := &target{at: spanOf(n)}
	name, ok := n.(*karl.Name)
	if ix, isIndex := n.(*karl.Index); isIndex {
		c.p.Size++
		t.index = c.expr(ix.At)
		name, ok = ix.X, true
		how |= reads
	}
	if !ok {
		c.fail(t.at, store.Errorf(ErrName, "cannot assign to this"))
		return t
	}
	if dynamic(name) {
		t.dynamic = c.dynamicName(name)
	} else {
		t.rec = c.record(name, how)
	}
	return t
}

// write returns the record to write to; nil if f failed.
func (t *target) write(f *Frame) *store.Record {
	if t.rec != nil {
		return t.rec
	}
	return t.dynamic.write(f)
}

func (t *target) name() string {
	if t.rec != nil {
		return t.rec.Name()
	}
	return t.dynamic.text
}

// store writes a whole variable. An uninitialized value is stored as 0.
func (f *Frame) store(r *store.Record, v karl.Value, at karl.Span) {
	switch v.Kind() {
	case karl.KindInteger:
		if r.Settled(f.ints) {
			r.PutInt(v.Int())
			return
		}
	case karl.KindDouble:
		if r.Settled(f.doubles) {
			r.PutBits(math.Float64bits(v.Float()))
			return
		}
	case karl.KindUninitialized:
		v = karl.Int(0)
	}
	f.storeSlow(r, v, at)
}

// storeSlow does all that a write may be followed by. A write that the quality
// forbids is left out, and is an error under Strict only.
//
//go:noinline
func (f *Frame) storeSlow(r *store.Record, v karl.Value, at karl.Span) {
	if err := f.st.Set(r, v, f.write); err != nil && f.strict {
		f.fail(at, err)
	}
}

func (c *compiler) assign(n *karl.Assign) node {
	x := karl.Unparen(n.X)
	if n.Op != karl.OpAssign {
		return c.compound(n, x)
	}
	y := c.expr(n.Y)
	t := c.target(x, writes)
	if t.index != nil {
		return c.assignElement(t, y)
	}
	at := t.at
	if r := t.rec; r != nil {
		if k, ok := intConstant(karl.Unparen(n.Y)); ok {
			v := karl.Int(k)
			return func(f *Frame) karl.Value {
				if r.Settled(f.ints) {
					r.PutInt(k)
				} else {
					f.storeSlow(r, v, at)
				}
				return v
			}
		}
		return func(f *Frame) karl.Value {
			v := y(f)
			if f.err == nil {
				f.store(r, v, at)
			}
			return v
		}
	}
	return func(f *Frame) karl.Value {
		v := y(f)
		if f.err != nil {
			return v
		}
		if r := t.write(f); r != nil {
			f.store(r, v, at)
		}
		return v
	}
}

func (c *compiler) assignElement(t *target, y node) node {
	return func(f *Frame) karl.Value {
		v := y(f)
		if f.err != nil {
			return v
		}
		if k := v.Kind(); k != karl.KindInteger && k != karl.KindDouble {
			if f.strict {
				f.fail(t.at, store.Errorf(ErrKind, "an element of %q cannot hold a value of kind %s, only integer or double", clip(t.name()), k))
			}
			return v
		}
		i := t.index(f).Int()
		if f.err != nil {
			return v
		}
		if r := t.write(f); r != nil {
			f.storeElement(r, i, v, t.at)
		}
		return v
	}
}

func (f *Frame) storeElement(r *store.Record, i int64, v karl.Value, at karl.Span) {
	if err := f.st.Element(r, i, v, f.write); err != nil {
		f.st.Release(r)
		if f.strict || !isQuality(err) {
			f.fail(at, err)
		}
	}
}

func (c *compiler) compound(n *karl.Assign, x karl.Node) node {
	op, at := n.Op.Operator(), n.Span
	y := c.expr(n.Y)
	t := c.target(x, reads|writes)
	if t.index != nil {
		return c.updateElement(t, false, nil, y, op, at)
	}
	if r := t.rec; r != nil {
		if k, ok := intConstant(karl.Unparen(n.Y)); ok && (op == karl.OpAdd || op == karl.OpSub) {
			delta := k
			if op == karl.OpSub {
				delta = -k
			}
			v := karl.Int(k)
			return func(f *Frame) karl.Value {
				if r.Settled(f.ints) {
					i := r.Int() + delta
					r.PutInt(i)
					return karl.Int(i)
				}
				return f.compound(t, op, v, at)
			}
		}
		if op == karl.OpAdd {
			return func(f *Frame) karl.Value {
				v := y(f)
				if v.Kind() == karl.KindInteger && r.Settled(f.ints) && f.err == nil {
					i := r.Int() + v.Int()
					r.PutInt(i)
					return karl.Int(i)
				}
				if d, ok := asDouble(v); ok && r.Settled(f.doubles) && f.err == nil {
					d += math.Float64frombits(r.Bits())
					r.PutBits(math.Float64bits(d))
					return karl.Float(d)
				}
				return f.compound(t, op, v, at)
			}
		}
	}
	return func(f *Frame) karl.Value { return f.compound(t, op, y(f), at) }
}

// compound is target op= v for a whole variable.
func (f *Frame) compound(t *target, op karl.Op, v karl.Value, at karl.Span) karl.Value {
	if f.err != nil {
		return v
	}
	r := t.write(f)
	if r == nil {
		return v
	}
	old := f.load(r, t.at)
	if f.err != nil {
		return v
	}
	v = f.apply(op, old, v, at)
	if f.err == nil {
		f.store(r, v, at)
	}
	return v
}

// updateElement compiles what changes an element: a compound assignment, whose
// right side y runs first, or ++ and -- where y is nil.
func (c *compiler) updateElement(t *target, postfix bool, change func(*Frame, karl.Value) karl.Value, y node, op karl.Op, at karl.Span) node {
	return func(f *Frame) karl.Value {
		var right karl.Value
		if y != nil {
			if right = y(f); f.err != nil {
				return right
			}
		}
		i := t.index(f).Int()
		if f.err != nil {
			return right
		}
		r := t.write(f)
		if r == nil {
			return right
		}
		if f.strict && !r.Exists() && (y != nil || postfix) {
			return f.missing(r.Name(), t.at)
		}
		old := elementAt(r, i)
		var v karl.Value
		if y != nil {
			v = f.apply(op, old, right, at)
		} else {
			v = change(f, old)
		}
		if k := v.Kind(); k != karl.KindInteger && k != karl.KindDouble {
			return v
		}
		f.storeElement(r, i, v, t.at)
		if postfix || f.err != nil {
			return old
		}
		return elementAt(r, i)
	}
}

// elementAt reads an element of whatever the record holds.
func elementAt(r *store.Record, i int64) karl.Value {
	if i < 0 || i > math.MaxInt32 {
		return karl.Value{}
	}
	v, _ := r.Peek().At(int(i))
	return v
}

func (c *compiler) element(n *karl.Index) node {
	index := c.expr(n.At)
	at := n.Span
	c.p.Size++
	if !dynamic(n.X) {
		r, name := c.record(n.X, reads), n.X.Span
		return func(f *Frame) karl.Value {
			i := index(f).Int()
			if f.strict && !r.Exists() {
				return f.missing(r.Name(), name)
			}
			return elementAt(r, i)
		}
	}
	d := c.dynamicName(n.X)
	return func(f *Frame) karl.Value {
		i := index(f).Int()
		if f.err != nil {
			return karl.Value{}
		}
		r := d.record(f)
		if r == nil || !r.Exists() {
			if f.strict && f.err == nil {
				return f.missing(d.text, at)
			}
			return karl.Value{}
		}
		return elementAt(r, i)
	}
}

func (c *compiler) incDec(n *karl.IncDec) node {
	delta := int64(1)
	if n.Op == karl.OpDec {
		delta = -1
	}
	x := karl.Unparen(n.X)
	switch x.(type) {
	case *karl.Name, *karl.Index:
	default: // ++ of a value
		y := c.expr(x)
		return func(f *Frame) karl.Value { return y(f).Step(delta) }
	}
	t := c.target(x, reads|writes)
	if t.index != nil {
		return c.updateElement(t, n.Postfix, func(_ *Frame, old karl.Value) karl.Value { return old.Step(delta) }, nil, 0, n.Span)
	}
	if r := t.rec; r != nil {
		if n.Postfix {
			return func(f *Frame) karl.Value {
				if r.Settled(f.ints) {
					i := r.Int()
					r.PutInt(i + delta)
					return karl.Int(i)
				}
				return f.step(t, delta, true)
			}
		}
		return func(f *Frame) karl.Value {
			if r.Settled(f.ints) {
				i := r.Int() + delta
				r.PutInt(i)
				return karl.Int(i)
			}
			return f.step(t, delta, false)
		}
	}
	postfix := n.Postfix
	return func(f *Frame) karl.Value { return f.step(t, delta, postfix) }
}

// step is ++ or -- of a whole variable.
//
//go:noinline
func (f *Frame) step(t *target, delta int64, postfix bool) karl.Value {
	r := t.write(f)
	if r == nil {
		return karl.Value{}
	}
	old := r.Value()
	if postfix && f.strict && !old.Exists() {
		return f.missing(r.Name(), t.at)
	}
	v := old.Step(delta)
	f.store(r, v, t.at)
	if postfix {
		return old
	}
	return v
}
