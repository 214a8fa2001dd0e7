package harness

import (
	"math"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	PeerMain()
	goleak.VerifyTestMain(m)
}

const (
	ms = int64(time.Millisecond)
	us = int64(time.Microsecond)
)

// fake is a transport with known faults: it says when each message arrives.
type fake struct {
	delay   int64
	lost    []int64
	twice   []int64
	swapped []int64                // arrive after their successor
	stall   func(sent int64) int64 // more delay
	offset  int64                  // of the receiver's clock
	drift   float64
}

// run sends a plan at its times without waiting and returns the account.
func (f *fake) run(p Plan) Received { return f.tracker(p).Result() }

// tracker returns what accounted.
func (f *fake) tracker(p Plan) *Tracker {
	t := NewTracker(p)
	type arrival struct {
		at      int64
		payload []byte
	}
	var list []arrival
	free := int64(0) // a stalled sender sends the next when it can
	for i := range p.Total() {
		due := p.Start + i*p.Period
		t1 := max(due, free)
		b := make([]byte, headerSize)
		putHeader(b, i, t1-p.Start)
		if slices.Contains(f.lost, i) {
			continue
		}
		at := t1 + f.delay
		if f.stall != nil {
			at += f.stall(due)
		}
		if slices.Contains(f.swapped, i) {
			at += p.Period + p.Period/2
		}
		at += f.offset + int64(f.drift*float64(t1-p.Start))
		list = append(list, arrival{at, b})
		if slices.Contains(f.twice, i) {
			list = append(list, arrival{at + 1, b})
		}
	}
	slices.SortStableFunc(list, func(a, b arrival) int { return int(a.at - b.at) })
	for _, a := range list {
		t.Receive(a.at, a.payload)
	}
	return t
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within {
		t.Errorf("%s is %.3f, want %.3f", what, got, want)
	}
}

var plan = Plan{Start: 1000 * ms, Period: ms, Warmup: 10, Count: 2000}

func TestKnownDelay(t *testing.T) {
	r := (&fake{delay: 123 * us}).run(plan)
	s := r.Latency.Summary()
	for what, v := range map[string]float64{"mean": s.Mean, "min": s.Min, "max": s.Max, "p50": s.P50, "p99": *s.P99} {
		near(t, what, v, 123, 0.2)
	}
	if r.Received != 2000 || r.Dropped != 0 || r.Warmup != 10 || r.Gaps != nil || r.OutOfOrder+r.Duplicates+r.Negative != 0 {
		t.Errorf("%+v", r)
	}
	if s.P999 != nil {
		t.Error("p99.9 of 2,000 samples")
	}
}

func TestKnownDrops(t *testing.T) {
	r := (&fake{delay: us, lost: []int64{5, 15, 16, 17, 2009}}).run(plan)
	if want := []Gap{{5, 3}, {1999, 1}}; r.Dropped != 4 || !slices.Equal(r.Gaps, want) {
		t.Errorf("dropped %d, gaps %v, want 4 and %v", r.Dropped, r.Gaps, want)
	}
	if r.Warmup != 9 {
		t.Errorf("%d came of the warm-up, want 9", r.Warmup)
	}
}

func TestDuplicatesAndOrder(t *testing.T) {
	r := (&fake{delay: us, twice: []int64{3, 40, 50}, swapped: []int64{100, 200}}).run(plan)
	if r.Duplicates != 2 || r.OutOfOrder != 2 || r.Dropped != 0 {
		t.Errorf("duplicates %d, out of order %d, dropped %d; want 2, 2, 0", r.Duplicates, r.OutOfOrder, r.Dropped)
	}
}

// TestStall sees a receiver that stops for 50 ms each second: the messages of
// that time come at its end.
func TestStall(t *testing.T) {
	stall := func(sent int64) int64 {
		if into := sent % (1000 * ms); into < 50*ms {
			return 50*ms - into
		}
		return 0
	}
	r := (&fake{delay: 10 * us, stall: stall}).run(plan)
	s := r.Schedule.Summary()
	near(t, "max from due", s.Max, 50_010, 1)
	near(t, "mean from due", s.Mean, 10+50*25_500/1000, 5)
	if *s.P99 < 29_000 {
		t.Errorf("p99 from due is %.0f us, want nearly 30 ms", *s.P99)
	}
}

