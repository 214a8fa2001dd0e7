package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/madara-go/madara/knowledge"
)

// The sizes of the reference's test.
const (
	statements = 1_000  // of a large program
	turns      = 10_000 // of a loop inside the language, each time it runs
	heldRuns   = 1_000  // evaluations while a Guard is held
)

// row is one line of the tables. The command and the benchmarks take it from
// the same list.
type row struct {
	name string
	unit string // of the figure the row is judged by; "" is the time of a mutex cycle
	per  int    // operations in one unit of work: statements of a program, turns of a loop

	// open makes the row ready to run, in each round.
	open func(...knowledge.Option) (*work, error)

	// fresh, in place of open, does everything in each round: for rows whose
	// goroutines or memory would disturb the others, or that time single events.
	fresh func(size) (*reading, error)
	end   func() // unless nil, called after the row in each round

	// wall says that the row is timed by the wall, because several goroutines
	// share its work or because it sleeps. CPU time says nothing about those; so
	// they need a quiet machine.
	wall       bool
	goroutines int  // that run start for each run, which allocates
	allocates  bool // by its nature
	cpus       int  // that the row's gate needs
	longer     int  // how many times as long it runs as others, where collections would scatter it; 0 is once
}

// Units of figures that are not a ratio.
const (
	unitMutex  = "M"
	unitMicros = "µs"
	unitBytes  = "B"
)

// size is how much a fresh row does.
type size struct {
	each  time.Duration // how long it measures, about
	quick bool          // only to see that it works, also under the race detector
}

// of returns a number of variables or waiters, a thousand at most when quick.
func (s size) of(n int) int {
	if s.quick {
		return min(n, 1_000)
	}
	return n
}

// work is a row made ready to run. It is for one goroutine.
type work struct {
	// run does so many units of the row's operation, in a loop of its own, so
	// that calling it costs nothing per operation.
	run func(units int) error

	// check returns an error unless the row's counter says that so many
	// operations happened since the work was opened.
	check func(operations int64) error
}

// allRows returns the list: the reference's rows in its order and under its
// names, then the same with other locks and with a sink, then what the reference
// does not measure.
func allRows() []row {
	karl := karlRows()
	return slices.Concat(karl, containerRows(), plainRows(), nullLockRows(karl), sharingRows(),
		programRows(), contentionRows(), compileRows(), wakeRows(), scaleRows())
}

// nullLockRows are some rows again on a base without a lock, which one goroutine
// may use.
func nullLockRows(from []row) []row {
	var list []row
	for _, name := range []string{
		"Simple Increments", "Multiple Increments", "Compiled Simple Increments", "Compiled Multiple Inc",
		"Compiled Simple Tern Inc", "Compiled Single Assign", "Extern Function Call", "Compiled Extern Inc Func",
		"Looped Simple Increments", "Normal Set Operation", "Variable Reference Set",
	} {
		i := slices.IndexFunc(from, func(r row) bool { return r.name == "KaRL: "+name })
		r := from[i]
		r.name = "KaRL null lock: " + name
		open := r.open
		r.open = func(opts ...knowledge.Option) (*work, error) {
			return open(append(opts, knowledge.WithNullLock())...)
		}
		list = append(list, r)
	}
	return list
}

// want is an error unless what a row counted is what it should have counted.
func want(what string, got, want int64) error {
	if got != want {
		return fmt.Errorf("%s is %d, want %d", what, got, want)
	}
	return nil
}
