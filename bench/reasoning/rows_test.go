package main

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// BenchmarkReasoning runs the command's rows. An operation is a statement of a
// large program, a turn of a loop, an evaluation otherwise.
func BenchmarkReasoning(b *testing.B) {
	for _, r := range allRows() {
		b.Run(r.name, func(b *testing.B) {
			if r.fresh != nil {
				benchmarkFresh(b, r)
				return
			}
			w, err := r.open()
			if err != nil {
				b.Fatal(err)
			}
			if err := w.run(1); err != nil {
				b.Fatal(err)
			}
			units := max(1, b.N/r.per)
			b.ReportAllocs()
			b.ResetTimer()
			err = w.run(units)
			b.StopTimer()
			if err != nil {
				b.Fatal(err)
			}
			operations := units * r.per
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(operations), "ns/op")
			if err := w.check(int64(operations + r.per)); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// benchmarkFresh repeats a row that does everything anew, and reports the mean of
// what it tells.
func benchmarkFresh(b *testing.B, r row) {
	var sum reading
	rounds := 0.0
	for b.Loop() {
		got, err := r.fresh(size{each: 50 * time.Millisecond, quick: testing.Short()})
		if err != nil {
			b.Fatal(err)
		}
		if r.end != nil {
			r.end()
		}
		rounds++
		sum.ns += got.ns
		sum.p95 += got.p95
		sum.allocs += got.allocs
		sum.bytes += got.bytes
		sum.perVariable += got.perVariable
	}
	b.ReportMetric(sum.ns/rounds, "ns/op")
	b.ReportMetric(sum.allocs/rounds, "allocs/op")
	b.ReportMetric(sum.bytes/rounds, "B/op")
	if sum.p95 > 0 {
		b.ReportMetric(sum.p95/rounds, "p95-ns")
	}
	if sum.perVariable > 0 {
		b.ReportMetric(sum.perVariable/rounds, "B/variable")
	}
}

func TestRowNames(t *testing.T) {
	var names []string
	for _, r := range allRows() {
		names = append(names, r.name)
	}
	want, err := os.ReadFile("testdata/rows.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(strings.TrimSpace(string(want)), "\n"), names); diff != "" {
		t.Errorf("rows (-testdata/rows.txt +list):\n%s", diff)
	}
}

// TestRows verifies that every row counts what it should, and that none
// allocates anything once it has run, but those that do by their nature.
func TestRows(t *testing.T) {
	for _, r := range allRows() {
		t.Run(r.name, func(t *testing.T) {
			if r.fresh != nil {
				testFresh(t, r)
				return
			}
			w, err := r.open()
			if err != nil {
				t.Fatal(err)
			}
			units := max(1, 2_000/r.per)
			total := 0
			run := func() {
				total += units
				if err := w.run(units); err != nil {
					t.Fatal(err)
				}
			}
			run()
			// A run that starts goroutines allocates for each of them.
			calls, bytes := float64(8*r.goroutines), uint64(1_024*r.goroutines)
			if got := testing.AllocsPerRun(20, run); got > calls && !r.allocates {
				t.Errorf("%v allocations in %d operations, want %v", got, units*r.per, calls)
			}
			if got := leastBytes(run); got > bytes && !r.allocates {
				t.Errorf("%d bytes allocated in %d operations, want %d", got, units*r.per, bytes)
			}
			if err := w.check(int64(total) * int64(r.per)); err != nil {
				t.Error(err)
			}
			if err := w.check(int64(total+1) * int64(r.per)); err == nil && !constant[r.name] {
				t.Error("the check does not see a missing operation")
			}
		})
	}
}

// testFresh runs a row that does everything anew, twice.
func testFresh(t *testing.T, r row) {
	for range 2 {
		got, err := r.fresh(size{each: time.Millisecond, quick: true})
		if err != nil {
			t.Fatal(err)
		}
		if got.operations == 0 || (got.ns > 0) == (got.perVariable > 0) {
			t.Errorf("%+v is not a measurement", *got)
		}
		if r.end != nil {
			r.end()
		}
	}
}

// constant are the rows whose counter ends at the same value after any number
// of operations.
var constant = map[string]bool{
	"KaRL: Compiled Single Assign":           true,
	"KaRL: Compiled Multiple Assign":         true,
	"KaRL: Optimized Loop":                   true,
	"KaRL null lock: Compiled Single Assign": true,
}

// leastBytes returns how many bytes f allocates, the least of some runs, because
// the runtime allocates at times too.
func leastBytes(f func()) uint64 {
	least := ^uint64(0)
	for range 10 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}
