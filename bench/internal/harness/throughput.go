package harness

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Throughput is how many messages a case carries.
type Throughput struct {
	Limit   float64 `json:"limit_us"`
	Rate    float64 `json:"rate"` // the largest that held, messages a second; 0 if none did
	Steps   []Step  `json:"steps"`
	Unpaced Flood   `json:"unpaced"`
	Bare    *Flood  `json:"bare_unpaced,omitempty"`
}

// Step is one run at a rate. It holds if nothing is lost and p99 of the latency
// from the time a message was due is within the limit: that one has what a late
// sender costs too.
type Step struct {
	Rate    float64 `json:"rate"` // messages a second
	Sent    float64 `json:"sent"` // what the sender reached
	Count   int64   `json:"count"`
	Dropped int64   `json:"dropped"` // failures of calls
	P99     float64 `json:"p99"`     // the greatest one below 1,000 samples
	Held    bool    `json:"held"`
	Why     string  `json:"why,omitempty"` // it did not
}

// Flood is a run without pauses, where messages wait in queues: their latency is
// an age, and says how long these are.
type Flood struct {
	Sent     float64 `json:"sent"`     // messages a second
	Received float64 `json:"received"` // by the slowest subscriber
	Count    int64   `json:"count"`
	Dropped  int64   `json:"dropped"`
	Age      Summary `json:"age"`
}

const (
	searchSpan  = 1000                   // the least rate tried is the greatest divided by this
	searchSteps = 8                      // 1000^(1/2^8) = 1.027: the rate is found within 3 %
	stepLength  = 200 * time.Millisecond // at least
	paceReached = 0.95                   // the share of a rate that a sender must reach

	// A flood's messages are as many as take a step's length, and at most so many,
	// unless more are asked for.
	floodMessages = 5000
	floodBytes    = 256 << 20
	floodTogether = 2_000_000 // received by all subscribers
)

// search returns the largest rate that holds, 0 if none that was tried does, by
// bisection of the logarithm below a greatest one. What does not hold is tried
// once more: a stall of the host fails a step, none makes one hold.
func search(greatest float64, try func(rate float64) (bool, error)) (float64, error) {
	low, high, best := greatest/searchSpan, greatest, 0.0
	for range searchSteps {
		rate := math.Sqrt(low * high)
		held, err := try(rate)
		if err == nil && !held {
			held, err = try(rate)
		}
		if err != nil {
			return best, err
		}
		if held {
			low, best = rate, rate
		} else {
			high = rate
		}
	}
	return best, nil
}

// Throughput finds how many messages a case carries. The run of the largest rate
// that held becomes its figures.
func (s *Session) Throughput(ctx context.Context, c *Cell, w Workload, limit time.Duration, run func(context.Context, Workload, bool) (*Run, error)) error {
	t := &Throughput{Limit: float64(limit.Nanoseconds()) / 1000}
	c.Throughput = t
	flood := w
	flood.Period = 0
	most := int64(min(floodBytes/w.Payload, floodTogether/max(w.Subscribers, 1)))
	flood.Count = max(w.Count, min(floodMessages, most))
	for range 2 {
		s.say("%s: unpaced", c.Case)
		lib, err := run(ctx, flood, false)
		if err != nil {
			return fmt.Errorf("%s, unpaced: %w", c.Case, err)
		}
		t.Unpaced = lib.flood(&flood)
		enough := min(int64(t.Unpaced.Sent*stepLength.Seconds()), most)
		if enough <= flood.Count {
			break
		}
		flood.Count = enough
	}
	if !s.NoBare {
		s.say("%s: unpaced, bare", c.Case)
		bare, err := run(ctx, flood, true)
		if err != nil {
			return fmt.Errorf("%s, unpaced, bare: %w", c.Case, err)
		}
		b := bare.flood(&flood)
		t.Bare = &b
	}
	greatest := t.Unpaced.Sent
	if r := t.Unpaced.Received; r > 0 {
		greatest = min(greatest, 2*r) // what is flooded receives less than it could
	}
	if greatest <= 0 {
		return nil
	}
	var best *Run
	var at Workload
	_, err := search(greatest, func(rate float64) (bool, error) {
		x := w
		x.Period = time.Duration(max(math.Round(1e9/rate), 1))
		x.Count = min(max(w.Count, int64(stepLength/x.Period)), MaxCount)
		s.say("%s: %.0f a second", c.Case, rate)
		one, err := run(ctx, x, false)
		if err != nil {
			return false, fmt.Errorf("%s, %.0f a second: %w", c.Case, rate, err)
		}
		step := one.step(&x, t.Limit)
		t.Steps = append(t.Steps, step)
		if step.Held {
			best, at, t.Rate = one, x, step.Rate
		}
		return step.Held, nil
	})
	if best != nil {
		c.period, c.first, c.count = at.Period.Nanoseconds(), at.Warmup, at.Count
		s.synchronised(best)
		s.Add(c, at, best)
	}
	return err
}

