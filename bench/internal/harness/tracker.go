package harness

import "encoding/binary"

// Every message begins with eight bytes: the sequence in 16 bits and the time t1
// since the start in 48 bits of nanoseconds, three days. The rest of the
// sequence follows from the time. All ones is a probe, sent before the start to
// see that the route is there.
const (
	headerSize = 8
	probe      = ^uint64(0)
	stampMask  = 1<<48 - 1
)

// MinPayload is the shortest payload in bytes.
const MinPayload = headerSize

func putHeader(b []byte, sequence, sinceStart int64) {
	binary.LittleEndian.PutUint64(b, uint64(sequence)<<48|uint64(sinceStart)&stampMask)
}

func putProbe(b []byte) { binary.LittleEndian.PutUint64(b, probe) }

// Plan is what of a run both ends know.
type Plan struct {
	Start       int64 `json:"start"`  // when sequence 0 is to be sent, in nanoseconds of the clock
	Offset      int64 `json:"offset"` // of the receivers' clock: their times are corrected by it
	Period      int64 `json:"period"` // nanoseconds, 0 as fast as possible
	Warmup      int64 `json:"warmup"` // sequences 0 to Warmup-1 are not measured
	Count       int64 `json:"count"`  // those after them are
	WantSkew    bool  `json:"skew"`
	WantSamples bool  `json:"samples"`
}

// Total is the number of messages.
func (p *Plan) Total() int64 { return p.Warmup + p.Count }

// Gap is a run of sequences that did not come, counted from the first measured one.
type Gap struct {
	First int64 `json:"first"`
	Count int64 `json:"count"`
}

// maxGaps is how many gaps a report lists.
const maxGaps = 100

// segments are the parts of a run whose mean latencies show whether queues grow.
const segments = 10

// Tracker accounts for what one subscriber receives. It is for one goroutine at
// a time.
type Tracker struct {
	plan     Plan
	seen     []uint64 // a bit for each measured sequence
	largest  int64
	latency  *Distribution
	schedule *Distribution
	sums     [segments]float64
	counts   [segments]int64
	probes   int64
	draining bool
	skew     *skew
	peaks    peaks
	first    int64 // when a measured message came
	last     int64
	times    []int64 // by measured sequence, since the start; nil unless wanted
	r        Received
}

// skew keeps when a sequence came to the first and to the last subscriber of a process.
type skew struct{ first, last []int64 }

func (s *skew) add(i, t int64) {
	if s.first[i] == 0 || t < s.first[i] {
		s.first[i] = t
	}
	s.last[i] = max(s.last[i], t)
}

// Received is what one subscriber received.
type Received struct {
	Subscriber int           `json:"subscriber"`
	Received   int64         `json:"received"` // distinct measured sequences
	Dropped    int64         `json:"dropped"`
	Duplicates int64         `json:"duplicates"`
	OutOfOrder int64         `json:"out_of_order"`
	Late       int64         `json:"late"` // after the drain began
	Warmup     int64         `json:"warmup"`
	Negative   int64         `json:"negative"` // latencies below zero
	Foreign    int64         `json:"foreign"`  // not of this run
	Gaps       []Gap         `json:"gaps,omitempty"`
	MoreGaps   int64         `json:"more_gaps,omitempty"`
	Latency    *Distribution `json:"latency"`  // t3-t1
	Schedule   *Distribution `json:"schedule"` // t3-t0
	Segments   []float64     `json:"segments"` // mean latency by tenths of the run, µs
	Seconds    float64       `json:"seconds"`  // between the first and the last one
}

// NewTracker returns a tracker for a plan.
func NewTracker(p Plan) *Tracker {
	t := &Tracker{
		plan: p, seen: make([]uint64, (p.Count+63)/64), largest: -1,
		latency: NewDistribution(), schedule: NewDistribution(), peaks: newPeaks(p.Count),
	}
	if p.WantSamples {
		t.times = newTimes(p.Count)
	}
	return t
}

// quick is a period below which a sender that cannot keep it is late by more
// messages than the low bits of a sequence tell, within a step of a search.
const quick = 20_000