// TestSenderStall sees one 50 ms stall of the sender: what was due meanwhile is
// sent at its end, which only the time from due tells.
func TestSenderStall(t *testing.T) {
	p := plan
	tracker := NewTracker(p)
	for i := range p.Total() {
		due := p.Start + i*p.Period
		t1 := due
		if i >= 500 && i < 550 {
			t1 = p.Start + 550*p.Period
		}
		b := make([]byte, headerSize)
		putHeader(b, i, t1-p.Start)
		tracker.Receive(t1+10*us, b)
	}
	r := tracker.Result()
	near(t, "max from send", r.Latency.Summary().Max, 10, 0.1)
	near(t, "max from due", r.Schedule.Summary().Max, 50_010, 1)
	if r.Dropped != 0 {
		t.Errorf("dropped %d", r.Dropped)
	}
}

func TestOffsetAndDrift(t *testing.T) {
	r := (&fake{delay: 100 * us, offset: 300 * us, drift: 50e-6}).run(plan)
	near(t, "mean", r.Latency.Summary().Mean, 400+50e-6*1010_000, 2)
	r = (&fake{delay: 100 * us, offset: -300 * us}).run(plan)
	if r.Negative != 2000 {
		t.Errorf("%d latencies below zero, want all", r.Negative)
	}
	corrected := plan
	corrected.Offset = -300 * us
	r = (&fake{delay: 100 * us, offset: -300 * us}).run(corrected)
	near(t, "mean, corrected", r.Latency.Summary().Mean, 100, 0.1)
	near(t, "mean from due, corrected", r.Schedule.Summary().Mean, 100, 0.1)
	for _, c := range []struct {
		sync     TimeSync
		negative int64
		ok       bool
	}{
		{TimeSync{Offset: 300 * us, Bound: us}, 0, true}, // which is corrected
		{TimeSync{Offset: us, Bound: 30 * us}, 0, false},
		{TimeSync{Offset: us, Bound: us, Drift: -50 * us}, 0, false},
		{TimeSync{Offset: us, Bound: 5 * us, Drift: us}, 0, true},
		{TimeSync{Bound: 5 * us}, 1, false},
		{TimeSync{Bound: 5 * us, Disagree: true}, 0, false},
	} {
		if c.sync.Accept(100*us, c.negative); c.sync.Accepted != c.ok || c.sync.Diagnostic == c.ok {
			t.Errorf("%+v", c.sync)
		}
	}
}

// TestLongSequence restores sequences beyond 16 bits, over a gap of 40,000 too.
func TestLongSequence(t *testing.T) {
	p := Plan{Period: ms, Count: 200_000}
	tracker := NewTracker(p)
	b := make([]byte, headerSize)
	for i := int64(0); i < p.Count; i++ {
		if i >= 70_000 && i < 110_000 {
			continue
		}
		putHeader(b, i, i*p.Period+17*ms)
		tracker.Receive(i*p.Period+18*ms, b)
	}
	if r := tracker.Result(); r.Dropped != 40_000 || len(r.Gaps) != 1 || r.Gaps[0] != (Gap{70_000, 40_000}) || r.Foreign != 0 {
		t.Errorf("dropped %d, gaps %v, foreign %d", r.Dropped, r.Gaps, r.Foreign)
	}
}

func TestForeign(t *testing.T) {
	tracker := NewTracker(plan)
	b := make([]byte, headerSize)
	putProbe(b)
	tracker.Receive(0, b)
	tracker.Receive(0, b[:3])
	putHeader(b, 5000, 5000*ms)
	tracker.Receive(5000*ms, b)
	if r := tracker.Result(); r.Foreign != 2 || r.Received != 0 || r.Dropped != 2000 {
		t.Errorf("foreign %d, received %d", r.Foreign, r.Received)
	}
}

func TestSaturated(t *testing.T) {
	for _, c := range []struct {
		name  string
		delay func(sent int64) int64
		want  bool
	}{
		{"steady", func(int64) int64 { return 0 }, false},
		{"grows by 50 us each ms", func(sent int64) int64 { return (sent - plan.Start) / 20 }, true},
		{"a full queue", func(int64) int64 { return 541 * ms }, true},
		{"one stall", func(sent int64) int64 {
			if sent < plan.Start+1900*ms {
				return 0
			}
			return 20 * ms
		}, false},
	} {
		r := (&fake{delay: 50 * us, stall: c.delay}).run(plan)
		if _, got := Saturated(r.Segments, plan.Period); got != c.want {
			t.Errorf("%s: %t, %v", c.name, got, r.Segments)
		}
	}
}

