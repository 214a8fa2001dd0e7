package eval

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge/internal/store"
)

func isQuality(err error) bool { return errors.Is(err, store.ErrQuality) }

// ErrUndefined says that a program called a function nobody defined.
var ErrUndefined = errors.New("function is not defined")

// pop drops the values above base.
func (e *Env) pop(base int) {
	clear(e.values[base:])
	e.values = e.values[:base]
}

// A caller is a call at one place of a program.
type caller struct {
	at      karl.Span
	fn      *Function    // of a name without braces
	dynamic *dynamicName // of one with
	args    []node
	slots   []*store.Record // the variables .0, .1, … that arguments are left in
}

func (c *compiler) call(n *karl.Call) node {
	c.effect()
	c.p.Calls = true
	k := &caller{at: n.Span}
	name := &karl.Name{Span: karl.Span{From: n.From, To: n.From + int32(len(n.Name))}, Text: n.Name}
	if dynamic(name) {
		k.dynamic = c.dynamicName(name)
	} else {
		fn, err := c.env.Function(n.Name, true)
		if err != nil {
			c.fail(name.Span, err)
			return constant(karl.Value{})
		}
		k.fn = fn
	}
	k.args = c.exprs(n.Args)
	for i := range k.args {
		r, err := c.env.Store.Intern("." + strconv.Itoa(i))
		if err != nil {
			c.fail(n.Span, err)
			return constant(karl.Value{})
		}
		r.Hold(false)
		k.slots = append(k.slots, r)
	}
	return k.run
}

func (k *caller) run(f *Frame) karl.Value {
	e := f.Env
	base := len(e.values)
	for i, arg := range k.args {
		v := arg(f)
		if f.err != nil {
			e.pop(base)
			return v
		}
		e.values = append(e.values, v)
		f.st.Argument(k.slots[i], v)
	}
	fn := k.fn
	if fn == nil {
		name := k.dynamic.expand(f)
		if f.err == nil && len(name) == 0 {
			f.fail(k.at, store.Errorf(ErrName, "the function name %q expands to nothing", clip(k.dynamic.text)))
		}
		if f.err != nil {
			e.pop(base)
			return karl.Value{}
		}
		if fn = e.functions[string(name)]; fn == nil {
			fn = &Function{Name: string(name)}
		}
	}
	args := e.values[base:len(e.values):len(e.values)] // a host may append to it
	v := f.call(fn, args, k.at)
	e.pop(base)
	return v
}

func (f *Frame) call(fn *Function, args []karl.Value, at karl.Span) karl.Value {
	if !f.charge(1, at) {
		return karl.Value{}
	}
	if fn.Host != nil {
		v, err := f.host(fn, args, at)
		if err != nil {
			f.fail(at, err)
			return karl.Value{}
		}
		return v
	}
	if fn.Body == nil {
		return f.fail(at, store.Errorf(ErrUndefined, "function %q is not defined", clip(fn.Name)))
	}
	// The body of a function runs with the default settings, not the caller's.
	return f.nest(fn.Body, args, true, 0, at)
}

// nest runs a program inside the running one.
func (f *Frame) nest(p *Program, args []karl.Value, inCall bool, mode Mode, at karl.Span) karl.Value {
	e := f.Env
	g, err := e.enter(p, mode)
	if err != nil {
		return f.fail(at, err)
	}
	g.args, g.inCall = args, inCall
	if e.Tracked != nil {
		*e.Tracked = append(*e.Tracked, p.Reads...)
	}
	v := p.root(g)
	failure := g.err
	e.leave(g)
	if failure != nil {
		if len(failure.Sites) < maxSites {
			failure.Sites = append(failure.Sites, Site{Program: f.prog.Tree, Function: f.prog.Function, From: at.Pos(), To: at.End()})
		}
		f.err = failure
		return karl.Value{}
	}
	return v
}

// maxSites is how many places of a call chain an error remembers.
const maxSites = 16

// PanicError is what a host function panicked with.
type PanicError struct {
	Function string
	Value    any
	Stack    []byte
}

func (p *PanicError) Error() string {
	return fmt.Sprintf("function %q panicked: %v", p.Function, p.Value)
}

// Unwrap returns the value if it is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// host calls a function of the host; a panic becomes an error.
func (f *Frame) host(fn *Function, args []karl.Value, at karl.Span) (v karl.Value, err error) {
	e := f.Env
	depth, hosts, meter := e.depth, e.Hosts, e.meter
	returned := false
	defer func() {
		if returned {
			return
		}
		r := recover()
		if r == nil {
			// The goroutine is ending. The outermost of the functions that run
			// cleans up, once the others are done.
			if hosts == 0 && e.Goexit != nil {
				e.Goexit()
			}
			return
		}
		for e.depth > depth {
			e.leave(e.frames[e.depth-1])
		}
		e.Hosts = hosts
		if e.meter.max != meter.max || e.meter.ctx != meter.ctx { // of a program that the function ran
			meter.budget -= int64(e.meter.spent())
			e.meter = meter
		}
		if m, ok := r.(Misuse); ok {
			v, err = karl.Value{}, m
			return
		}
		v, err = karl.Value{}, &PanicError{Function: fn.Name, Value: r, Stack: debug.Stack()}
	}()
	e.Hosts++
	v, err = fn.Host(e, args)
	e.Hosts = hosts
	returned = true
	if err == nil && e.meter.ctx != nil && e.meter.ctx.Err() != nil {
		err = context.Cause(e.meter.ctx) // the function may have taken its time
	}
	return v, err
}
