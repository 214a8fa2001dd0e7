package main

import (
	"fmt"

	"github.com/madara-go/madara/knowledge"
)

// sharingRows are a lock held over many evaluations, and evaluations that send.
func sharingRows() []row {
	return []row{
		{name: "KaRL guard: Compiled Simple Increments", per: heldRuns, open: underGuard},
		{name: "KaRL sink: Compiled Simple Increments", per: 1, open: intoSink},
	}
}

// underGuard takes the lock once for a thousand evaluations.
func underGuard(opts ...knowledge.Option) (*work, error) {
	kb := knowledge.New(opts...)
	e, err := kb.Compile("++.var1")
	if err != nil {
		return nil, err
	}
	return &work{check: variableCounts(".var1")(kb), run: func(units int) error {
		for range units {
			if err := hold(kb, e); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

func hold(kb *knowledge.Base, e *knowledge.Expression) error {
	g := kb.Lock()
	defer g.Unlock()
	for range heldRuns {
		if _, err := g.Run(e, settings); err != nil {
			return err
		}
	}
	return nil
}

// intoSink increments a global variable, which is handed to a sink after each
// evaluation. The sink does nothing with it but count.
func intoSink(opts ...knowledge.Option) (*work, error) {
	var sent int64
	sink := func(_ uint64, updates []knowledge.Update) { sent += int64(len(updates)) }
	kb := knowledge.New(append(opts, knowledge.WithSink(sink))...)
	e, err := kb.Compile("++var1")
	if err != nil {
		return nil, err
	}
	return &work{run: evaluate(e), check: func(n int64) error {
		if got := kb.Get("var1").Int(); got != n || sent != n {
			return fmt.Errorf("var1 is %d and %d updates were sent, want %d of both", got, sent, n)
		}
		return nil
	}}, nil
}
