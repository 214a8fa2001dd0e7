package harness

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// BulkFigures is what bulk calls beside high ones reached, medians of the rounds.
type BulkFigures struct {
	MiB          float64 `json:"mib_per_second"` // requests; answers are as much
	Share        float64 `json:"share"`          // of the rate alone
	Longest      float64 `json:"longest_gap_us"` // starvation
	Inversions   int64   `json:"inversions"`
	FifoRatio    float64 `json:"fifo_ratio"`     // high mean to that over one shared connection
	IdleP50Ratio float64 `json:"idle_p50_ratio"` // high p50 to that without bulk
	IdleP99Ratio float64 `json:"idle_p99_ratio"`
}

var columns = []string{
	"case", "mean_us", "p50_us", "p95_us", "p99_us", "max_us", "schedule_mean_us", "bare_mean_us", "ratio", "floor_us",
	"received", "dropped", "duplicates", "out_of_order", "late", "failures", "allocs", "bare_allocs", "cpu_percent", "rate",
}

// row is a case as the columns have it.
func (c *Cell) row() []string {
	us := func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }
	if !c.measured() {
		row := make([]string, len(columns))
		row[0] = c.Case
		return row
	}
	of := func(s *Summary, v float64) string { // "" where nothing came
		if s.Count == 0 {
			return ""
		}
		return us(v)
	}
	p99 := ""
	if c.Latency.P99 != nil {
		p99 = us(*c.Latency.P99)
	}
	bare, ratio, floor := "", "", ""
	if c.Floor != nil {
		floor = us(c.FloorMean)
	}
	if c.Bare != nil {
		bare = us(c.Bare.Mean)
	}
	if c.Ratio > 0 {
		ratio = us(c.Ratio)
	}
	rate := ""
	if c.Throughput != nil {
		rate = strconv.FormatFloat(c.Throughput.Rate, 'f', 0, 64)
	}
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	return []string{
		c.Case, of(&c.Latency, c.Mean), of(&c.Latency, c.Latency.P50), of(&c.Latency, c.Latency.P95), p99, of(&c.Latency, c.Latency.Max),
		of(&c.Schedule, c.Schedule.Mean), bare, ratio, floor,
		n(c.Received), n(c.Dropped), n(c.Duplicates), n(c.Reordered), n(c.Late), n(c.Failures), us(c.Allocs), us(c.BareAllocs), us(c.CPU), rate,
	}
}

// output is a file of a flag.
type output struct{ flag, name string }

func (c *Common) outputs() []output {
	return []output{{"--json", c.JSON}, {"--csv", c.CSV}, {"--markdown", c.Markdown}, {"--html", c.HTML}, {"--samples", c.Samples}}
}

// writable refuses files that cannot be written, before anything is measured for
// them. It leaves no file that was not there.
func (c *Common) writable() error {
	seen := map[string]string{}
	for _, o := range c.outputs() {
		if o.name == "" {
			continue
		}
		if other := seen[o.name]; other != "" {
			return Usage(o.flag, o.name, "another place than that of "+other)
		}
		seen[o.name] = o.flag
		info, err := os.Stat(o.name)
		if o.name == "-" || err == nil && !info.IsDir() && !info.Mode().IsRegular() {
			continue // to open a pipe would take it from who reads it
		}
		f, err := os.OpenFile(o.name, os.O_WRONLY|os.O_CREATE, 0o666)
		if err != nil {
			return usageError{fmt.Errorf("%s: %w", o.flag, err)}
		}
		f.Close()
		if info == nil {
			os.Remove(o.name)
		}
	}
	return nil
}

// write writes what was asked for, and the text unless something else has the
// standard output. The text is there too if a file cannot be written.
func (s *Session) write(stdout io.Writer, changes []string) error {
	r := s.Report
	var failed []error
	for _, f := range []struct {
		name string
		make func() ([]byte, error)
	}{
		{s.JSON, r.JSON}, {s.CSV, r.csv}, {s.Markdown, func() ([]byte, error) { return []byte(r.markdown(changes)), nil }},
		{s.HTML, func() ([]byte, error) { return r.html(changes) }},
	} {
		if f.name == "" {
			continue
		}
		content, err := f.make()
		if err == nil && f.name == "-" {
			_, err = stdout.Write(content)
		} else if err == nil {
			err = os.WriteFile(f.name, content, 0o666)
		}
		failed = append(failed, err)
	}
	err := errors.Join(failed...)
	if err == nil && slices.ContainsFunc(s.outputs(), func(o output) bool { return o.name == "-" && o.flag != "--samples" }) {
		return nil
	}
	var text strings.Builder
	r.text(&text, changes)
	_, e := io.WriteString(stdout, text.String())
	return errors.Join(err, e)
}

func (r *Report) csv() ([]byte, error) {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write(columns)
	for _, c := range r.Results {
		w.Write(c.row())
	}
	w.Flush()
	return []byte(b.String()), w.Error()
}

func (r *Report) markdown(changes []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s, %s, %v, %s\n\n", r.Track, r.Mode, r.Transport["kind"], r.Topology)
	if why := r.partial(); why != "" {
		fmt.Fprintf(&b, "%s.\n\n", why)
	}
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, c := range r.Results {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(c.row(), " | "))
	}
	b.WriteString("\n")
	for _, line := range append(r.Summary, changes...) {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "- %s %s: %s %s %s\n", w.Severity, w.Code, w.Case, w.Message, w.Evidence)
	}
	if len(r.Reference) > 0 {
		fmt.Fprintf(&b, "\n%s\n\n| topology | condition | figure | unit |\n|---|---|---|---|\n", referenceRemark)
		for _, f := range r.Reference {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.Topology, f.Condition, f.Figure, f.Unit)
		}
	}
	return b.String()
}

