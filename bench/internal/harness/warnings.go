package harness

import (
	"fmt"
	"strconv"
	"time"
)

// Codes of warnings.
const (
	codeDrops         = "drops"
	codeMissing       = "missing_samples"
	codeDuplicates    = "duplicates"
	codeReordered     = "reordered"
	codeLate          = "publisher_late"
	codeSaturated     = "saturated"
	codeRoute         = "route_not_ready"
	codeTimeSync      = "time_sync_not_accepted"
	codeClockJump     = "clock_jump"
	codeNegative      = "negative_latency"
	codeLoad          = "high_load"
	codeGovernor      = "governor_not_performance"
	codeOther         = "other_benchmark_running" // an error: there is no report
	codeFewSamples    = "few_samples"
	codeFailures      = "failures"
	codeClosedLoop    = "closed_loop"
	codePause         = "gc_pause"
	codeVersion       = "version_mismatch"
	codeCrossLanguage = "cross_language_not_tested"
	codeSlower        = "slower" // than before, with --compare
	codeNotCompared   = "not_compared"
)

// Severities of warnings: a note tells how far a figure goes, a warning fails a
// command with --fail-on-warning.
const (
	severityNote    = "note"
	severityWarning = "warning"
)

// Warning is a doubt.
type Warning struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Evidence string `json:"evidence,omitempty"`
	Case     string `json:"case,omitempty"`
}

// doubts says what about the host makes figures doubtful.
func (h *Host) doubts() []Warning {
	var list []Warning
	where := ""
	if h.Ends != "" {
		where = "host of " + h.Ends
	}
	if h.LoadBefore > float64(h.Cores)/2 {
		list = append(list, Warning{
			Code: codeLoad, Severity: severityWarning, Message: "other programs keep the machine busy; look at the ratios only",
			Evidence: strconv.FormatFloat(h.LoadBefore, 'f', 2, 64), Case: where,
		})
	}
	if h.Governor != "" && h.Governor != "performance" {
		list = append(list, Warning{Code: codeGovernor, Severity: severityWarning, Message: "the processor changes its speed", Evidence: h.Governor, Case: where})
	}
	return list
}

// doubts says whether the ends are of one release. Builds that know no commit
// cannot be told apart by it.
func (r *Release) doubts(other *Release) []Warning {
	if *r == *other {
		return nil
	}
	return []Warning{{
		Code: codeVersion, Severity: severityWarning, Message: "the two hosts run different releases",
		Evidence: fmt.Sprintf("%+v here, %+v there", *r, *other),
	}}
}

// languageDoubts says that both ends are Go, which says nothing about others.
func languageDoubts() []Warning {
	return []Warning{{Code: codeCrossLanguage, Severity: severityNote, Message: "both ends are Go"}}
}

// clockDoubts says whether the time of day was set in a run, by how long it took
// by that and by the monotonic clock. One-way times between hosts are of that.
func clockDoubts(clock string, ofDay, monotonic time.Duration) []Warning {
	jump := ofDay - monotonic
	if jump.Abs() <= time.Millisecond {
		return nil
	}
	severity := severityNote
	if clock == Realtime {
		severity = severityWarning
	}
	return []Warning{{Code: codeClockJump, Severity: severity, Message: "the time of day was set while it ran", Evidence: jump.String()}}
}

// doubts says why one-way times do not count.
func (t *TimeSync) doubts() []Warning {
	if t.Accepted {
		return nil
	}
	return []Warning{{
		Code: codeTimeSync, Severity: severityWarning, Message: "one-way times between the hosts are diagnostic only: use --mode rtt",
		Evidence: fmt.Sprintf("offset %d ns within %d ns, drift %d ns, daemons disagree: %t", t.Offset, t.Bound, t.Drift, t.Disagree),
	}}
}

// warn adds the doubts about a cell.
func (r *Report) warn(c *Cell) {
	add := func(code, severity, evidence, format string, args ...any) {
		r.Warnings = append(r.Warnings, Warning{code, severity, fmt.Sprintf(format, args...), evidence, c.Case})
	}
	if c.Dropped > 0 {
		add(codeDrops, severityWarning, fmt.Sprint(c.Drops), "%d of %d messages did not come", c.Dropped, c.Expected)
	}
	if c.Missing > 0 {
		add(codeMissing, severityWarning, "", "%d of %d subscribers received nothing", c.Missing, c.Ready)
	}
	if c.Duplicates > 0 {
		add(codeDuplicates, severityWarning, "", "%d messages came more than once", c.Duplicates)
	}
	if c.Reordered > 0 {
		add(codeReordered, severityWarning, "", "%d messages came after later ones", c.Reordered)
	}
	if c.SendErrors > 0 || c.Failures > 0 {
		add(codeFailures, severityWarning, fmt.Sprint(c.Kinds), "%d failures and %d errors of %d sent", c.Failures, c.SendErrors, c.Sent)
	}
	late := c.Lag.Max
	if c.Lag.P99 != nil {
		late = *c.Lag.P99
	} else if c.Lag.Count > 0 {
		late = c.Lag.P95
	}
	if c.period > 0 && c.Delayed == 0 && c.Throughput == nil && late > 0.1*float64(c.period)/1000 {
		add(codeLate, severityWarning, fmt.Sprintf("lag %.0f us", late), "messages were sent late by more than a tenth of the period")
	}
	if c.Saturated {
		add(codeSaturated, severityWarning, fmt.Sprintf("growth %.0f us", c.Growth), "queues grew: the mean is the length of a queue, not a latency")
	}
	if c.Negative > 0 {
		add(codeNegative, severityWarning, "", "%d messages came before they were sent: the clocks disagree, the run is rejected", c.Negative)
	}
	if c.Delayed > 0 {
		add(codeClosedLoop, severityNote, "", "%d were sent late because the one before was not answered; the schedule latency has what that cost", c.Delayed)
	}
	if c.Latency.Count > 0 && c.Latency.Count < 1000 {
		add(codeFewSamples, severityNote, "", "%d samples do not resolve p99", c.Latency.Count)
	}
	if p := c.Latency.P99; p != nil && c.MaxPause > max(*p, 0) {
		add(codePause, severityWarning, fmt.Sprintf("%.0f us", c.MaxPause), "a pause of the garbage collector was longer than p99")
	}
	if t := c.Throughput; t != nil && t.Rate == 0 && len(t.Steps) > 0 {
		add(codeSaturated, severityWarning, t.Steps[len(t.Steps)-1].Why, "no rate that was tried is without drops and within the limit")
	}
	for i := range c.Timeouts {
		if what := c.Timeouts[i].fault(); what != "" {
			t := &c.Timeouts[i]
			add(codeFailures, severityWarning, fmt.Sprintf("%v, told after %.0f to %.0f us", t.Kinds, t.Told.Min, t.Told.Max), "%s: %s", t.Case, what)
		}
	}
}
