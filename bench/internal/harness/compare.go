package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
)

// maxReport bounds the file of an older report in bytes.
const maxReport = 256 << 20

// ReadReport reads a file of --json.
func ReadReport(name string) (*Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("--compare: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxReport+1))
	if err != nil {
		return nil, fmt.Errorf("--compare: %w", err)
	}
	if len(text) > maxReport {
		return nil, fmt.Errorf("--compare %s: more than %d bytes", name, maxReport)
	}
	r := &Report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("--compare %s: not a file of --json: %w", name, err)
	}
	if r.Schema != Schema {
		return nil, fmt.Errorf("--compare %s: schema is %q, allowed is %q", name, r.Schema, Schema)
	}
	for i, h := range r.Host {
		if h == nil {
			return nil, fmt.Errorf("--compare %s: host %d is null", name, i)
		}
	}
	for i, c := range r.Results {
		if c == nil {
			return nil, fmt.Errorf("--compare %s: result %d is null", name, i)
		}
		if len(c.Rounds) > maxRounds {
			return nil, fmt.Errorf("--compare %s: result %d has %d rounds, allowed is 0 to %d", name, i, len(c.Rounds), maxRounds)
		}
	}
	return r, nil
}

// A figure changed if the rounds of both runs are unlikely to be of one
// distribution (Mann-Whitney, as benchstat does) and their medians differ by more
// than leastChange. Fewer than four rounds on both sides can never be that sure.
const (
	leastChange = 0.05
	alpha       = 0.05
)

// comparison is what changed since an older report.
type comparison struct {
	table  []string
	worse  int // figures
	judged int
}

// conditions are what of a report all figures depend on, as text: cases and
// rounds may be others.
func (r *Report) conditions() map[string]string {
	list := map[string]string{"topology": r.Topology}
	for name, v := range r.Workload {
		switch name {
		case "payload_size", "subscribers", "processes", "rounds":
			continue
		}
		if text, err := json.Marshal(v); err == nil {
			list[name] = string(text)
		}
	}
	return list
}

// differences names the conditions that two reports do not share. What only one
// of them has is of another release of the benchmark.
func differences(old, r *Report) []string {
	var list []string
	now := r.conditions()
	for name, was := range old.conditions() {
		if is, ok := now[name]; ok && is != was {
			list = append(list, fmt.Sprintf("%s was %s and is %s", name, was, is))
		}
	}
	slices.Sort(list)
	return list
}

// compare tells what changed since a report of the same track and mode.
func compare(old, r *Report) (c comparison) {
	say := func(format string, args ...any) { c.table = append(c.table, fmt.Sprintf(format, args...)) }
	before := map[string]*Cell{}
	for _, cell := range old.Results {
		before[cell.Case] = cell
	}
	if len(old.Host) > 0 && old.Host[0].CPU != r.Host[0].CPU {
		say("The older file is of another machine: ratios compare, the rest does not.")
	}
	if old.Interrupted || old.Stopped != "" {
		say("The older file is of a run that did not come to its end.")
	}
	others := differences(old, r)
	if len(others) > 0 {
		say("Measured otherwise and so not judged: %s.", strings.Join(others, ", "))
	}
	sure := false // whether the rounds are enough for any change
	for _, cell := range r.Results {
		was := before[cell.Case]
		delete(before, cell.Case)
		switch {
		case was == nil:
			say("%-34s new", cell.Case)
			continue
		case !cell.measured() || was.NotMeasured:
			say("%-34s not measured in both", cell.Case)
			continue
		}
		judge := len(others) == 0
		if was.Processes != cell.Processes && was.Processes > 0 {
			say("%-34s not judged: %d processes and before %d", cell.Case, cell.Processes, was.Processes)
			judge = false
		}
		for _, f := range []struct {
			name string
			of   func(Round) float64
		}{
			{"ratio", func(r Round) float64 { return r.Ratio }}, {"mean", func(r Round) float64 { return r.Mean }}, {"p99", func(r Round) float64 { return r.P99 }},
		} {
			a, b := pick(was.Rounds, f.of), pick(cell.Rounds, f.of)
			if len(a) == 0 || len(b) == 0 || median(a) == 0 {
				continue
			}
			change, p := median(b)/median(a)-1, MannWhitney(a, b)
			mark := "~"
			switch {
			case !judge:
				mark = "not judged"
			case p < alpha && change > leastChange:
				mark = "worse"
				c.worse++
			case p < alpha && change < -leastChange:
				mark = "better"
			}
			if judge {
				c.judged++
				sure = sure || surest(len(a), len(b)) < alpha
			}
			say("%-34s %-5s %10.2f -> %10.2f %+7.1f %%  p=%.3f %s", cell.Case, f.name, median(a), median(b), 100*change, p, mark)
		}
		if judge && cell.Dropped > 0 && was.Dropped == 0 {
			c.worse++
			say("%-34s dropped %d, before none: worse", cell.Case, cell.Dropped)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		say("%-34s only in the older file", name)
	}
	if c.judged > 0 && !sure {
		say("The rounds are too few to be sure of any change: four on both sides are enough.")
	}
	return c
}

// surest is the least that MannWhitney returns for so many rounds: that of
// samples that do not overlap.
func surest(n, m int) float64 {
	a, b := make([]float64, n), make([]float64, m)
	for i := range a {
		a[i] = float64(i)
	}
	for i := range b {
		b[i] = float64(n + i)
	}
	return MannWhitney(a, b)
}

func pick(rounds []Round, of func(Round) float64) []float64 {
	var list []float64
	for _, r := range rounds {
		if v := of(r); v > 0 {
			list = append(list, v)
		}
	}
	return list
}

// MannWhitney returns how likely two samples as far apart as these are, or
// farther, if both are of one distribution: exactly for small samples without
// ties, else by the normal approximation.
func MannWhitney(a, b []float64) float64 {
	n, m := len(a), len(b)
	if n == 0 || m == 0 {
		return 1
	}
	u, tied := 0.0, false
	for _, x := range a {
		for _, y := range b {
			switch {
			case x > y:
				u++
			case x == y:
				u += 0.5
				tied = true
			}
		}
	}
	u = math.Min(u, float64(n*m)-u)
	if !tied && n <= 20 && m <= 20 {
		// ways[i][k] is how many orders of i of a among those of b so far give the sum k.
		ways := make([][]float64, n+1)
		for i := range ways {
			ways[i] = make([]float64, n*m+1)
		}
		ways[0][0] = 1
		for j := 1; j <= n+m; j++ {
			for i := min(j, n); i >= 1; i-- {
				if beaten := j - i; beaten <= m {
					for k := n * m; k >= beaten; k-- {
						ways[i][k] += ways[i-1][k-beaten]
					}
				}
			}
		}
		below, all := 0.0, 0.0
		for k, w := range ways[n] {
			all += w
			if float64(k) <= u {
				below += w
			}
		}
		return math.Min(1, 2*below/all)
	}
	all := slices.Sorted(slices.Values(append(slices.Clone(a), b...)))
	ties := 0.0
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j] == all[i] {
			j++
		}
		t := float64(j - i)
		ties += t*t*t - t
		i = j
	}
	total := float64(n + m)
	sigma := math.Sqrt(float64(n*m) / 12 * (total + 1 - ties/(total*(total-1))))
	if sigma == 0 {
		return 1
	}
	z := (float64(n*m)/2 - u - 0.5) / sigma
	return math.Min(1, math.Erfc(z/math.Sqrt2))
}
