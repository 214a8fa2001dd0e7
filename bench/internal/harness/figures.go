package harness

import (
	"fmt"
	"strings"

	"github.com/madara-go/madara/karl"
)

// figure is a name that requirements may read.
type figure struct {
	name  string
	means string
	when  *condition
	of    func(c *Cell) (karl.Value, bool) // and whether it was measured in this case
}

// condition is when figures are measured: in runs of a track, and of these in
// cases.
type condition struct {
	text string
	run  func(t *Track) bool
	in   func(c *Cell) bool // nil is in all cases
}

// Modes that conditions tell apart.
const (
	modeTrip       = "rtt"
	modeThroughput = "throughput"
	modeTimeouts   = "timeouts"
)

func (t *Track) event() bool { return t.Name == "event" }

func (t *Track) oneway() bool { return t.event() && t.Mode() != modeTrip }

func (t *Track) besideBare() bool {
	return !t.Common.NoBare && t.Mode() != modeThroughput && t.Mode() != modeTimeouts && t.Name != "priority"
}

var (
	always    = &condition{"", func(*Track) bool { return true }, nil}
	ofEvents  = &condition{"of event", (*Track).event, nil}
	ofOneway  = &condition{"of event without --mode rtt", (*Track).oneway, nil}
	ofAnswers = &condition{"of calls, and of event --mode rtt", func(t *Track) bool { return !t.oneway() }, nil}
	ofTrips   = &condition{"of event --mode rtt", func(t *Track) bool { return t.event() && !t.oneway() }, nil}
	ofCalls   = &condition{"of calls", func(t *Track) bool { return !t.event() }, nil}
	ofPeriods = &condition{"with a --period-us from 1", func(t *Track) bool { return t.Common.PeriodUS > 0 || t.Mode() == modeThroughput }, nil}
	ofFans    = &condition{"of event with two subscribers and more, up to 2,000,000 messages together", func(t *Track) bool { return t.Fans != nil && t.Fans() }, func(c *Cell) bool { return c.Subscribers > 1 }}
	ofBare    = &condition{"with bare sockets beside: without --no-bare, --timeouts, --mode throughput, and not of priority", (*Track).besideBare, nil}
	ofRounds  = &condition{"of two rounds and more", func(t *Track) bool {
		return t.Common.Rounds != 1 && t.Mode() != modeThroughput && t.Mode() != modeTimeouts
	}, nil}
	ofRates    = &condition{"with --mode throughput", func(t *Track) bool { return t.Mode() == modeThroughput }, nil}
	ofTimeouts = &condition{"with --timeouts", func(t *Track) bool { return t.Mode() == modeTimeouts }, nil}
	ofBulk     = &condition{"of priority, in its cases with bulk", func(t *Track) bool { return t.Name == "priority" }, func(c *Cell) bool { return c.withBulk }}
	ofFifo     = &condition{"of priority without --no-bare, in its cases with bulk", func(t *Track) bool { return t.Name == "priority" && !t.Common.NoBare }, func(c *Cell) bool { return c.withBulk }}
)

// figureList is all names, in the order of the help.
var figureList = allFigures()

