package main

import (
	"fmt"
	"strings"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// settings are the reference's: send at once, globals stay globals, nobody is
// signalled. On a base without waiters and sinks they cost what any settings do.
var settings = &knowledge.EvalSettings{NoSignal: true}

// The programs of the rows. Their variable is local, as in the reference, so
// they add nothing to what is to be sent; only the large assignment writes a
// global one.
var (
	manyIncrements = strings.Repeat("++.var1;", statements)
	manyTernaries  = strings.Repeat("1 => ++.var1;", statements)
	manyCalls      = strings.Repeat("function();", statements)
	manyAssigns    = assignments()
)

// assignments writes a different constant with each statement; the last one
// is their number.
func assignments() string {
	var b strings.Builder
	for i := range statements {
		fmt.Fprintf(&b, "var1 = %d;", i+1)
	}
	return b.String()
}

// karlRows are the reference's rows about the language and its variables.
func karlRows() []row {
	counts, holds := variableCounts, variableHolds
	return []row{
		{name: "KaRL: Simple Increments", per: 1, open: text("++.var1", counts(".var1"))},
		{name: "KaRL: Multiple Increments", per: statements, open: text(manyIncrements, counts(".var1"))},
		{name: "KaRL: Simple Ternary Increments", per: 1, open: text("1 => ++.var1", counts(".var1"))},
		{name: "KaRL: Multiple Ternary Increments", per: statements, open: text(manyTernaries, counts(".var1"))},
		{name: "KaRL: Compiled Simple Increments", per: 1, open: compiled("++.var1", counts(".var1"))},
		{name: "KaRL: Compiled Multiple Inc", per: statements, open: compiled(manyIncrements, counts(".var1"))},
		{name: "KaRL: Compiled Simple Tern Inc", per: 1, open: compiled("1 => ++.var1", counts(".var1"))},
		{name: "KaRL: Compiled Multiple Tern Inc", per: statements, open: compiled(manyTernaries, counts(".var1"))},
		{name: "KaRL: Compiled Single Assign", per: 1, open: compiled(".var1 = 1", holds(".var1", 1))},
		{name: "KaRL: Compiled Multiple Assign", per: statements, open: compiled(manyAssigns, holds("var1", statements))},
		{name: "KaRL: Extern Function Call", per: 1, open: externCall("function()")},
		{name: "KaRL: Compiled Extern Inc Func", per: 1, open: externIncrement},
		{name: "KaRL: Compiled Extern Multi Calls", per: statements, open: externCall(manyCalls)},
		{name: "KaRL: Looped Simple Increments", per: turns, open: loop(".var2[->.iterations) (++.var1)", ".var1")},
		// Without a body the loop needs no turns: it stores where it would end.
		// The reference's own text lacks the arrow and loops nowhere.
		{name: "KaRL: Optimized Loop", per: turns, open: loop(".var2[->.iterations)", "")},
		{name: "KaRL: Looped Simple Ternary Inc", per: turns, open: loop(".var2[->.iterations) (1 => ++.var1)", ".var1")},
		// The reference runs the program of the row above here too.
		{name: "KaRL: Looped Multiple Ternary Inc", per: turns, open: loop(".var2[->.iterations) (1 => ++.var1)", ".var1")},
		{name: "KaRL: Get Variable Reference", per: 1, open: getByName},
		{name: "KaRL: Get Expanded Reference", per: 1, open: getExpanded},
		{name: "KaRL: Normal Set Operation", per: 1, open: setByName},
		{name: "KaRL: Variable Reference Set", per: 1, open: assignHandle("var1")},
		{name: "KaRL: Variables Inc Var Ref", per: 1, open: externHandle},
	}
}

// variableCounts checks a variable that grows by one with each operation.
func variableCounts(name string) func(*knowledge.Base) func(int64) error {
	return func(kb *knowledge.Base) func(int64) error {
		return func(n int64) error { return want(name, kb.Get(name).Int(), n) }
	}
}

// variableHolds checks a variable that has one value after any number of operations.
func variableHolds(name string, v int64) func(*knowledge.Base) func(int64) error {
	return func(kb *knowledge.Base) func(int64) error {
		return func(int64) error { return want(name, kb.Get(name).Int(), v) }
	}
}

// text evaluates a program by its text, which the base compiles once.
func text(src string, check func(*knowledge.Base) func(int64) error) func(...knowledge.Option) (*work, error) {
	return func(opts ...knowledge.Option) (*work, error) {
		kb := knowledge.New(opts...)
		return &work{check: check(kb), run: func(units int) error {
			for range units {
				if _, err := kb.Evaluate(src, settings); err != nil {
					return err
				}
			}
			return nil
		}}, nil
	}
}

// compiled evaluates a program compiled before.
func compiled(src string, check func(*knowledge.Base) func(int64) error) func(...knowledge.Option) (*work, error) {
	return func(opts ...knowledge.Option) (*work, error) {
		kb := knowledge.New(opts...)
		e, err := kb.Compile(src)
		if err != nil {
			return nil, err
		}
		return &work{check: check(kb), run: evaluate(e)}, nil
	}
}

func evaluate(e *knowledge.Expression) func(int) error {
	return func(units int) error {
		for range units {
			if _, err := e.Evaluate(settings); err != nil {
				return err
			}
		}
		return nil
	}
}

// loop evaluates a compiled loop over .var2 to .iterations. counter is the
// variable that its body counts, "" if it has none.
func loop(src, counter string) func(...knowledge.Option) (*work, error) {
	return func(opts ...knowledge.Option) (*work, error) {
		kb := knowledge.New(opts...)
		if err := kb.Set(".iterations", karl.Int(turns)); err != nil {
			return nil, err
		}
		e, err := kb.Compile(src)
		if err != nil {
			return nil, err
		}
		return &work{run: evaluate(e), check: func(n int64) error {
			if err := want(".var2", kb.Get(".var2").Int(), turns); err != nil || counter == "" {
				return err
			}
			return want(counter, kb.Get(counter).Int(), n)
		}}, nil
	}
}

// externCall evaluates a compiled program that calls a Go function, which only
// counts.
func externCall(src string) func(...knowledge.Option) (*work, error) {
	return func(opts ...knowledge.Option) (*work, error) {
		kb := knowledge.New(opts...)
		var calls int64
		err := kb.Define("function", func(*knowledge.Call) (karl.Value, error) {
			calls++
			return karl.Int(0), nil
		})
		if err != nil {
			return nil, err
		}
		e, err := kb.Compile(src)
		if err != nil {
			return nil, err
		}
		return &work{run: evaluate(e), check: func(n int64) error { return want("the number of calls", calls, n) }}, nil
	}
}

// externIncrement calls a Go function that runs a compiled increment through
// the Guard it is given: an evaluation inside an evaluation.
func externIncrement(opts ...knowledge.Option) (*work, error) {
	kb := knowledge.New(opts...)
	inner, err := kb.Compile("++.var1")
	if err != nil {
		return nil, err
	}
	err = kb.Define("inc", func(c *knowledge.Call) (karl.Value, error) { return c.Guard.Run(inner, settings) })
	if err != nil {
		return nil, err
	}
	e, err := kb.Compile("inc()")
	if err != nil {
		return nil, err
	}
	return &work{run: evaluate(e), check: variableCounts(".var1")(kb)}, nil
}

// externHandle calls a Go function that increments a variable through its handle.
func externHandle(opts ...knowledge.Option) (*work, error) {
	kb := knowledge.New(opts...)
	v := knowledge.NewVar[int64](kb, "var1")
	err := kb.Define("inc", func(c *knowledge.Call) (karl.Value, error) {
		return karl.Int(0), v.In(c.Guard).Add(1)
	})
	if err != nil {
		return nil, err
	}
	e, err := kb.Compile("inc()")
	if err != nil {
		return nil, err
	}
	return &work{run: evaluate(e), check: variableCounts("var1")(kb)}, nil
}

// getByName finds a variable by its name and reads it. The reference's row only
// finds it and returns a reference. Here a handle is a Var, made once and kept:
// NewVar allocates it, and no program makes one per use; what programs do
// instead, with the same look-up in the index of names, is Base.Get.
func getByName(opts ...knowledge.Option) (*work, error) {
	kb := knowledge.New(opts...)
	if err := kb.Set("var1", karl.Int(1)); err != nil {
		return nil, err
	}
	var sum int64
	return &work{
		run: func(units int) error {
			for range units {
				sum += kb.Get("var1").Int()
			}
			return nil
		},
		check: func(n int64) error { return want("the sum of what was read", sum, n) },
	}, nil
}

// getExpanded reads a variable whose name has another one in braces, expanded
// at each evaluation. The reference's row has a name without braces.
func getExpanded(opts ...knowledge.Option) (*work, error) {
	kb := knowledge.New(opts...)
	for _, name := range []string{".i", "var1"} {
		if err := kb.Set(name, karl.Int(1)); err != nil {
			return nil, err
		}
	}
	e, err := kb.Compile("var{.i}")
	if err != nil {
		return nil, err
	}
	var sum int64
	return &work{
		run: func(units int) error {
			for range units {
				v, err := e.Evaluate(settings)
				if err != nil {
					return err
				}
				sum += v.Int()
			}
			return nil
		},
		check: func(n int64) error { return want("the sum of what was read", sum, n) },
	}, nil
}

// setByName writes a global variable by its name, another number each time.
func setByName(opts ...knowledge.Option) (*work, error) {
	kb := knowledge.New(opts...)
	var next int64
	return &work{check: variableCounts("var1")(kb), run: func(units int) error {
		for range units {
			next++
			if err := kb.Set("var1", karl.Int(next)); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}
