package harness

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestSearch finds capacities within three percent, though each step fails at
// first, and gives up below its span.
func TestSearch(t *testing.T) {
	for _, c := range []struct{ capacity, want float64 }{{50_000, 50_000}, {1200, 1200}, {99_999, 99_999}, {1e9, 100_000}, {99, 0}} {
		for _, hiccups := range []bool{false, true} {
			tries, last := 0, 0.0
			got, err := search(100_000, func(rate float64) (bool, error) {
				tries++
				first := rate != last
				last = rate
				return rate <= c.capacity && !(hiccups && first), nil
			})
			if err != nil || got > c.want || got < c.want*0.97 {
				t.Errorf("%v, want nearly %v; %v", got, c.want, err)
			}
			if tries > 2*searchSteps {
				t.Errorf("%d tries", tries)
			}
		}
	}
	failed := errors.New("failed")
	if _, err := search(1000, func(float64) (bool, error) { return false, failed }); !errors.Is(err, failed) {
		t.Errorf("%v, want that it failed", err)
	}
}

// carrier is a transport that carries one message in a time, and of which a
// number may wait; its sender takes a time for each.
type carrier struct {
	service, publish int64
	room             int
}

func (k *carrier) run(_ context.Context, w Workload, _ bool) (*Run, error) {
	p := Plan{Start: 1000 * ms, Period: w.Period.Nanoseconds(), Warmup: w.Warmup, Count: w.Count}
	t, sent := NewTracker(p), newSent()
	free, at := int64(0), p.Start // of the sender
	var waiting []int64           // when they come
	for i := range p.Total() {
		at = max(at, p.Start+i*p.Period)
		for len(waiting) > 0 && waiting[0] <= at {
			waiting = waiting[1:]
		}
		if len(waiting) < k.room {
			free = max(free, at) + k.service
			waiting = append(waiting, free)
			b := make([]byte, headerSize)
			putHeader(b, i, at-p.Start)
			t.Receive(free, b)
		}
		at += k.publish
		sent.Sent++
	}
	sent.Sent -= p.Warmup
	sent.Seconds = float64(at-p.Start) / 1e9
	return &Run{Sent: sent, Received: []Received{t.Result()}, Peaks: t.peaks}, nil
}

// TestThroughput finds what the carrier, its queue or its sender allow.
func TestThroughput(t *testing.T) {
	for _, c := range []struct {
		name     string
		carrier  carrier
		limit    time.Duration
		rate     float64
		received float64 // unpaced
		why      string
	}{
		// Queues of 10,000 do not drop: the limit decides.
		{"the time", carrier{20 * us, us, 10_000}, time.Millisecond, 50_000, 50_000, "p99 from due"},
		{"the queue", carrier{20 * us, us, 10}, time.Second, 50_000, 50_000, "lost"},
		{"the sender", carrier{us, 25 * us, 10}, time.Second, 40_000, 40_000, ""},
		{"nothing", carrier{20 * us, us, 10}, 10 * time.Microsecond, 0, 50_000, "p99 from due"},
	} {
		w := Workload{Payload: 8, Count: 1000, Subscribers: 1}
		s := &Session{Common: &Common{NoBare: true}, Report: &Report{Host: []*Host{{}}, Resources: map[string]any{}}}
		cell := s.Cell(c.name, &w)
		if err := s.Throughput(context.Background(), cell, w, c.limit, c.carrier.run); err != nil {
			t.Fatal(err)
		}
		x := cell.Throughput
		if x.Rate > c.rate*1.02 || x.Rate < c.rate*0.95 {
			t.Errorf("%s: rate %.0f, want nearly %.0f", c.name, x.Rate, c.rate)
		}
		near(t, c.name+": received unpaced", x.Unpaced.Received, c.received, c.received*0.05)
		for _, step := range x.Steps {
			if step.Held != (step.Why == "") || !step.Held && !strings.Contains(step.Why, c.why) {
				t.Errorf("%s: %+v, want %q", c.name, step, c.why)
			}
		}
		if x.Unpaced.Count < 8000 {
			t.Errorf("%s: a flood of %d messages", c.name, x.Unpaced.Count)
		}
		j, err := trackOf("event", modeThroughput, &Common{Require: []string{"rate > 0"}}).judges()
		if err != nil {
			t.Fatal(err)
		}
		s.Report.finish(j, nil, false)
		if c.rate == 0 {
			if len(cell.Rounds) != 0 || s.Report.Verdict.OK || len(s.Report.Warnings) != 1 || s.Report.Warnings[0].Code != "saturated" {
				t.Errorf("%s: %+v, %+v", c.name, s.Report.Verdict, s.Report.Warnings)
			}
			continue
		}
		if len(cell.Rounds) != 1 || cell.Dropped != 0 || cell.Latency.Count < 1000 || !s.Report.Verdict.OK {
			t.Errorf("%s: %d rounds, %d dropped, %d samples, %+v", c.name, len(cell.Rounds), cell.Dropped, cell.Latency.Count, s.Report.Verdict)
		}
	}
}

// TestLateSender loses nothing of a sender that is late by far more messages
// than the low bits of a sequence tell.
func TestLateSender(t *testing.T) {
	r, err := (&carrier{us / 10, 4 * us, 10}).run(context.Background(), Workload{Period: time.Microsecond, Count: 300_000}, false)
	if err != nil {
		t.Fatal(err)
	}
	if x := r.Received[0]; x.Dropped+x.Duplicates+x.Foreign != 0 {
		t.Errorf("dropped %d, duplicates %d, foreign %d", x.Dropped, x.Duplicates, x.Foreign)
	}
	if s := r.step(&Workload{Period: time.Microsecond}, 1000); s.Held || !strings.Contains(s.Why, "sender") {
		t.Errorf("%+v", s)
	}
}
