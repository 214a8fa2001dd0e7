package harness

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
)

// ReadReport reads a file of --json.
func ReadReport(name string) (*Report, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--compare: %w", err)
	}
	r := &Report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("--compare %s: not a file of --json: %w", name, err)
	}
	if r.Schema != Schema {
		return nil, fmt.Errorf("--compare %s: schema is %q, allowed is %q", name, r.Schema, Schema)
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

// compare returns a table of changes and how many figures are worse.
func compare(old, r *Report) (table []string, worse int) {
	before := map[string]*Cell{}
	for _, c := range old.Results {
		before[c.Case] = c
	}
	if old.Track != r.Track || old.Mode != r.Mode {
		return []string{fmt.Sprintf("The older file is of %s %s: nothing to compare.", old.Track, old.Mode)}, 0
	}
	if len(old.Host) > 0 && old.Host[0].CPU != r.Host[0].CPU {
		table = append(table, "It is of another machine: ratios compare, the rest does not.")
	}
	for _, c := range r.Results {
		was := before[c.Case]
		if was == nil {
			table = append(table, fmt.Sprintf("%-34s new", c.Case))
			continue
		}
		for _, f := range []struct {
			name string
			of   func(Round) float64
		}{
			{"ratio", func(r Round) float64 { return r.Ratio }}, {"mean", func(r Round) float64 { return r.Mean }}, {"p99", func(r Round) float64 { return r.P99 }},
		} {
			a, b := pick(was.Rounds, f.of), pick(c.Rounds, f.of)
			if len(a) == 0 || len(b) == 0 || median(a) == 0 {
				continue
			}
			change, p := median(b)/median(a)-1, MannWhitney(a, b)
			mark := "~"
			if p < alpha && change > leastChange {
				mark = "worse"
				worse++
			} else if p < alpha && change < -leastChange {
				mark = "better"
			}
			table = append(table, fmt.Sprintf("%-34s %-5s %10.2f -> %10.2f %+7.1f %%  p=%.3f %s", c.Case, f.name, median(a), median(b), 100*change, p, mark))
		}
		if c.Dropped > 0 && was.Dropped == 0 {
			worse++
			table = append(table, fmt.Sprintf("%-34s dropped %d, before none: worse", c.Case, c.Dropped))
		}
	}
	return table, worse
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
