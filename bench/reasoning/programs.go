package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// The arithmetic mix: eight nodes in two statements. An operation is both. a and
// b are chosen so that the condition holds.
const (
	mix         = "c = a * 3 + b - 2; c > 5 => ++d"
	mixPairs    = statements / 2
	mixFamilies = 250 // of four variables each in the large program
)

// programRows are programs that the reference's test does not have.
func programRows() []row {
	return []row{
		{name: "KaRL large: 1,000 Variables Inc", per: statements, open: incrementsOfMany},
		{name: "KaRL mix: Text", per: 1, open: mixed(mix, karl.Int(3), karl.Int(2), false)},
		{name: "KaRL mix: Compiled", per: 1, open: mixed(mix, karl.Int(3), karl.Int(2), true)},
		{name: "KaRL mix: Compiled, doubles", per: 1,
			open: mixed("c = a * 3.5 + b - 2.25; c > 5.5 => d += 1.0", karl.Float(3.25), karl.Float(2.5), true)},
		{name: "KaRL mix: Large, 1,000 Variables", per: mixPairs, open: mixOfMany(false)},
		{name: "KaRL mix: Large, 1,000 Variables, doubles", per: mixPairs, open: mixOfMany(true)},
	}
}

// incrementsOfMany increments each of a thousand variables once.
func incrementsOfMany(opts ...knowledge.Option) (*work, error) {
	kb := knowledge.New(opts...)
	var src strings.Builder
	for i := range statements {
		fmt.Fprintf(&src, "++.v%d;", i)
	}
	e, err := kb.Compile(src.String())
	if err != nil {
		return nil, err
	}
	return &work{run: evaluate(e), check: func(n int64) error {
		var sum int64
		for i := range statements {
			sum += kb.Get(fmt.Sprint(".v", i)).Int()
		}
		return want("the sum of the variables", sum, n)
	}}, nil
}

// mixed evaluates the mix, compiled or by its text.
func mixed(src string, a, b karl.Value, ready bool) func(...knowledge.Option) (*work, error) {
	open := text
	if ready {
		open = compiled
	}
	return func(opts ...knowledge.Option) (*work, error) {
		var failed error
		w, err := open(src, func(kb *knowledge.Base) func(int64) error {
			failed = errors.Join(kb.Set("a", a), kb.Set("b", b))
			return variableCounts("d")(kb)
		})(opts...)
		return w, errors.Join(err, failed)
	}
}

// mixOfMany is a program of 500 mixes, whose variables are a thousand.
func mixOfMany(doubles bool) func(...knowledge.Option) (*work, error) {
	return func(opts ...knowledge.Option) (*work, error) {
		kb := knowledge.New(opts...)
		pair, a, b := "c%[1]d = a%[1]d * 3 + b%[1]d - 2; c%[1]d > 5 => ++d%[1]d;", karl.Int(3), karl.Int(2)
		if doubles {
			pair = "c%[1]d = a%[1]d * 3.5 + b%[1]d - 2.25; c%[1]d > 5.5 => d%[1]d += 1.0;"
			a, b = karl.Float(3.25), karl.Float(2.5)
		}
		var src strings.Builder
		for i := range mixPairs {
			fmt.Fprintf(&src, pair, i%mixFamilies)
		}
		for i := range mixFamilies {
			if err := errors.Join(kb.Set(fmt.Sprint("a", i), a), kb.Set(fmt.Sprint("b", i), b)); err != nil {
				return nil, err
			}
		}
		e, err := kb.Compile(src.String())
		if err != nil {
			return nil, err
		}
		return &work{run: evaluate(e), check: func(n int64) error {
			var sum int64
			for i := range mixFamilies {
				sum += kb.Get(fmt.Sprint("d", i)).Int()
			}
			return want("the sum of the counters", sum, n)
		}}, nil
	}
}
