package main

import (
	"fmt"
	"io"
	"strings"
)

const rule = "==========================================================================================="

// writeTables writes the header and the two tables of the reference's test: a
// row's name and its time, and the name and its frequency.
func writeTables(w io.Writer, r *results) error {
	var b strings.Builder
	e := &r.Env
	fmt.Fprintf(&b, "%s, %d CPUs, GOMAXPROCS %d, %s %s/%s", e.CPU, e.CPUs, e.GOMAXPROCS, e.Go, e.OS, e.Arch)
	if e.Load != nil {
		fmt.Fprintf(&b, ", load %.2f", *e.Load)
	}
	clock := "wall time"
	if e.Clock == "cpu" {
		clock = fmt.Sprintf("CPU time (%.0f %% of wall time)", 100*e.CPUShare)
	}
	fmt.Fprintf(&b, "\nMedians of %d rounds of %g ms per row, %s.\n", e.Rounds, e.RoundMS, clock)
	fmt.Fprintf(&b, "M is a sync.Mutex lock, increment and unlock, measured beside each row: %.2f ns.\n", r.MutexNS)
	for _, text := range r.warnings() {
		fmt.Fprintf(&b, "Warning: %s.\n", text)
	}

	fmt.Fprintf(&b, "\nAverage time taken per operation was:\n%s\n", rule)
	for _, row := range r.Rows {
		fmt.Fprintf(&b, " %-43s %9s ns %8s M %7s allocs %7s B\n", row.Name,
			figure(row.NS), figure(row.Ratio), count(row.Allocs), count(row.Bytes))
	}
	fmt.Fprintf(&b, "%s\n\nHertz for each operation was:\n%s\n", rule, rule)
	for _, row := range r.Rows {
		fmt.Fprintf(&b, " %-43s %12s MHz\n", row.Name, megahertz(row.NS))
	}
	fmt.Fprintf(&b, "%s\n", rule)
	_, err := io.WriteString(w, b.String())
	return err
}

// figure prints small numbers with more digits.
func figure(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x < 0.1:
		return fmt.Sprintf("%.4f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// count prints a number that is 0 or 1 nearly always.
func count(x float64) string { return fmt.Sprintf("%.4g", x) }

func megahertz(ns float64) string {
	if ns == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", 1e3/ns)
}
