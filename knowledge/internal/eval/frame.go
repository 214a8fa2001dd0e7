// Package eval runs programs of the language: it binds a tree to the records of
// a store, so that running touches them directly. Everything here happens under
// the lock of the base that owns the store; nothing here starts goroutines or
// knows about transports.
package eval

import (
	"context"
	"errors"
	"math"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge/internal/store"
)

// Mode is how one evaluation differs from the default, the zero value, in what
// it does: a store.Write, and Strict.
type Mode uint16

// Strict makes reading a variable that is not set a fault.
const Strict Mode = 1 << 8

// Bounds is what ends an evaluation early. The zero value is nothing.
type Bounds struct {
	MaxSteps uint64          // 0: no limit
	Context  context.Context // nil: cannot be cancelled
}

// Frame is the state of one running program: the outermost one, the body of a
// function, or the text of #eval. Frames are reused.
type Frame struct {
	Env *Env
	st  *store.Store

	// Patterns for [store.Record.Settled], NeverSettled where the settings ask
	// for more than the fast path does.
	ints, doubles uint32

	mode   Mode // what the patterns, write and strict are made of
	write  store.Write
	strict bool
	err    *Error
	prog   *Program

	args   []karl.Value // of the function whose body this is
	inCall bool
}

// Error is a fault that stopped a program, with the places it went through,
// innermost first.
type Error struct {
	Err   error
	Sites []Site
}

