package knowledge

import (
	"math"
	"sync/atomic"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge/internal/store"
)

// Scalar is the types a [Var] can have.
type Scalar interface {
	int64 | float64 | bool | string | []int64 | []float64
}

// Var is a handle on one variable with a Go type: it finds the variable once. It
// may be used by many goroutines, for as long as the base, whether the variable
// is deleted meanwhile or not. Get converts what is there as the language does.
// A bool is stored as the integer 1 or 0. It must not be copied. MADARA knows it
// as the containers Integer, Double, String and their vectors.
type Var[T Scalar] struct {
	_         [0]func()
	b         *Base
	r         *store.Record
	err       error // why there is no record
	published atomic.Pointer[store.Published]
}

// NewVar returns a handle on the variable called name. It makes no value. If
// the name cannot be used, the methods of the handle return why.
func NewVar[T Scalar](b *Base, name string) *Var[T] {
	v := &Var[T]{b: b}
	b.lock("NewVar")
	defer b.unlock()
	if v.r, v.err = b.resolve(name); v.err == nil {
		v.r.Hold(false)
	}
	return v
}

// Name returns the variable's name, "" if it could not be used.
func (v *Var[T]) Name() string {
	if v.r == nil {
		return ""
	}
	return v.r.Name()
}

// Get returns the value, converted to T; the zero T if there is none.
func (v *Var[T]) Get() T {
	if v.r == nil {
		var zero T
		return zero
	}
	v.b.lock("Var.Get")
	x := v.r.Value()
	v.b.unlock()
	return fromValue[T](x)
}

// Set writes the variable and marks it to be sent. The errors are those of [Base.Set].
func (v *Var[T]) Set(x T) error {
	if v.err != nil {
		return v.err
	}
	v.b.lock("Var.Set")
	err := v.set(x)
	v.b.unlock()
	return err
}

func (v *Var[T]) set(x T) error {
	if v.b.closed {
		return ErrClosed
	}
	switch p := any(&x).(type) {
	case *int64:
		if v.r.Settled(store.SettledInteger) {
			v.r.PutInt(*p)
			return nil
		}
	case *float64:
		if v.r.Settled(store.SettledDouble) {
			v.r.PutBits(math.Float64bits(*p))
			return nil
		}
	}
	return v.b.store.Set(v.r, toValue(x), 0)
}

// Add adds delta and returns nothing but what went wrong: ErrKind for a Var of
// bool, string or a slice, and the errors of Set. What is there is converted to
// T first.
func (v *Var[T]) Add(delta T) error {
	if v.err != nil {
		return v.err
	}
	v.b.lock("Var.Add")
	err := v.add(delta)
	v.b.unlock()
	return err
}

func (v *Var[T]) add(delta T) error {
	if v.b.closed {
		return ErrClosed
	}
	switch p := any(&delta).(type) {
	case *int64:
		if v.r.Settled(store.SettledInteger) {
			v.r.PutInt(v.r.Int() + *p)
			return nil
		}
		return v.b.store.Set(v.r, karl.Int(v.r.Value().Int()+*p), 0)
	case *float64:
		return v.b.store.Set(v.r, karl.Float(v.r.Value().Float()+*p), 0)
	}
	return store.Errorf(ErrKind, "adding to %q, which is not a number", v.r.Name())
}

// Peek returns the value without the lock, for a reader that must not wait: what
// the variable held at the end of some recent hold of the lock. It is for int64,
// float64 and bool; a Var of another type, and a variable that holds something
// else than a number, is read with Get. The first Peek takes the lock, and from
// then on each hold that writes the variable costs a little more.
func (v *Var[T]) Peek() T {
	if p := v.published.Load(); p != nil {
		c := p.Load()
		var x T
		switch t := any(&x).(type) {
		case *int64:
			if c.Kind == karl.KindInteger {
				*t = int64(c.Bits.Load())
				return x
			}
		case *float64:
			if c.Kind == karl.KindDouble {
				*t = math.Float64frombits(c.Bits.Load())
				return x
			}
		}
	}
	return v.peekSlow()
}

// peekSlow is Peek the first time, and where the variable holds something else
// than a T.
//
//go:noinline
func (v *Var[T]) peekSlow() T {
	p := v.published.Load()
	if p == nil {
		if p = v.publish(); p == nil {
			return v.Get()
		}
	}
	c := p.Load()
	switch c.Kind {
	case karl.KindUninitialized, karl.KindInteger, karl.KindDouble:
		return fromValue[T](karl.FromWords(c.Kind, c.Bits.Load(), nil))
	}
	return v.Get()
}

func (v *Var[T]) publish() *store.Published {
	var zero T
	switch any(zero).(type) {
	case int64, float64, bool:
	default:
		return nil
	}
	if v.r == nil {
		return nil
	}
	v.b.lock("Var.Peek")
	p := v.b.store.Publish(v.r)
	v.b.unlock()
	v.published.Store(p)
	return p
}

// In returns the handle for use under a lock that is held already.
func (v *Var[T]) In(g Guard) LockedVar[T] {
	g.base()
	return LockedVar[T]{v, g}
}

// LockedVar is a [Var] whose methods use a lock that is held, by the Guard it
// was made with.
type LockedVar[T Scalar] struct {
	v *Var[T]
	g Guard
}

// Get is Var.Get.
func (l LockedVar[T]) Get() T {
	b := l.g.base()
	if l.v.r == nil {
		var zero T
		return zero
	}
	b.env.Track(l.v.r)
	return fromValue[T](l.v.r.Value())
}

// Set is Var.Set.
func (l LockedVar[T]) Set(x T) error {
	if err := l.check(); err != nil {
		return err
	}
	return l.v.set(x)
}

// Add is Var.Add.
func (l LockedVar[T]) Add(delta T) error {
	if err := l.check(); err != nil {
		return err
	}
	return l.v.add(delta)
}

func (l LockedVar[T]) check() error {
	if b := l.g.base(); l.v.b != b {
		return store.Errorf(ErrName, "the variable %q belongs to another base", l.v.Name())
	}
	return l.v.err
}

func toValue[T Scalar](x T) karl.Value {
	switch x := any(x).(type) {
	case int64:
		return karl.Int(x)
	case float64:
		return karl.Float(x)
	case bool:
		return karl.Bool(x)
	case string:
		return karl.String(x)
	case []int64:
		return karl.Ints(x)
	case []float64:
		return karl.Floats(x)
	}
	return karl.Value{}
}

func fromValue[T Scalar](v karl.Value) T {
	var out T
	switch p := any(&out).(type) {
	case *int64:
		*p = v.Int()
	case *float64:
		*p = v.Float()
	case *bool:
		*p = v.IsTrue()
	case *string:
		*p = v.String()
	case *[]int64:
		*p = v.AsInts()
	case *[]float64:
		*p = v.AsFloats()
	}
	return out
}
