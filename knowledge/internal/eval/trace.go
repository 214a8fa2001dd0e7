package eval

import (
	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge/internal/store"
)

// Trace is what the nodes of a program compiled with CompileTraced did in its
// next run. Functions and texts that the program runs are not looked into.
type Trace struct {
	Steps   []*Step
	Dropped int // steps beyond the limit

	limit int
	stack []*Step // those that run
}

// Step is one run of one node that is not a literal.
type Step struct {
	Node   karl.Node
	Value  karl.Value
	Failed bool // Value means nothing

	// Name is the variable that was read or written, with its braces expanded; of
	// a node that writes, Old and New are its value before and after.
	Name     string
	Old, New karl.Value

	Steps []*Step

	written *written
}

// written is the variable that a node writes.
type written struct {
	rec     *store.Record
	dynamic *dynamicName
}

// NewTrace returns a trace of at most so many steps.
func NewTrace(limit int) *Trace { return &Trace{limit: limit} }

// CompileTraced is Compile for a program that writes down what it does. Only such
// a program pays for it: its nodes are the general ones, each within one that
// writes.
func (e *Env) CompileTraced(tree *karl.Program, t *Trace) (*Program, *Error) {
	return e.compile(tree, "", t)
}

// traced compiles a node and wraps it.
func (c *compiler) traced(n karl.Node) node {
	x := c.plain(n)
	if _, ok := n.(*karl.Literal); ok {
		return x
	}
	t := c.trace
	var name *karl.Name
	writes := false
	switch n := n.(type) {
	case *karl.Name:
		name = n
	case *karl.Assign:
		name, writes = variableOf(n.X), true
	case *karl.IncDec:
		name, writes = variableOf(n.X), true
	case *karl.Loop:
		name, writes = n.Var, true
	}
	var w *written
	if name != nil && dynamic(name) {
		w = &written{dynamic: c.dynamicName(name)}
	} else if name != nil {
		r, err := c.env.Store.Intern(name.Text)
		if err != nil {
			return x // the node itself reported it
		}
		w = &written{rec: r}
	}
	return func(f *Frame) karl.Value {
		s := t.begin(n)
		if s == nil {
			return x(f)
		}
		if writes && w != nil {
			s.written = w
			s.look(f)
		} else if w != nil {
			s.Name, _ = w.value(f)
		}
		v := x(f)
		t.end(f, s, v)
		return v
	}
}

// variableOf returns the variable that a target is, or is an element of; nil for
// another expression.
func variableOf(n karl.Node) *karl.Name {
	switch n := karl.Unparen(n).(type) {
	case *karl.Name:
		return n
	case *karl.Index:
		return n.X
	}
	return nil
}

// begin returns nil if the trace is full.
func (t *Trace) begin(n karl.Node) *Step {
	if t.limit == 0 {
		t.Dropped++
		return nil
	}
	t.limit--
	s := &Step{Node: n}
	if len(t.stack) > 0 {
		above := t.stack[len(t.stack)-1]
		above.Steps = append(above.Steps, s)
	} else {
		t.Steps = append(t.Steps, s)
	}
	t.stack = append(t.stack, s)
	return s
}

func (t *Trace) end(f *Frame, s *Step, v karl.Value) {
	t.stack = t.stack[:len(t.stack)-1]
	s.Value, s.Failed = v, f.err != nil
	if s.written != nil {
		s.Name, s.New = s.written.value(f)
	}
	// What the node above writes has not been written yet, but for a loop.
	if len(t.stack) > 0 {
		above := t.stack[len(t.stack)-1]
		if _, loop := above.Node.(*karl.Loop); above.written != nil && !loop {
			above.look(f)
		}
	}
}

// look notes the value there is before the write.
func (s *Step) look(f *Frame) { s.Name, s.Old = s.written.value(f) }

// value returns the name and the value of the variable now.
func (w *written) value(f *Frame) (string, karl.Value) {
	r := w.rec
	if w.dynamic != nil {
		if f.err != nil {
			return w.dynamic.text, karl.Value{}
		}
		name := string(w.dynamic.expand(f))
		f.err = nil // the node itself will report it
		if r = f.st.Lookup(name); r == nil {
			return name, karl.Value{}
		}
	}
	return r.Name(), r.Value()
}