// Site is a place in a running program.
type Site struct {
	Program  *karl.Program
	Function string // whose body the program is; "" for the outermost one and for #eval
	From, To int
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Misuse is a panic that must reach the caller of the base although a function
// called from a program raised it: re-entry, or a Guard used too late.
type Misuse string

func (m Misuse) Error() string { return string(m) }

// Errors of programs. The base returns them under its own names.
var (
	ErrMissing = errors.New("variable is not set")
	ErrName    = errors.New("not a name")
	ErrKind    = errors.New("wrong kind of value")
)

// fail records the first fault; everything that runs until the program has
// stopped must check f.err before it has an effect.
//
//go:noinline
func (f *Frame) fail(at karl.Span, err error) karl.Value {
	if f.err == nil {
		f.err = &Error{Err: err, Sites: []Site{{Program: f.prog.Tree, Function: f.prog.Function, From: at.Pos(), To: at.End()}}}
	}
	return karl.Value{}
}

// meter counts the steps of an evaluation and everything it calls.
type meter struct {
	budget int64 // steps until the next look at limit and context
	grant  int64 // what budget was when it was last filled
	used   uint64
	max    uint64 // 0: no limit
	ctx    context.Context
}

// pollSteps is how many steps lie between two looks at the context.
const pollSteps = 1024

func (m *meter) start(max uint64, ctx context.Context) {
	*m = meter{max: max, ctx: ctx}
	m.fill()
}

func (m *meter) fill() {
	grant := int64(math.MaxInt64)
	if m.ctx != nil {
		grant = pollSteps
	}
	if m.max > 0 {
		grant = min(grant, int64(min(m.max-m.used, math.MaxInt64)))
	}
	m.budget, m.grant = grant, grant
}

// spent returns the steps used so far.
func (m *meter) spent() uint64 { return m.used + uint64(m.grant-m.budget) }

// charge takes n steps and reports whether the program may go on.
func (f *Frame) charge(n int64, at karl.Span) bool {
	m := &f.Env.meter
	m.budget -= n
	if m.budget >= 0 {
		return true
	}
	return f.refill(at)
}

//go:noinline
func (f *Frame) refill(at karl.Span) bool {
	m := &f.Env.meter
	m.used = m.spent()
	m.grant, m.budget = 0, 0
	if m.max > 0 && m.used > m.max {
		f.fail(at, store.Errorf(store.ErrLimit, "stopped after %d steps", m.max))
		return false
	}
	if m.ctx != nil {
		if err := context.Cause(m.ctx); err != nil {
			f.fail(at, err)
			return false
		}
	}
	m.fill()
	return true
}

// enter begins the frame of p on top of the running ones.
func (e *Env) enter(p *Program, mode Mode) (*Frame, error) {
	if e.depth > 0 {
		if e.depth > e.Limits.CallDepth {
			return nil, store.Errorf(store.ErrLimit, "calls are nested more than %d deep", e.Limits.CallDepth)
		}
		e.weight += e.frames[e.depth-1].prog.Depth
		if e.weight+p.Depth > maxWeight {
			e.weight -= e.frames[e.depth-1].prog.Depth
			return nil, store.Errorf(store.ErrLimit, "calls and the expressions around them are nested more than %d deep", maxWeight)
		}
		if e.depth == len(e.frames) {
			e.frames = append(e.frames, newFrame(e))
		}
	}
	f := e.frames[e.depth]
	e.depth++
	if f.prog != p { // a store less where one program runs again and again
		f.prog = p
	}
	if f.mode != mode {
		f.configure(mode)
	}
	return f, nil
}

func (e *Env) leave(f *Frame) {
	e.depth--
	if e.depth > 0 {
		e.weight -= e.frames[e.depth-1].prog.Depth
		f.args, f.inCall = nil, false
	}
	if f.err != nil {
		f.err = nil
	}
}

// maxWeight bounds the sum of the depths of the trees that run inside each
// other, and with it the stack. The outermost tree counts, but may be deeper.
const maxWeight = 100_000

func newFrame(e *Env) *Frame {
	f := &Frame{Env: e, st: e.Store}
	f.configure(0)
	return f
}

func (f *Frame) configure(mode Mode) {
	f.mode = mode
	f.write, f.strict = store.Write(mode), mode&Strict != 0
	f.ints, f.doubles = store.SettledInteger, store.SettledDouble
	if f.write&store.SendLocals != 0 {
		f.ints, f.doubles = store.NeverSettled, store.NeverSettled
	}
}

// Run evaluates p. It may be called from a function that a running program
// called; steps then count for both.
func (e *Env) Run(p *Program, mode Mode) (karl.Value, *Error) {
	f, err := e.enter(p, mode)
	if err != nil {
		return karl.Value{}, &Error{Err: err, Sites: []Site{{Program: p.Tree}}}
	}
	var v karl.Value
	if e.depth == 1 || p.list || f.charge(1, karl.Span{}) {
		v = p.root(f)
	}
	failure := f.err
	e.leave(f)
	return v, failure
}

// RunWithin is Run within bounds, and within those of the program around it.
func (e *Env) RunWithin(p *Program, mode Mode, bounds Bounds) (karl.Value, *Error) {
	f, err := e.enter(p, mode)
	if err != nil {
		return karl.Value{}, &Error{Err: err, Sites: []Site{{Program: p.Tree}}}
	}
	outer := e.meter
	limit, ctx := bounds.MaxSteps, bounds.Context
	spent := false // nothing is left of the steps of the program around it
	if outer.max > 0 {
		left := outer.max - min(outer.spent(), outer.max)
		spent = left == 0
		if limit == 0 || left < limit {
			limit = max(left, 1)
		}
	}
	if ctx == nil {
		ctx = outer.ctx
	}
	e.meter.start(limit, ctx)
	var v karl.Value
	if spent {
		f.fail(karl.Span{}, store.Errorf(store.ErrLimit, "stopped after %d steps", outer.max))
	} else if (p.list || f.charge(1, karl.Span{})) && f.alive() {
		v = p.root(f)
	}
	failure := f.err
	used := e.meter.spent()
	e.meter = outer
	e.meter.budget -= int64(used)
	e.leave(f)
	return v, failure
}

// longWork is how many bytes of text are worth a look at the context.
const longWork = 64 << 10

// worked looks at the context after work on so many bytes, which counts no steps.
func (f *Frame) worked(bytes int, at karl.Span) {
	if ctx := f.Env.meter.ctx; bytes >= longWork && ctx != nil && ctx.Err() != nil {
		f.fail(at, context.Cause(ctx))
	}
}

// alive looks at the context before anything runs.
func (f *Frame) alive() bool {
	if ctx := f.Env.meter.ctx; ctx != nil && ctx.Err() != nil {
		f.fail(karl.Span{}, context.Cause(ctx))
		return false
	}
	return true
}

// Abandon puts the environment back after a goroutine left a running program
// without returning.
func (e *Env) Abandon() {
	for e.depth > 0 {
		e.leave(e.frames[e.depth-1])
	}
	e.weight, e.Hosts, e.Tracked = 0, 0, nil
	e.values = e.values[:0]
	e.meter.start(0, nil)
}

// Context returns the context of the running evaluation.
func (e *Env) Context() context.Context {
	if e.meter.ctx != nil {
		return e.meter.ctx
	}
	return context.Background()
}