// sequenceOf restores the sequence from its low bits: near to what the send time
// says where the run is paced, else, or where it is quick, near to the largest
// one seen.
func (t *Tracker) sequenceOf(low, sinceStart int64) int64 {
	near := t.largest + 1
	if t.plan.Period >= quick {
		near = sinceStart / t.plan.Period
	}
	const span = 1 << 16
	return near + ((low-near)%span+span+span/2)%span - span/2
}

// Receive accounts for a message whose handler was entered at a time. It reports
// whether the message was one of the run.
func (t *Tracker) Receive(at int64, payload []byte) bool {
	at -= t.plan.Offset
	if len(payload) < headerSize {
		t.r.Foreign++
		return false
	}
	head := binary.LittleEndian.Uint64(payload)
	if head == probe {
		t.probes++
		return false
	}
	sent := int64(head & stampMask)
	sequence := t.sequenceOf(int64(head>>48), sent)
	if sequence < 0 || sequence >= t.plan.Total() {
		t.r.Foreign++
		return false
	}
	if sequence < t.largest {
		t.r.OutOfOrder++
	}
	t.largest = max(t.largest, sequence)
	i := sequence - t.plan.Warmup
	if i < 0 {
		t.r.Warmup++
		return true
	}
	if t.seen[i/64]&(1<<(i%64)) != 0 {
		t.r.Duplicates++
		return true
	}
	t.seen[i/64] |= 1 << (i % 64)
	if t.r.Received == 0 {
		t.first = at
	}
	t.last = at
	t.r.Received++
	if t.draining {
		t.r.Late++
	}
	latency := at - t.plan.Start - sent
	if latency < 0 {
		t.r.Negative++
	}
	t.latency.Add(latency)
	if t.plan.Period > 0 {
		t.schedule.Add(at - t.plan.Start - sequence*t.plan.Period)
	}
	segment := i * segments / t.plan.Count
	t.sums[segment] += float64(latency)
	t.counts[segment]++
	t.peaks.add(i, t.plan.Count, latency)
	if t.times != nil {
		t.times[i] = at - t.plan.Start
	}
	if t.skew != nil {
		t.skew.add(i, at-t.plan.Start)
	}
	return true
}

// Complete reports whether every measured sequence came.
func (t *Tracker) Complete() bool { return t.r.Received == t.plan.Count }

// Drain says that the last message was sent: what comes now is late.
func (t *Tracker) Drain() { t.draining = true }

// Result returns the account.
func (t *Tracker) Result() Received {
	r := t.r
	r.Latency, r.Schedule = t.latency, t.schedule
	r.Dropped = t.plan.Count - r.Received
	r.Seconds = float64(t.last-t.first) / 1e9
	for i := range t.sums {
		mean := 0.0
		if t.counts[i] > 0 {
			mean = t.sums[i] / float64(t.counts[i]) / 1000
		}
		r.Segments = append(r.Segments, mean)
	}
	run := int64(0)
	for i := int64(0); i <= t.plan.Count; i++ {
		if i < t.plan.Count && t.seen[i/64]&(1<<(i%64)) == 0 {
			run++
			continue
		}
		if run > 0 {
			if len(r.Gaps) < maxGaps {
				r.Gaps = append(r.Gaps, Gap{i - run, run})
			} else {
				r.MoreGaps++
			}
			run = 0
		}
	}
	return r
}

// queuePeriods is how many periods of latency, or of its growth over a run, are
// the length of a queue.
const queuePeriods = 10

// Saturated reports whether latencies tell of a queue, not of a link: they are
// many periods long, or grow through the run by as much as that. means are by
// tenths of the run in µs, zero where nothing came.
func Saturated(means []float64, periodNS int64) (growth float64, yes bool) {
	var list []float64
	for _, m := range means {
		if m != 0 {
			list = append(list, m)
		}
	}
	if len(list) < segments/2 || periodNS == 0 {
		return 0, false
	}
	up, pairs, sum := 0, 0, 0.0
	for i := range list {
		sum += list[i]
		for _, later := range list[i+1:] {
			pairs++
			if later > list[i] {
				up++
			} else if later < list[i] {
				up--
			}
		}
	}
	growth = list[len(list)-1] - list[0]
	queue := queuePeriods * float64(periodNS) / 1000
	rising := float64(up) >= 0.7*float64(pairs) && growth >= queue/2
	return growth, rising || sum/float64(len(list)) >= queue
}
