package knowledge

import (
	"context"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge/internal/eval"
)

// Trace is what an evaluation did, as a tree. Literals have no step, and parts
// that did not run, as the action of a rule whose condition was false, have none.
// Functions in KaRL and texts of #eval are not looked into, only what they returned.
type Trace struct {
	Program *karl.Program
	Steps   []*Step
	Dropped int // steps that were left out, beyond 100,000
}

// Step is one run of one node of the program.
type Step struct {
	Node  karl.Node
	Value karl.Value // what it came to; nothing if Failed

	// Failed says that the evaluation ended in the node or below it.
	Failed bool

	// Name is the variable that was read, or written, as its name was then; ""
	// where there is none. Of assignments, counting and loops, Old and New are the
	// values of the variable before and after; of an element's, the whole arrays.
	Name     string
	Old, New karl.Value

	Steps []*Step // those it is made of, in the order they ran
}

// maxTrace bounds the steps of a trace.
const maxTrace = 100_000

// Explain evaluates a program as [Expression.EvaluateContext] does, with all its
// effects, and returns what led to its value. The trace is there after a fault,
// too. s may be nil. Other programs are none the slower for it.
func (b *Base) Explain(ctx context.Context, p *karl.Program, s *EvalSettings) (karl.Value, *Trace, error) {
	t := eval.NewTrace(maxTrace)
	b.lock("Base.Explain")
	if b.closed {
		b.unlock()
		return karl.Value{}, nil, ErrClosed
	}
	prog, fail := b.env.CompileTraced(p, t)
	b.unlock()
	if fail != nil {
		return karl.Value{}, nil, newEvalError(fail)
	}
	v, err := b.evaluate(&Expression{base: b, tree: p, prog: prog}, s, ctx)
	return v, &Trace{Program: p, Steps: steps(t.Steps), Dropped: t.Dropped}, err
}

func steps(list []*eval.Step) []*Step {
	var out []*Step
	for _, s := range list {
		step := &Step{Node: s.Node, Failed: s.Failed, Name: s.Name, Old: s.Old, New: s.New, Steps: steps(s.Steps)}
		if !s.Failed {
			step.Value = s.Value
		}
		out = append(out, step)
	}
	return out
}