// TestFloor runs over nothing: all messages come, in far less than what a
// transport takes.
func TestFloor(t *testing.T) {
	sent, list := Floor(Plan{Period: ms / 5, Warmup: 5, Count: 100}, 64, 3)
	if sent.Sent != 100 || len(list) != 3 {
		t.Fatalf("%d sent, %d subscribers", sent.Sent, len(list))
	}
	for _, r := range list {
		if r.Dropped != 0 || r.Negative != 0 || r.Latency.Count() != 100 {
			t.Errorf("%+v", r)
		}
	}
}

func TestDistributionTravels(t *testing.T) {
	d := NewDistribution()
	for i := range int64(20_000) {
		d.Add(i * us)
	}
	d.Add(-5)
	text, err := d.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	o, sum := &Distribution{}, NewDistribution()
	if err := o.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	sum.Merge(o)
	sum.Merge(o)
	s := sum.Summary()
	near(t, "p99.9", *s.P999, 19_980, 20)
	near(t, "min", s.Min, -0.005, 0)
	if s.Count != 40_002 {
		t.Errorf("%d samples", s.Count)
	}
}

func TestMannWhitney(t *testing.T) {
	for _, c := range []struct {
		a, b []float64
		want float64
	}{
		{[]float64{1, 2, 3, 4, 5}, []float64{6, 7, 8, 9, 10}, 2.0 / 252},
		{[]float64{1, 2, 3}, []float64{4, 5, 6}, 0.1},
		{[]float64{1, 4, 5}, []float64{2, 3, 6}, 1},
		{[]float64{1, 1, 1}, []float64{1, 1, 1}, 1},
		{nil, []float64{1}, 1},
	} {
		near(t, "p", MannWhitney(c.a, c.b), c.want, 1e-9)
	}
}

// TestClock sees clocks that go on, at the speed of the time.
func TestClock(t *testing.T) {
	for _, name := range []string{Monotonic, Realtime} {
		clock := ClockNamed(name)
		p := NewPacer(clock, true)
		due := clock() + 5*ms
		p.Until(due)
		p.Close()
		if at := clock(); at < due {
			t.Errorf("%s: woke %d ns early", name, due-at)
		}
	}
}

// TestCompare finds what is worse beyond the noise of the rounds, and no more.
func TestCompare(t *testing.T) {
	report := func(means ...float64) *Report {
		c := newCell("a case", &Workload{})
		for _, m := range means {
			c.Rounds = append(c.Rounds, Round{Mean: m, P50: m, P99: 2 * m, Bare: 50, Ratio: m / 50})
		}
		return &Report{Track: "event", Mode: "oneway", Host: []*Host{{CPU: "one"}}, Results: []*Cell{c}}
	}
	old := report(100, 101, 102, 103, 104)
	for _, c := range []struct {
		name  string
		new   *Report
		worse int
	}{
		{"the same", report(100.5, 101.5, 102.5, 103.5, 99.5), 0},
		{"slower", report(120, 121, 122, 123, 124), 3},
		{"slower, in one round", report(100.5, 101.5, 102.5, 300, 99.5), 0},
		{"surely but little slower", report(105, 105.5, 106, 106.5, 106.6), 0},
		{"faster", report(80, 81, 82, 83, 84), 0},
		{"too few rounds to tell", report(200), 0},
	} {
		if got := compare(old, c.new); got.worse != c.worse || got.judged != 3 {
			t.Errorf("%s: %d worse, want %d, of %d: %q", c.name, got.worse, c.worse, got.judged, got.table)
		}
	}
}

// TestFault sees what is wrong about callers that were told that there is no answer.
func TestFault(t *testing.T) {
	for _, c := range []struct {
		given TimeoutCase
		ok    bool
	}{
		{TimeoutCase{Case: "never", Calls: 5, Kinds: map[string]int64{"timeout": 5}}, true},
		{TimeoutCase{Case: "never", Calls: 5, Kinds: map[string]int64{"timeout": 4, "busy": 1}}, false},
		{TimeoutCase{Case: "late", Calls: 5, Kinds: map[string]int64{"timeout": 5}, Wrong: 1}, false},
		{TimeoutCase{Case: "late", Calls: 5, Kinds: map[string]int64{"timeout": 5}, Outside: 1}, false},
		{TimeoutCase{Case: "dies", Calls: 8, Kinds: map[string]int64{"unreachable": 8}}, true},
		{TimeoutCase{Case: "dies", Calls: 8, Kinds: map[string]int64{"unreachable": 8}, Left: 1}, false},
		{TimeoutCase{Case: "restarts", Calls: 8, Kinds: map[string]int64{"unreachable": 9}}, false},
	} {
		if (c.given.fault() == "") != c.ok {
			t.Errorf("%+v: %q", c.given, c.given.fault())
		}
	}
}
