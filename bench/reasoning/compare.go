package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// A row counts as slower or faster than in an older file only if both hold:
//
//   - its figure changed by more than leastChange;
//   - the intervals between the quartiles of the rounds, old and new, do not
//     overlap, so that the change is larger than what half the rounds of either
//     run scatter.
//
// Rows timed by the wall are marked only if both runs had two processors for two
// goroutines: otherwise they tell about the machine.
//
// A file from before the quartiles were written has none; its rows are taken to
// scatter by unknownSpread to both sides. Of the many rows a few still cross the
// bound by chance: run again before you believe a single mark.
const (
	leastChange   = 0.05
	unknownSpread = 0.10
)

// readResults reads a file of -json.
func readResults(name string) (*results, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r := &results{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s is not a file of -json: %w", name, err)
	}
	if len(r.Rows) == 0 {
		return nil, fmt.Errorf("%s is not a file of -json: it has no rows", name)
	}
	return r, nil
}

// with returns the run with a number of processors, or the first.
func (r *results) with(processors int) (*results, bool) {
	if r.Env.GOMAXPROCS == processors {
		return r, true
	}
	for _, m := range r.More {
		if m.Env.GOMAXPROCS == processors {
			return m, true
		}
	}
	return r, false
}

// quiet reports whether goroutines had processors of their own.
func (e *environment) quiet() bool { return e.GOMAXPROCS > 1 && e.Parallel >= enough }

// spread returns a row's unit and figure with its interval.
func (r *result) spread() (unit string, figure, low, high float64) {
	if r.Unit == "" { // an old file
		return unitMutex, r.Ratio, r.Ratio * (1 - unknownSpread), r.Ratio * (1 + unknownSpread)
	}
	return r.Unit, r.Figure, r.Low, r.High
}

// compareRow returns the change as a part of the old figure, and "slower",
// "faster" or "" by the rule above. Memory that shrank is "faster" too.
func compareRow(old, new *result) (change float64, mark string, ok bool) {
	unit, was, low, high := old.spread()
	newUnit, is, newLow, newHigh := new.spread()
	if unit != newUnit || was == 0 {
		return 0, "", false
	}
	change = is/was - 1
	switch {
	case change > leastChange && newLow > high:
		mark = "slower"
	case change < -leastChange && newHigh < low:
		mark = "faster"
	}
	return change, mark, true
}

// writeComparison tells what changed since an older run, and returns how many
// rows are slower.
func writeComparison(w io.Writer, file string, from, r *results) (slower int) {
	old, same := from.with(r.Env.GOMAXPROCS)
	fmt.Fprintf(w, "\nChanges since %s (%s, %s):\n%s\n", file, old.Env.Time, old.Env.CPU, rule)
	if !same {
		fmt.Fprintf(w, " It has no run with GOMAXPROCS %d; this is its run with %d.\n", r.Env.GOMAXPROCS, old.Env.GOMAXPROCS)
	}
	if old.Env.CPU != r.Env.CPU {
		fmt.Fprintf(w, " It is of another machine: ratios compare, the rest does not.\n")
	}
	if old.Env.Quick || r.Env.Quick {
		fmt.Fprintf(w, " A quick run says nothing about speed.\n")
	}
	before := map[string]*result{}
	for i := range old.Rows {
		before[old.Rows[i].Name] = &old.Rows[i]
	}
	faster := 0
	for i := range r.Rows {
		row := &r.Rows[i]
		was := before[row.Name]
		if was == nil {
			fmt.Fprintf(w, " %-43s %9s -> %9s %-2s %8s\n", row.Name, "", figure(row.Figure), row.Unit, "new")
			continue
		}
		change, mark, ok := compareRow(was, row)
		if !ok {
			fmt.Fprintf(w, " %-43s cannot be compared\n", row.Name)
			continue
		}
		if row.Clock == "wall" && !(old.Env.quiet() && r.Env.quiet()) {
			mark = ""
		}
		_, value, _, _ := was.spread()
		fmt.Fprintf(w, " %-43s %9s -> %9s %-2s %+7.1f %%  %s\n", row.Name, figure(value), figure(row.Figure), row.Unit, 100*change, mark)
		switch mark {
		case "slower":
			slower++
		case "faster":
			faster++
		}
	}
	fmt.Fprintf(w, "%s\n%d rows slower, %d faster, by more than %.0f %% and with quartiles apart.\n", rule, slower, faster, 100*leastChange)
	return slower
}
