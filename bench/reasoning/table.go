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
	if e.Clock == "cpu" {
		fmt.Fprintf(&b, "Rows marked wall share work among goroutines or sleep: wall time, with a mutex by the wall too.\n")
	}
	fmt.Fprintf(&b, "M is a sync.Mutex lock, increment and unlock, measured beside each row: %.2f ns.\n", r.MutexNS)
	for _, text := range r.warnings() {
		fmt.Fprintf(&b, "Warning: %s.\n", text)
	}

	fmt.Fprintf(&b, "\nAverage time taken per operation was:\n%s\n", rule)
	for i := range r.Rows {
		row := &r.Rows[i]
		ratio := "-"
		if row.Unit == unitMutex {
			ratio = figure(row.Ratio)
		}
		line := fmt.Sprintf(" %-43s %10s ns %8s M %7s allocs %7s B  %s", row.Name,
			figure(row.NS), ratio, small(row.Allocs), small(row.Bytes), row.remarks())
		fmt.Fprintln(&b, strings.TrimRight(line, " "))
	}
	fmt.Fprintf(&b, "%s\n\nHertz for each operation was:\n%s\n", rule, rule)
	for _, row := range r.Rows {
		fmt.Fprintf(&b, " %-43s %12s MHz\n", row.Name, megahertz(row.NS))
	}
	fmt.Fprintf(&b, "%s\n", rule)
	if !e.Quick {
		writeGates(&b, r)
	}
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

// remarks are what few rows have.
func (r *result) remarks() string {
	var list []string
	if r.Clock == "wall" && clockName != "wall" {
		list = append(list, "wall")
	}
	if r.P95 > 0 {
		list = append(list, fmt.Sprintf("p95 %s µs", figure(r.P95/1e3)))
	}
	if r.PerVariable > 0 {
		list = append(list, fmt.Sprintf("%s B per variable", figure(r.PerVariable)))
	}
	if v := r.verdict(); v != "" {
		list = append(list, v)
	}
	return strings.Join(list, ", ")
}

// small prints a number that is 0 or 1 nearly always.
func small(x float64) string { return fmt.Sprintf("%.4g", x) }

func megahertz(ns float64) string {
	if ns == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", 1e3/ns)
}
