// Command sharing measures what sharing and filters cost beside the bare socket and library, in one
// run: the ratios are what to compare, because both sides are measured in turn
// on the same machine.
//
//	go run ./bench/sharing [-rounds 7] [-time 200ms] [-json FILE]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"
)

// A row is one measurement with the baseline that its ratio is to.
type row struct {
	Name     string  `json:"name"`
	Unit     string  `json:"unit"`
	Figure   float64 `json:"figure"`   // median over the rounds
	Baseline float64 `json:"baseline"` // of the bare socket, in the same unit
	Ratio    float64 `json:"ratio"`    // median of the rounds' ratios
	Allocs   float64 `json:"allocs_per_op"`
	Must     string  `json:"must"`
	Met      bool    `json:"met"`
	Note     string  `json:"note,omitempty"`
}

// A measure takes one round.
type measure struct {
	name, unit, must string
	met              func(ratio, figure, allocs float64) bool
	round            func(d time.Duration) (sample, error)
}

type sample struct {
	figure, baseline float64
	allocs           float64
	note             string
}

var measures = []measure{
	{
		"set and send until a peer's waiter wakes", "µs", "ratio ≤ 1.5",
		func(ratio, _, _ float64) bool { return ratio <= 1.5 }, wakeRound,
	},
	{
		"encode and decode a message of 10 variables", "µs", "≤ 2 µs, 0 allocations to encode",
		func(_, figure, allocs float64) bool { return figure <= 2 && allocs == 0 }, codecRound,
	},
	{
		"messages applied per second", "1/s", "ratio ≥ 0.7, losses counted",
		func(ratio, _, _ float64) bool { return ratio >= 0.7 }, receiveRound,
	},
	{
		"variables set and sent per second", "1/s", "ratio ≥ 0.6",
		func(ratio, _, _ float64) bool { return ratio >= 0.6 }, sendRound,
	},
	{
		"seal and open a datagram of 64 bytes, aead1", "µs", "≤ 2 µs, 0 allocations",
		func(_, figure, allocs float64) bool { return figure <= 2 && allocs == 0 }, smallSealRound,
	},
	{
		"each byte beyond, aead1", "ns", "≤ 1.5 ns, 0 allocations",
		func(_, figure, allocs float64) bool { return figure <= 1.5 && allocs == 0 }, largeSealRound,
	},
	{
		"encode and decode 60 KB, lz4", "MB/s", "ratio ≥ 0.6",
		func(ratio, _, _ float64) bool { return ratio >= 0.6 }, lz4Round,
	},
}

func main() {
	rounds := flag.Int("rounds", 7, "how many `times` each row is measured, at least 1")
	length := flag.Duration("time", 200*time.Millisecond, "how long each side of a row runs per round, at least 1ms")
	out := flag.String("json", "", "write the figures to this `file` as JSON, - for standard output instead of the table")
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 || *length < time.Millisecond {
		fmt.Fprintln(os.Stderr, "sharing: want no arguments, -rounds of at least 1 and -time of at least 1ms")
		flag.Usage()
		os.Exit(2)
	}
	rows, err := run(*rounds, *length)
	if err == nil {
		err = report(rows, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sharing:", err)
		os.Exit(1)
	}
}

// run measures all rows, interleaved.
func run(rounds int, length time.Duration) ([]row, error) {
	samples := make([][]sample, len(measures))
	for range rounds {
		for i, m := range measures {
			s, err := m.round(length)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.name, err)
			}
			samples[i] = append(samples[i], s)
		}
	}
	var rows []row
	for i, m := range measures {
		r := row{Name: m.name, Unit: m.unit, Must: m.must, Note: samples[i][len(samples[i])-1].note}
		r.Figure = median(samples[i], func(s sample) float64 { return s.figure })
		r.Baseline = median(samples[i], func(s sample) float64 { return s.baseline })
		r.Ratio = median(samples[i], func(s sample) float64 {
			if s.baseline == 0 {
				return 0
			}
			return s.figure / s.baseline
		})
		r.Allocs = median(samples[i], func(s sample) float64 { return s.allocs })
		r.Met = m.met(r.Ratio, r.Figure, r.Allocs)
		rows = append(rows, r)
	}
	return rows, nil
}

func median(samples []sample, of func(sample) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func report(rows []row, file string) error {
	var w io.Writer = os.Stdout
	if file != "" && file != "-" {
		f, err := os.Create(file)
		if err != nil {
			return err
		}
		defer f.Close()
		w = f
	}
	if file != "" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(map[string]any{
			"rows": rows,
			"env":  map[string]any{"go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "gomaxprocs": runtime.GOMAXPROCS(0)},
		})
	}
	fmt.Printf("%s %s/%s, GOMAXPROCS %d. Medians; baseline is the bare socket, or the bare library, in the same rounds.\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
	for _, r := range rows {
		verdict := "met"
		if !r.Met {
			verdict = "MISSED"
		}
		fmt.Printf("%-46s %10.2f %-4s baseline %10.2f  ratio %5.2f  %4.1f allocs   must: %s, %s  %s\n",
			r.Name, r.Figure, r.Unit, r.Baseline, r.Ratio, r.Allocs, r.Must, verdict, r.Note)
	}
	return nil
}