// lost is how many messages did not come, or calls failed.
func (r *Run) lost() int64 {
	n := r.Sent.Failures + r.Sent.Errors
	for _, x := range r.Received {
		n += x.Dropped
	}
	return n
}

func (r *Run) flood(w *Workload) Flood {
	f := Flood{Count: w.Count, Dropped: r.lost(), Age: r.latency().Summary()}
	if r.Sent.Seconds > 0 {
		f.Sent = float64(r.Sent.Sent) / r.Sent.Seconds
	}
	if r.Received == nil {
		f.Received = f.Sent * float64(r.Sent.Sent-r.Sent.Failures) / float64(max(r.Sent.Sent, 1))
		return f
	}
	f.Received = math.Inf(1)
	for _, x := range r.Received {
		rate := 0.0
		if x.Seconds > 0 {
			rate = float64(x.Received-1) / x.Seconds
		}
		f.Received = min(f.Received, rate)
	}
	return f
}

// step judges a run at a rate.
func (r *Run) step(w *Workload, limit float64) Step {
	schedule := r.Sent.Schedule
	if r.Received != nil {
		schedule = NewDistribution()
		for _, x := range r.Received {
			schedule.Merge(x.Schedule)
		}
	}
	due := schedule.Summary()
	s := Step{Rate: 1e9 / float64(w.Period), Count: w.Count, Dropped: r.lost(), P99: due.Max}
	if due.P99 != nil {
		s.P99 = *due.P99
	}
	if r.Sent.Seconds > 0 {
		s.Sent = float64(r.Sent.Sent) / r.Sent.Seconds
	}
	switch {
	case s.Sent < paceReached*s.Rate:
		s.Why = "the sender does not reach the rate"
	case s.Dropped > 0:
		s.Why = "messages are lost"
	case due.Count == 0 || s.P99 > limit:
		s.Why = "p99 from due is above the limit"
	}
	s.Held = s.Why == ""
	return s
}

// sentence says what came out.
func (t *Throughput) sentence() string {
	text := fmt.Sprintf("%.0f messages a second without a drop and with p99 from due within %.0f us", t.Rate, t.Limit)
	if t.Rate == 0 {
		text = fmt.Sprintf("no rate that was tried is without drops and has p99 from due within %.0f us", t.Limit)
	}
	text += fmt.Sprintf("; unpaced %.0f sent and %.0f received a second, %d dropped, %.0f us old at p50 and %.0f at most",
		t.Unpaced.Sent, t.Unpaced.Received, t.Unpaced.Dropped, t.Unpaced.Age.P50, t.Unpaced.Age.Max)
	if t.Bare != nil {
		text += fmt.Sprintf("; the bare one %.0f, %.0f, %d, %.0f, %.0f", t.Bare.Sent, t.Bare.Received, t.Bare.Dropped, t.Bare.Age.P50, t.Bare.Age.Max)
	}
	return text
}
