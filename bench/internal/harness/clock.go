// Package harness is what the benchmarks of the transports have in common:
// clocks and pacing, sequences and distributions, processes that are the ends of
// a link, reports and what is made of them.
//
// The meaning of the times of one message:
//
//	t0  when it was to be sent: start + i × period
//	t1  just before the publish call
//	t2  the publish call returned
//	t3  the subscriber's handler was entered
//
// Transport latency is t3-t1, schedule latency t3-t0, publish cost t2-t1 and
// schedule lag t1-t0. The sender never waits for an answer when it is paced, so
// that a stall shows in the schedule latency of all messages that it delayed.
package harness

import (
	"runtime"
	"time"
)

// Clock reads a time in nanoseconds.
type Clock func() int64

// Clocks by their name in a report.
const (
	Monotonic = "monotonic" // shared by the processes of one host
	Realtime  = "realtime"  // for one-way times between hosts
)

// ClockNamed returns a clock.
func ClockNamed(name string) Clock {
	if name == Realtime {
		return func() int64 { return time.Now().UnixNano() }
	}
	return now
}

// ClockInfo is what a report says about the clock.
type ClockInfo struct {
	Name         string  `json:"name"`
	Source       string  `json:"source"`
	ResolutionNS int64   `json:"resolution_ns"` // the smallest step seen
	CostNS       float64 `json:"cost_ns"`       // of one reading
	Pacing       string  `json:"pacing"`
}

// Describe measures a clock.
func Describe(name string) ClockInfo {
	clock := ClockNamed(name)
	const readings = 10_000
	info := ClockInfo{Name: name, Source: clockSource(), Pacing: pacing}
	first, last := clock(), int64(0)
	last = first
	for range readings {
		t := clock()
		if step := t - last; step > 0 && (info.ResolutionNS == 0 || step < info.ResolutionNS) {
			info.ResolutionNS = step
		}
		last = t
	}
	info.CostNS = float64(last-first) / readings
	return info
}

// Pacer waits for absolute times. Make it with NewPacer on the goroutine that
// waits.
type Pacer struct {
	clock  Clock
	locked bool
}

// NewPacer makes a pacer, and locks the goroutine to its thread if told so. A
// goroutine that is to wait for answers must not be locked: handing its thread
// over would be measured with them.
func NewPacer(clock Clock, lock bool) *Pacer {
	if lock {
		runtime.LockOSThread()
		preciseTimers()
	}
	return &Pacer{clock, lock}
}

// Until waits until the clock reads t, if it does not already.
func (p *Pacer) Until(t int64) {
	for {
		left := t - p.clock()
		if left <= 0 {
			return
		}
		sleep(time.Duration(left))
	}
}

// Close gives the thread back.
func (p *Pacer) Close() {
	if p.locked {
		runtime.UnlockOSThread()
	}
}
