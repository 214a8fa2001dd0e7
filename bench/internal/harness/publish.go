package harness

import (
	"context"
	"encoding/binary"
	"runtime"
	"sync/atomic"
	"time"
)

func isProbe(payload []byte) bool {
	return len(payload) >= headerSize && binary.LittleEndian.Uint64(payload) == probe
}

func newSent() *Sent {
	return &Sent{
		Cost: NewDistribution(), Lag: NewDistribution(), Latency: NewDistribution(), Schedule: NewDistribution(),
		Penalised: NewDistribution(), Kinds: map[string]int64{},
	}
}

func (s *Sent) fail(err error) {
	s.Errors++
	if s.FirstError == "" {
		s.FirstError = err.Error()
	}
}

// mallocs counts the allocations of the process.
func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// publishAll sends a run, each message at its time however long the ones before took.
func (p *peer) publishAll(plan Plan) *Sent {
	return publishRun(p.clock, plan, make([]byte, p.assignment.Endpoint.Payload), p.end.publish, p.stopped.Done())
}

func publishRun(clock Clock, plan Plan, payload []byte, publish func([]byte) error, stop <-chan struct{}) *Sent {
	s := newSent()
	s.times = plan.times(columnSend, columnReturn)
	pacer := NewPacer(clock, true)
	defer pacer.Close()
	var allocated uint64
	var began int64
	for i := range plan.Total() {
		select {
		case <-stop:
			return s
		default:
		}
		if i == plan.Warmup {
			allocated, began = mallocs(), clock()
		}
		due := plan.Start + i*plan.Period
		pacer.Until(due)
		t1 := clock()
		putHeader(payload, i, t1-plan.Start)
		err := publish(payload)
		t2 := clock()
		if i < plan.Warmup {
			continue
		}
		s.Sent++
		if err != nil {
			s.fail(err)
		}
		s.Cost.Add(t2 - t1)
		if plan.Period > 0 {
			s.Lag.Add(t1 - due)
		}
		s.times.keep(columnSend, i-plan.Warmup, t1-plan.Start)
		s.times.keep(columnReturn, i-plan.Warmup, t2-plan.Start)
	}
	s.Allocs = float64(mallocs()-allocated) / float64(plan.Count)
	s.Seconds = float64(clock()-began) / 1e9
	return s
}

// pingAll sends a run whose messages come back, one at a time: the next one
// waits until the one before came back or failed.
func (p *peer) pingAll(plan Plan) (*Sent, error) {
	s := newSent()
	s.Peaks = newPeaks(plan.Count)
	s.times = plan.times(columnSend, columnReturn, columnReceive)
	var waiting atomic.Int64 // the sequence of the one under way
	var late atomic.Int64
	var routed atomic.Bool
	waiting.Store(-1)
	came := make(chan int64, 1)
	err := p.end.subscribe(func(payload []byte) {
		at := p.clock()
		if isProbe(payload) {
			routed.Store(true)
			return
		}
		if len(payload) < headerSize {
			return
		}
		low := int64(binary.LittleEndian.Uint64(payload) >> 48)
		w := waiting.Load()
		if w >= 0 && w&0xffff == low && waiting.CompareAndSwap(w, -1) {
			came <- at
		} else {
			late.Add(1)
		}
	})
	if err != nil {
		return nil, err
	}
	payload := make([]byte, p.assignment.Endpoint.Payload)
	putProbe(payload)
	ctx, cancel := context.WithTimeout(p.stopped, routePatience)
	defer cancel()
	if !p.poll(ctx, func() bool { p.end.publish(payload); return routed.Load() }) {
		return nil, ErrRoute
	}
	plan.Start = p.clock() + int64(lead)
	pacer := NewPacer(p.clock, false)
	timer := time.NewTimer(time.Hour)
	var allocated uint64
	var began int64
	for i := range plan.Total() {
		if p.stopped.Err() != nil {
			break
		}
		if i == plan.Warmup {
			allocated, began = mallocs(), p.clock()
		}
		due := plan.Start + i*plan.Period
		if plan.Period == 0 {
			due = p.clock()
		}
		if i >= plan.Warmup && p.clock() > due+plan.Period/10 && plan.Period > 0 {
			s.Delayed++
		}
		pacer.Until(due)
		timer.Reset(p.assignment.Timeout)
		waiting.Store(i)
		t1 := p.clock()
		putHeader(payload, i, t1-plan.Start)
		err := p.end.publish(payload)
		t2 := p.clock()
		at, ok := int64(0), false
		select {
		case at = <-came:
			ok = true
		case <-timer.C:
			if !waiting.CompareAndSwap(i, -1) {
				at, ok = <-came, true
			}
		case <-p.stopped.Done():
		}
		if i < plan.Warmup {
			continue
		}
		s.Sent++
		if err != nil {
			s.fail(err)
		}
		s.Cost.Add(t2 - t1)
		if plan.Period > 0 {
			s.Lag.Add(t1 - due)
		}
		s.times.keep(columnSend, i-plan.Warmup, t1-plan.Start)
		s.times.keep(columnReturn, i-plan.Warmup, t2-plan.Start)
		if !ok {
			s.Failures++
			s.Kinds["timeout"]++
			s.Penalised.Add(int64(p.assignment.Timeout))
			continue
		}
		s.times.keep(columnReceive, i-plan.Warmup, at-plan.Start)
		s.Peaks.add(i-plan.Warmup, plan.Count, at-t1)
		s.Latency.Add(at - t1)
		s.Penalised.Add(at - t1)
		s.Schedule.Add(at - due)
	}
	s.LateReplies = late.Load()
	s.Allocs = float64(mallocs()-allocated) / float64(plan.Count)
	s.Seconds = float64(p.clock()-began) / 1e9
	return s, nil
}

// Floor is what the harness itself costs: a run over a transport that calls the
// subscribers at once.
func Floor(plan Plan, payload, subscribers int) (*Sent, []Received) {
	plan.Start = now() + int64(time.Millisecond)
	trackers := make([]*Tracker, subscribers)
	for i := range trackers {
		trackers[i] = NewTracker(plan)
	}
	sent := publishRun(now, plan, make([]byte, payload), func(b []byte) error {
		for _, t := range trackers {
			t.Receive(now(), b)
		}
		return nil
	}, nil)
	var list []Received
	for _, t := range trackers {
		list = append(list, t.Result())
	}
	return sent, list
}
