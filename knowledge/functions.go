package knowledge

import (
	"context"
	"fmt"
	"github.com/madara-go/madara/knowledge/internal/store"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge/internal/eval"
)

// Func is a function that programs call by name. It runs under the base's lock,
// on the goroutine that evaluates, and uses the base through Call.Guard. An error
// stops the program and is what errors.Is and errors.As find in its *EvalError; a
// panic does the same. It may be called by one goroutine at a time only.
type Func func(*Call) (karl.Value, error)

// Call is one call of a Func. It is valid until the function returns.
type Call struct {
	Guard Guard
	Name  string       // the name it was called by
	Args  []karl.Value // evaluated left to right

	env *eval.Env
}

// Context returns the context of the evaluation that makes the call,
// context.Background where it has none.
func (c *Call) Context() context.Context { return c.env.Context() }

// Arg returns argument i, the zero Value if there are not so many.
func (c *Call) Arg(i int) karl.Value {
	if i < 0 || i >= len(c.Args) {
		return karl.Value{}
	}
	return c.Args[i]
}

// Define makes f the function of a name, in programs compiled before too. A nil f
// takes the function away. The error is ErrName for what cannot be called: not a
// name, reserved, or with braces. MADARA knows it as define_function.
func (b *Base) Define(name string, f Func) error {
	b.lock("Base.Define")
	defer b.unlock()
	return b.define(name, f)
}

func (b *Base) define(name string, f Func) error {
	fn, err := b.function(name)
	if err != nil {
		return err
	}
	fn.Host, fn.Body = nil, nil
	if f == nil {
		return nil
	}
	who := fmt.Sprintf("the function %q", fn.Name)
	fn.Host = func(e *eval.Env, args []karl.Value) (karl.Value, error) {
		depth := e.Hosts - 1
		for len(b.calls) <= depth {
			b.calls = append(b.calls, &Call{env: e})
		}
		c := b.calls[depth]
		outer := b.lentTo
		b.lend(who)
		c.Guard, c.Name, c.Args = b.guard(true), fn.Name, args
		v, err := f(c)
		b.lentTo = outer
		return v, err
	}
	return nil
}

// DefineExpression makes a program the function of a name. The program reads its
// arguments with #arg(0), #arg(1)…, and their number with #args().
func (b *Base) DefineExpression(name, src string) error {
	tree, err := karl.Parse("", src)
	if err != nil {
		return err
	}
	b.lock("Base.DefineExpression")
	defer b.unlock()
	return b.defineExpression(name, tree)
}

func (b *Base) defineExpression(name string, tree *karl.Program) error {
	fn, err := b.function(name)
	if err != nil {
		return err
	}
	body, fail := b.env.Compile(tree, name)
	if fail != nil {
		return newEvalError(fail)
	}
	fn.Host, fn.Body = nil, body
	return nil
}

func (b *Base) function(name string) (*eval.Function, error) {
	if b.closed {
		return nil, ErrClosed
	}
	if !karl.IsName(name) {
		return nil, store.Errorf(ErrName, "%q cannot be the name of a function", name)
	}
	return b.env.Function(name, false)
}
