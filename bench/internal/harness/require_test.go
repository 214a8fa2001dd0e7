package harness

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// trackOf returns a track that is not run.
func trackOf(name, mode string, c *Common) *Track {
	return &Track{Name: name, Common: c, Mode: func() string { return mode }}
}

// measuredCell returns a case of one round, and what changes it before.
func measuredCell(change func(*Run)) *Cell {
	w := &Workload{Payload: 8, Period: time.Millisecond, Count: plan.Count, Warmup: plan.Warmup, Subscribers: 1}
	c := newCell("a case", w)
	run := &Run{Sent: newSent(), Received: []Received{(&fake{delay: 50 * us}).run(plan)}}
	run.Sent.Sent = plan.Count
	if change != nil {
		change(run)
	}
	c.add(w, run, nil, NewDistribution())
	c.finish()
	return c
}

// TestRequireRefused refuses before a run what it cannot decide.
func TestRequireRefused(t *testing.T) {
	plain := &Common{PeriodUS: 1000}
	for _, c := range []struct {
		track *Track
		text  string
		want  string // "" if it is allowed
	}{
		{trackOf("event", "oneway", plain), "p99 < 200 && dropped == 0", ""},
		{trackOf("event", "oneway", plain), "ratio < 2 && bare_p99 > 0 && spread < 1", ""},
		{trackOf("event", "oneway", plain), "", "reads no figure"},
		{trackOf("event", "oneway", plain), "1 < 2", "reads no figure"},
		{trackOf("event", "oneway", plain), "p98 < 3", "reads p98"},
		{trackOf("event", "oneway", plain), "p99 <", "--require: "},
		{trackOf("event", "oneway", plain), "p99 = 3", "without assignments"},
		{trackOf("event", "oneway", plain), "#sleep(1) && p99 < 3", "without calls of the system"},
		{trackOf("event", "oneway", plain), "#read_file('f') != p99", "without calls of the system"},
		{trackOf("event", "oneway", plain), "#get_time() > p99", "without calls of the system"},
		{trackOf("event", "oneway", plain), "outside == 0", "with --timeouts"},
		{trackOf("event", "oneway", plain), "fifo_ratio < 1", "of priority"},
		{trackOf("event", "oneway", plain), "skew_max < 1", "two subscribers"},
		{trackOf("event", "oneway", plain), "rate > 0", "with --mode throughput"},
		{trackOf("event", "oneway", plain), "timeouts == 0", "of calls, and of event --mode rtt"},
		{trackOf("event", "throughput", plain), "rate > 0", ""},
		{trackOf("event", "throughput", plain), "ratio < 2", "with bare sockets"},
		{trackOf("event", "rtt", plain), "missing == 0", "without --mode rtt"},
		{trackOf("event", "oneway", &Common{PeriodUS: 1000, NoBare: true}), "ratio < 2", "without --no-bare"},
		{trackOf("event", "oneway", &Common{PeriodUS: 1000, NoBare: true}), "bare_p99 > 0", "without --no-bare"},
		{trackOf("event", "oneway", &Common{PeriodUS: 1000, Rounds: 1}), "spread < 1", "two rounds"},
		{trackOf("event", "oneway", &Common{}), "lag_p99 < 1", "--period-us from 1"},
		{trackOf("control", "timeouts", plain), "outside == 0 && wrong == 0 && left == 0", ""},
		{trackOf("control", "latency", plain), "cost_max < 3", "of event"},
		{trackOf("priority", "contention", plain), "fifo_ratio < 1", ""},
		{trackOf("priority", "contention", &Common{PeriodUS: 1000, NoBare: true}), "fifo_ratio < 1", "without --no-bare"},
		{trackOf("priority", "contention", &Common{PeriodUS: 1000, NoBare: true}), "inversions < 1 && bulk_share > 0", ""},
	} {
		c.track.Common.Require = []string{c.text}
		_, err := c.track.judges()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %s, %q: %v, want %q", c.track.Name, c.track.Mode(), c.text, err, c.want)
		}
		if usage := (usageError{}); err != nil && !errors.As(err, &usage) {
			t.Errorf("%q: %v is not of usage", c.text, err)
		}
	}
}

// TestNothingMeasured lets no requirement hold of figures that there are not.
func TestNothingMeasured(t *testing.T) {
	c := newCell("a case", &Workload{})
	c.finish()
	for _, f := range figureList {
		if v, ok := f.of(c); ok {
			t.Errorf("%s = %v of a case that nothing was measured of", f.name, v)
		}
		if ok, evidence := (&judge{f.name + " >= 0", []figure{f}}).holds(c); ok || evidence != f.name+" not measured" {
			t.Errorf("%s: %t, %s", f.name, ok, evidence)
		}
	}
}

// TestRequire judges what was measured, and where calls failed nothing but that.
func TestRequire(t *testing.T) {
	failed := measuredCell(func(r *Run) { r.Received, r.Sent.Failures, r.Sent.Kinds["timeout"] = nil, plan.Count, plan.Count })
	bulk := newCell("bulk", &Workload{Call: CallPlan{Bulk: 2}})
	priority := &Common{PeriodUS: 1000, NoBare: true}
	for _, c := range []struct {
		track *Track
		text  string
		cells []*Cell
		want  string // what is said of it, "" if it holds
	}{
		{trackOf("event", "oneway", &Common{}), "p99 < 51 && mean > 49 && dropped == 0", []*Cell{measuredCell(nil)}, ""},
		{trackOf("event", "oneway", &Common{}), "mean < 49", []*Cell{measuredCell(nil)}, "a case: mean < 49 does not hold: mean = 50"},
		{trackOf("event", "oneway", &Common{}), "ratio < 2", []*Cell{measuredCell(nil)}, "ratio not measured"},
		{trackOf("control", "latency", &Common{}), "p99 < 200 && mean < 200", []*Cell{failed}, "does not hold: mean, p99 not measured"},
		{trackOf("control", "latency", &Common{}), "dropped == 0", []*Cell{failed}, "dropped = 2000"},
		{trackOf("control", "latency", &Common{}), "failures == 0", []*Cell{failed}, "failures = 2000"},
		{trackOf("control", "latency", &Common{}), "timeouts == 2000", []*Cell{failed}, ""},
		{trackOf("control", "latency", &Common{}), "mean > 0", []*Cell{newCell("not come to", &Workload{})}, "no case was measured"},
		{trackOf("priority", "contention", priority), "inversions == 0", []*Cell{measuredCell(nil)}, "no case was measured that it concerns"},
		{trackOf("priority", "contention", priority), "inversions == 0", []*Cell{measuredCell(nil), bulk}, "bulk: inversions == 0 does not hold: inversions not measured"},
	} {
		c.track.Common.Require = []string{c.text}
		judges, err := c.track.judges()
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		bulk.Rounds = []Round{{}}
		r := &Report{Host: []*Host{{}}, Resources: map[string]any{}, Results: c.cells}
		r.finish(judges, nil, false)
		if got := strings.Join(r.Verdict.Failed, "; "); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// TestFigureHelp has each figure once, and says when there is none.
func TestFigureHelp(t *testing.T) {
	text := figureHelp()
	var names []string
	for _, f := range figureList {
		if slices.Contains(names, f.name) {
			t.Errorf("%s is there twice", f.name)
		}
		names = append(names, f.name)
		if !strings.Contains(text, "\n  "+f.name+" ") || f.means == "" {
			t.Errorf("%s is missing", f.name)
		}
	}
	if !strings.Contains(text, "below 1,000 samples the largest") {
		t.Error("what p99 of few samples is, is missing")
	}
}
