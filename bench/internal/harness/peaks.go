package harness

import "fmt"

// maxPeaks is into how many parts a run is divided at most.
const maxPeaks = 1000

// peaks is the largest latency of each of equal parts of a run in nanoseconds, 0
// where nothing came: what a picture of the run needs, whatever its length.
type peaks []int64

func newPeaks(count int64) peaks { return make(peaks, min(count, maxPeaks)) }

// add takes the latency of one of count measured messages.
func (p peaks) add(i, count, ns int64) {
	part := &p[i*int64(len(p))/count]
	*part = max(*part, ns)
}

// merge takes what others saw in the same run.
func (p *peaks) merge(o peaks) {
	if len(*p) == 0 {
		*p = make(peaks, len(o))
	}
	for i := range min(len(*p), len(o)) {
		(*p)[i] = max((*p)[i], o[i])
	}
}

// microseconds returns them as a report has them.
func (p peaks) microseconds() []float64 {
	list := make([]float64, len(p))
	for i, ns := range p {
		list[i] = float64(ns) / 1000
	}
	return list
}

// MarshalText packs them, for the protocol between processes.
func (p peaks) MarshalText() ([]byte, error) { return []byte(packed(p)), nil }

// UnmarshalText is the reverse of MarshalText.
func (p *peaks) UnmarshalText(text []byte) error {
	list := unpacked(string(text))
	if len(list) > maxPeaks {
		return fmt.Errorf("%d peaks, allowed are 0 to %d", len(list), maxPeaks)
	}
	*p = list
	return nil
}
