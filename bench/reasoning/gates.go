package main

import (
	"fmt"
	"io"
)

// gate is what a row must reach.
type gate struct {
	Must   float64 `json:"must"`             // the figure at most, in the row's unit
	Clean  bool    `json:"clean,omitempty"`  // without allocating
	Judged bool    `json:"judged"`           // this run can tell: it had the processors needed
	Missed bool    `json:"missed,omitempty"` // and the row is beyond it
}

// gates are the limits that the library is developed against.
var gates = map[string]gate{
	"KaRL: Compiled Simple Increments":         {Must: 4.5, Clean: true},
	"KaRL: Compiled Simple Tern Inc":           {Must: 4.5, Clean: true},
	"KaRL: Compiled Single Assign":             {Must: 4.5, Clean: true},
	"KaRL: Simple Increments":                  {Must: 6, Clean: true},
	"KaRL: Simple Ternary Increments":          {Must: 6, Clean: true},
	"KaRL: Multiple Increments":                {Must: 0.6},
	"KaRL: Multiple Ternary Increments":        {Must: 0.6},
	"KaRL: Compiled Multiple Inc":              {Must: 0.6},
	"KaRL: Compiled Multiple Tern Inc":         {Must: 0.6},
	"KaRL: Compiled Multiple Assign":           {Must: 0.6},
	"KaRL large: 1,000 Variables Inc":          {Must: 0.7},
	"KaRL: Looped Simple Increments":           {Must: 1.5},
	"KaRL: Looped Simple Ternary Inc":          {Must: 2},
	"KaRL: Looped Multiple Ternary Inc":        {Must: 2},
	"KaRL: Extern Function Call":               {Must: 5},
	"KaRL: Compiled Extern Inc Func":           {Must: 7.5},
	"KaRL: Compiled Extern Multi Calls":        {Must: 4},
	"KaRL: Normal Set Operation":               {Must: 5, Clean: true},
	"KaRL: Variable Reference Set":             {Must: 2.5, Clean: true},
	"KaRL container: Assignment":               {Must: 2.5, Clean: true},
	"KaRL container: Increments":               {Must: 2.5, Clean: true},
	"KaRL mix: Compiled":                       {Must: 8},
	"KaRL sink: Compiled Simple Increments":    {Must: 8, Clean: true},
	"KaRL beside writer: Peek":                 {Must: 0.3},
	"KaRL shared: 2 Goroutines Inc":            {Must: 4},
	"KaRL shared: 16 Goroutines Inc":           {Must: 7},
	"KaRL wake: 1 Waiter":                      {Must: 50},
	"KaRL wake: 10,000 Waiters, own Variables": {Must: 200},
	"KaRL wake: 10,000 Waiters, one Variable":  {Must: 200},
	"KaRL million: Memory per Variable":        {Must: 200},
	"KaRL compile: Increment of 10,000":        {Must: 2},
	"KaRL compile: Mixed Statement of 10,000":  {Must: 8},
	"KaRL compile: Short Text":                 {Must: 6},
}

// gateOf returns the gate of a row, nil if it has none. One about two processors
// is judged only where two busy goroutines really had them.
func gateOf(r row, e *environment) *gate {
	g, ok := gates[r.name]
	if !ok {
		return nil
	}
	g.Judged = r.cpus < 2 || e.GOMAXPROCS >= r.cpus && (e.Parallel == 0 || e.Parallel >= enough)
	return &g
}

// dirty is how much is allocated per operation where that counts as not clean;
// the runtime itself allocates at times.
const dirty = 0.01

// judge tells which gates are missed.
func (r *results) judge() (missed int) {
	for i := range r.Rows {
		row := &r.Rows[i]
		if g := row.Gate; g != nil && g.Judged {
			g.Missed = row.Figure > g.Must || g.Clean && row.Allocs > dirty
			if g.Missed {
				missed++
			}
		}
	}
	return missed
}

// verdict is the gate in the table.
func (r *result) verdict() string {
	g := r.Gate
	switch {
	case g == nil:
		return ""
	case !g.Judged:
		return fmt.Sprintf("gate %g %s not judged", g.Must, r.Unit)
	case g.Missed:
		return fmt.Sprintf("gate %g %s MISSED", g.Must, r.Unit)
	}
	return fmt.Sprintf("gate %g %s", g.Must, r.Unit)
}

// writeGates tells how many gates are met, and which are not, with figures.
func writeGates(w io.Writer, r *results) {
	with, judged, missed := 0, 0, 0
	for _, row := range r.Rows {
		if g := row.Gate; g != nil {
			with++
			if g.Judged {
				judged++
			}
			if g.Missed {
				missed++
			}
		}
	}
	if with == 0 {
		return
	}
	fmt.Fprintf(w, "\nGates: %d met, %d missed", judged-missed, missed)
	if judged < with {
		fmt.Fprintf(w, ", %d not judged because their goroutines shared a processor", with-judged)
	}
	fmt.Fprintln(w, ".")
	for _, row := range r.Rows {
		g := row.Gate
		if g == nil || !g.Missed {
			continue
		}
		fmt.Fprintf(w, " missed by %s: %s %s (%s to %s), must be %g at most", row.Name,
			figure(row.Figure), row.Unit, figure(row.Low), figure(row.High), g.Must)
		if g.Clean && row.Allocs > dirty {
			fmt.Fprintf(w, ", with %s allocations where none may be", small(row.Allocs))
		}
		fmt.Fprintln(w)
	}
}