func allFigures() []figure {
	var list []figure
	add := func(when *condition, name, means string, of func(*Cell) (karl.Value, bool)) {
		list = append(list, figure{name, means, when, of})
	}
	count := func(when *condition, name, means string, of func(*Cell) int64) {
		add(when, name, means, func(c *Cell) (karl.Value, bool) { return karl.Int(of(c)), len(c.Rounds) > 0 })
	}
	number := func(when *condition, name, means string, of func(*Cell) (float64, bool)) {
		add(when, name, means, func(c *Cell) (karl.Value, bool) { v, ok := of(c); return karl.Float(v), ok })
	}
	measured := func(of func(*Cell) float64) func(*Cell) (float64, bool) { // where there is a round
		return func(c *Cell) (float64, bool) { return of(c), len(c.Rounds) > 0 }
	}
	positive := func(of func(*Cell) float64) func(*Cell) (float64, bool) { // where zero is what was not measured
		return func(c *Cell) (float64, bool) { v := of(c); return v, v > 0 }
	}
	of := func(when *condition, prefix, what string, from func(*Cell) *Summary) {
		for _, f := range []struct {
			name, means string
			of          func(*Summary) float64
		}{
			{"min", "smallest", func(s *Summary) float64 { return s.Min }}, {"mean", "mean", func(s *Summary) float64 { return s.Mean }},
			{"stddev", "standard deviation of the", func(s *Summary) float64 { return s.StdDev }},
			{"p50", "median", func(s *Summary) float64 { return s.P50 }}, {"p90", "90th percentile of the", func(s *Summary) float64 { return s.P90 }},
			{"p95", "95th percentile of the", func(s *Summary) float64 { return s.P95 }},
			{"p99", "99th percentile (below 1,000 samples the largest) of the", func(s *Summary) float64 { return orMax(s.P99, s) }},
			{"p999", "99.9th percentile (below 10,000 samples the largest) of the", func(s *Summary) float64 { return orMax(s.P999, s) }},
			{"max", "largest", func(s *Summary) float64 { return s.Max }},
		} {
			name, means := prefix+f.name, f.means+" "+what
			if name == "mean" {
				means = "median of the rounds' mean " + what
			}
			number(when, name, means, func(c *Cell) (float64, bool) {
				s := from(c)
				if s == nil || s.Count == 0 {
					return 0, false
				}
				if name == "mean" {
					return c.Mean, true
				}
				return f.of(s), true
			})
		}
	}

	of(always, "", "latency", func(c *Cell) *Summary { return &c.Latency })
	of(ofPeriods, "schedule_", "latency from the time due", func(c *Cell) *Summary { return &c.Schedule })
	of(ofPeriods, "lag_", "time that a message was sent late", func(c *Cell) *Summary { return &c.Lag })
	of(ofEvents, "cost_", "time that sending took", func(c *Cell) *Summary { return c.PublishCost })
	of(ofFans, "skew_", "time between the first and the last subscriber", func(c *Cell) *Summary { return c.Skew })
	of(ofBare, "bare_", "latency of the bare one", func(c *Cell) *Summary { return c.Bare })
	of(always, "floor_", "time that the harness itself takes", func(c *Cell) *Summary { return c.Floor })

	number(ofBare, "ratio", "median of the rounds' mean latency divided by the bare mean of the round", positive(func(c *Cell) float64 { return c.Ratio }))
	number(ofRounds, "spread", "largest less smallest mean of the rounds, divided by mean", func(c *Cell) (float64, bool) { return c.Spread, len(c.Rounds) > 1 && c.Mean > 0 })
	count(always, "payload_size", "bytes of a message", func(c *Cell) int64 { return int64(c.Payload) })
	count(ofCalls, "reply_size", "bytes of an answer", func(c *Cell) int64 { return int64(c.Reply) })
	count(ofOneway, "subscribers", "subscribers", func(c *Cell) int64 { return int64(c.Subscribers) })
	count(always, "sent", "messages and calls that were measured", func(c *Cell) int64 { return c.Sent })
	count(always, "expected", "what was to come of these, at all subscribers together", func(c *Cell) int64 { return c.Expected })
	count(always, "received", "what came of it", func(c *Cell) int64 { return c.Received })
	// One of both is zero, so that neither name can hold of what failed.
	count(always, "dropped", "messages that did not come and calls that failed", func(c *Cell) int64 { return c.Dropped + c.Failures })
	count(always, "failures", "the same", func(c *Cell) int64 { return c.Dropped + c.Failures })
	count(ofEvents, "errors", "messages that could not be sent", func(c *Cell) int64 { return c.SendErrors })
	count(ofOneway, "duplicates", "messages that came again", func(c *Cell) int64 { return c.Duplicates })
	count(ofOneway, "reordered", "messages that came after later ones", func(c *Cell) int64 { return c.Reordered })
	count(ofOneway, "late", "messages that came after the last was sent", func(c *Cell) int64 { return c.Late })
	count(ofOneway, "missing", "subscribers that nothing came to", func(c *Cell) int64 { return int64(c.Missing) })
	count(ofOneway, "completed", "subscribers that everything came to", func(c *Cell) int64 { return int64(c.Completed) })
	count(ofOneway, "partial", "subscribers that a part came to", func(c *Cell) int64 { return int64(c.Partial) })
	count(ofAnswers, "timeouts", "failures by time-out", func(c *Cell) int64 { return c.Kinds["timeout"] })
	count(ofAnswers, "delayed", "messages that were sent late because of the answer before", func(c *Cell) int64 { return c.Delayed })
	count(ofTrips, "late_replies", "answers after the time-out", func(c *Cell) int64 { return c.LateReply })
	count(ofOneway, "saturated", "1 if queues grew, else 0", func(c *Cell) int64 {
		if c.Saturated {
			return 1
		}
		return 0
	})
	number(ofOneway, "growth", "by how much the latency grew through the run", measured(func(c *Cell) float64 { return c.Growth }))
	number(always, "allocs", "allocations of the sending process for a message", measured(func(c *Cell) float64 { return c.Allocs }))
	number(ofBare, "bare_allocs", "the same of the bare one", func(c *Cell) (float64, bool) { return c.BareAllocs, c.Bare != nil })
	number(always, "cpu", "percent of a core that all processes used", positive(func(c *Cell) float64 { return c.CPU }))
	number(always, "rss", "bytes of memory that all processes used", positive(func(c *Cell) float64 { return float64(c.RSS) }))

	rate := func(of func(*Throughput) float64) func(*Cell) (float64, bool) {
		return func(c *Cell) (float64, bool) {
			if c.Throughput == nil || c.Throughput.Unpaced.Count == 0 {
				return 0, false
			}
			return of(c.Throughput), true
		}
	}
	number(ofRates, "rate", "the largest rate that held, messages a second; 0 if none did", rate(func(t *Throughput) float64 { return t.Rate }))
	number(ofRates, "unpaced_sent", "messages a second, as fast as possible", rate(func(t *Throughput) float64 { return t.Unpaced.Sent }))
	number(ofRates, "unpaced_received", "what came of these, a second, at the slowest subscriber", rate(func(t *Throughput) float64 { return t.Unpaced.Received }))

	bulk := func(of func(*BulkFigures) float64) func(*Cell) (float64, bool) {
		return func(c *Cell) (float64, bool) {
			if c.Bulk == nil {
				return 0, false
			}
			return of(c.Bulk), true
		}
	}
	ratio := func(of func(*BulkFigures) float64) func(*Cell) (float64, bool) {
		return positive(func(c *Cell) float64 { v, _ := bulk(of)(c); return v })
	}
	number(ofBulk, "bulk_rate", "MiB a second of bulk requests", bulk(func(b *BulkFigures) float64 { return b.MiB }))
	number(ofBulk, "bulk_share", "that, divided by the rate of bulk alone", ratio(func(b *BulkFigures) float64 { return b.Share }))
	number(ofBulk, "starvation", "longest time that bulk had no answer", bulk(func(b *BulkFigures) float64 { return b.Longest }))
	number(ofFifo, "fifo_ratio", "mean latency divided by that over one shared connection", ratio(func(b *BulkFigures) float64 { return b.FifoRatio }))
	number(ofBulk, "idle_p50_ratio", "median latency divided by that without bulk", ratio(func(b *BulkFigures) float64 { return b.IdleP50Ratio }))
	number(ofBulk, "idle_p99_ratio", "99th percentile of the latency divided by that without bulk", ratio(func(b *BulkFigures) float64 { return b.IdleP99Ratio }))
	number(ofBulk, "inversions", "bulk requests begun before a high one that was sent earlier", bulk(func(b *BulkFigures) float64 { return float64(b.Inversions) }))

	told := func(of func(*TimeoutCase) int64) func(*Cell) (karl.Value, bool) {
		return func(c *Cell) (karl.Value, bool) {
			sum := int64(0)
			for i := range c.Timeouts {
				sum += of(&c.Timeouts[i])
			}
			return karl.Int(sum), len(c.Timeouts) > 0
		}
	}
	add(ofTimeouts, "outside", "calls that were told before the time-out, or too late", told(func(t *TimeoutCase) int64 { return t.Outside }))
	add(ofTimeouts, "wrong", "answers to other requests", told(func(t *TimeoutCase) int64 { return t.Wrong }))
	add(ofTimeouts, "left", "goroutines that are left", told(func(t *TimeoutCase) int64 { return int64(t.Left) }))
	return list
}

// orMax is a percentile, or the largest of too few samples, which is no less.
func orMax(percentile *float64, s *Summary) float64 {
	if percentile == nil {
		return s.Max
	}
	return *percentile
}

// figureHelp lists the names for requirements.
func figureHelp() string {
	var b strings.Builder
	b.WriteString("--require takes expressions in KaRL over these figures of each case; times are in\n" +
		"microseconds. One that reads a figure that was not measured does not hold. A case\n" +
		"that cannot have a figure, as skew of one subscriber, is not judged by it.\n\n")
	var last *condition
	for _, f := range figureList {
		if f.when != last && f.when.text != "" {
			fmt.Fprintf(&b, "%s:\n", f.when.text)
		} else if f.when != last {
			b.WriteString("in every run:\n")
		}
		last = f.when
		fmt.Fprintf(&b, "  %-17s %s\n", f.name, f.means)
	}
	return b.String()
}