// ratioRemark says what the ratio is, which is not what is written beside it.
const ratioRemark = "ratio: the median of the rounds' mean divided by the bare mean of the round; mean: the median of the rounds' means; bare: the mean of all rounds together"

// sentences is the summary.
func (r *Report) sentences() []string {
	var list []string
	for _, c := range r.Results {
		switch {
		case !c.measured():
			list = append(list, c.Case+": not measured")
		case c.Throughput != nil:
			list = append(list, c.Case+": "+c.Throughput.sentence())
		case c.Timeouts != nil:
			for _, t := range c.Timeouts {
				list = append(list, fmt.Sprintf("%s, %s: %d calls, told after %.1f to %.1f ms, %d outside, %d wrong answers, %d goroutines left %v",
					c.Case, t.Case, t.Calls, t.Told.Min/1000, t.Told.Max/1000, t.Outside, t.Wrong, t.Left, t.Kinds))
			}
		case len(c.Rounds) > 0:
			line := fmt.Sprintf("%s: mean %.1f us", c.Case, c.Mean)
			if c.Latency.Count == 0 {
				line = c.Case + ": nothing came"
			}
			if c.Ratio > 0 {
				line += fmt.Sprintf(", %.2f times the bare one", c.Ratio)
			}
			switch {
			case c.Saturated:
				line += ", a queue and not a latency"
			case c.Failures > 0:
				line += fmt.Sprintf(", %d failures", c.Failures)
			case c.Ready > 0 && c.Dropped == 0:
				line += ", lossless"
			case c.Dropped > 0:
				line += fmt.Sprintf(", %d of %d dropped", c.Dropped, c.Expected)
			}
			list = append(list, line)
		}
		if b := c.Bulk; b != nil {
			list = append(list, fmt.Sprintf("%s: bulk %.0f MiB/s (%.2f of alone), longest gap %.1f ms, %d inversions, high mean %.2f of one FIFO connection, p50 %.1f and p99 %.1f times idle",
				c.Case, b.MiB, b.Share, b.Longest/1000, b.Inversions, b.FifoRatio, b.IdleP50Ratio, b.IdleP99Ratio))
		}
	}
	if slices.ContainsFunc(r.Results, func(c *Cell) bool { return c.Ratio > 0 && len(c.Rounds) > 1 }) {
		list = append(list, ratioRemark)
	}
	return list
}

func (r *Report) text(w io.Writer, changes []string) {
	fmt.Fprintf(w, "%s %s over %v, %s; %s", r.Track, r.Mode, r.Transport["kind"], r.Topology, r.Release.Go)
	for i, h := range r.Host {
		if i > 0 {
			fmt.Fprintf(w, "\n%s on", h.Ends)
		}
		fmt.Fprintf(w, " %s/%s, %d cores, %s, load %.2f to %.2f", h.OS, h.Arch, h.Cores, h.CPU, h.LoadBefore, h.LoadAfter)
	}
	fmt.Fprintln(w)
	fmt.Fprintf(w, "clock %s (%s), %.0f ns a reading; pacing by %s\n", r.Clock.Name, r.Clock.Source, r.Clock.CostNS, r.Clock.Pacing)
	if why := r.partial(); why != "" {
		fmt.Fprintln(w, why)
	}
	fmt.Fprintf(w, "\n%-34s %9s %9s %9s %9s %9s %9s %9s %6s %7s %8s\n", "microseconds", "mean", "p50", "p95", "p99", "max", "from due", "bare", "ratio", "floor", "dropped")
	for _, c := range r.Results {
		if !c.measured() {
			fmt.Fprintf(w, "%-34s not measured\n", c.Case)
			continue
		}
		v := c.row()
		for i := range v {
			if v[i] == "" {
				v[i] = "-"
			}
		}
		lost := c.Dropped + c.Failures
		fmt.Fprintf(w, "%-34s %9s %9s %9s %9s %9s %9s %9s %6s %7s %8d\n", v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], lost)
	}
	for _, c := range r.Results {
		if c.Throughput == nil || !c.measured() {
			continue
		}
		fmt.Fprintf(w, "\n%-34s %10s %10s %10s %8s %9s\n", c.Case+", by rate", "rate", "reached", "messages", "dropped", "p99 due")
		for _, s := range c.Throughput.Steps {
			fmt.Fprintf(w, "%34s %10.0f %10.0f %10d %8d %9.2f %s\n", "", s.Rate, s.Sent, s.Count, s.Dropped, s.P99, s.Why)
		}
	}
	fmt.Fprintln(w)
	for _, line := range r.Summary {
		fmt.Fprintln(w, line)
	}
	for _, x := range r.Warnings {
		fmt.Fprintf(w, "%s %s: %s\n", x.Severity, x.Code, strings.TrimSpace(strings.Join([]string{x.Case, x.Message, x.Evidence}, " ")))
	}
	for _, line := range changes {
		fmt.Fprintln(w, line)
	}
	if len(r.Reference) > 0 {
		fmt.Fprintf(w, "\n%s\n", referenceRemark)
		for _, f := range r.Reference {
			fmt.Fprintf(w, "  %-11s %-44s %s %s\n", f.Topology, f.Condition, f.Figure, f.Unit)
		}
	}
	verdict := "ok"
	if !r.Verdict.OK {
		verdict = "failed"
	}
	fmt.Fprintf(w, "\nverdict: %s, exit code %d\n", verdict, r.Verdict.Exit)
	for _, f := range r.Verdict.Failed {
		fmt.Fprintln(w, "  "+f)
	}
}
