package harness

import "time"

// BulkTimeout is how long a call may take beside bulk.
const BulkTimeout = 10 * time.Second

// Contention gathers what bulk and high calls did to each other, by rounds.
// The zero value is empty.
type Contention struct{ cells map[*Cell]*contention }

type contention struct {
	rate, share, longest, fifo, p50, p99 []float64
	inversions                           int64
}

// Add takes a round: high calls alone, bulk alone, both over one shared
// connection (nil if there was none), and the arrangements by their cases.
func (t *Contention) Add(idle, alone, fifo *Run, runs map[*Cell]*Run) {
	if t.cells == nil {
		t.cells = map[*Cell]*contention{}
	}
	quiet := idle.Sent.Latency
	for cell, run := range runs {
		if cell == nil || run == nil || run.Sent.Bulk == nil {
			continue
		}
		x := t.cells[cell]
		if x == nil {
			x = &contention{}
			t.cells[cell] = x
		}
		busy := run.Sent.Latency
		x.rate = append(x.rate, run.Sent.Bulk.MiB)
		x.longest = append(x.longest, run.Sent.Bulk.Longest)
		if alone.Sent.Bulk != nil && alone.Sent.Bulk.MiB > 0 {
			x.share = append(x.share, run.Sent.Bulk.MiB/alone.Sent.Bulk.MiB)
		}
		if fifo != nil && fifo.Sent.Latency.Mean() > 0 {
			x.fifo = append(x.fifo, busy.Mean()/fifo.Sent.Latency.Mean())
		}
		for _, q := range []struct {
			at   float64
			list *[]float64
		}{{50, &x.p50}, {99, &x.p99}} {
			if base := quiet.histogram.ValueAtPercentile(q.at); base > 0 {
				*q.list = append(*q.list, float64(busy.histogram.ValueAtPercentile(q.at))/float64(base))
			}
		}
		if run.Gateway != nil {
			x.inversions += run.Gateway.Inversions
		}
	}
}

// Finish writes the medians of the rounds so far into the cases.
func (t *Contention) Finish() {
	for cell, x := range t.cells {
		cell.Bulk = &BulkFigures{
			MiB: median(x.rate), Share: median(x.share), Longest: median(x.longest), Inversions: x.inversions,
			FifoRatio: median(x.fifo), IdleP50Ratio: median(x.p50), IdleP99Ratio: median(x.p99),
		}
	}
}
