package harness

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The range of the histograms, in nanoseconds; what is outside counts at its
// edge, but the smallest and largest are exact.
const (
	lowest  = int64(time.Microsecond) / 10
	highest = int64(60 * time.Second)
	figures = 3
)

// Distribution is the distribution of times, of all samples. It is for one
// goroutine. Make it with NewDistribution.
type Distribution struct {
	histogram   *hdrhistogram.Histogram
	count       int64
	min, max    int64
	sum, square float64
}

// NewDistribution returns an empty one.
func NewDistribution() *Distribution {
	return &Distribution{histogram: hdrhistogram.New(lowest, highest, figures), min: math.MaxInt64, max: math.MinInt64}
}

// Add counts one time in nanoseconds.
func (d *Distribution) Add(ns int64) {
	d.histogram.RecordValue(min(max(ns, lowest), highest)) // in range, so without error
	d.count++
	d.min, d.max = min(d.min, ns), max(d.max, ns)
	d.sum += float64(ns)
	d.square += float64(ns) * float64(ns)
}

// Merge adds what another one counted.
func (d *Distribution) Merge(o *Distribution) {
	if o == nil || o.count == 0 {
		return
	}
	d.histogram.Merge(o.histogram)
	d.count += o.count
	d.min, d.max = min(d.min, o.min), max(d.max, o.max)
	d.sum += o.sum
	d.square += o.square
}

// Count is the number of samples.
func (d *Distribution) Count() int64 { return d.count }

// Min returns the exact smallest time.
func (d *Distribution) Min() int64 { return d.min }

// Mean returns the mean in nanoseconds.
func (d *Distribution) Mean() float64 { return d.sum / float64(max(d.count, 1)) }

// Summary is a distribution in microseconds.
type Summary struct {
	Count  int64    `json:"count"`
	Min    float64  `json:"min"`
	Mean   float64  `json:"mean"`
	StdDev float64  `json:"stddev"`
	P50    float64  `json:"p50"`
	P90    float64  `json:"p90"`
	P95    float64  `json:"p95"`
	P99    *float64 `json:"p99,omitempty"`  // from 1,000 samples
	P999   *float64 `json:"p999,omitempty"` // from 10,000 samples
	Max    float64  `json:"max"`
}

// Summary returns the figures.
func (d *Distribution) Summary() Summary {
	if d.count == 0 {
		return Summary{}
	}
	at := func(p float64) float64 {
		return float64(min(max(d.histogram.ValueAtPercentile(p), d.min), d.max)) / 1000
	}
	mean := d.Mean()
	s := Summary{
		Count: d.count, Min: float64(d.min) / 1000, Max: float64(d.max) / 1000, Mean: mean / 1000,
		StdDev: math.Sqrt(max(0, d.square/float64(d.count)-mean*mean)) / 1000,
		P50:    at(50), P90: at(90), P95: at(95),
	}
	if d.count >= 1000 {
		v := at(99)
		s.P99 = &v
	}
	if d.count >= 10_000 {
		v := at(99.9)
		s.P999 = &v
	}
	return s
}

type distributionJSON struct {
	Count     int64   `json:"count"`
	Min       int64   `json:"min"`
	Max       int64   `json:"max"`
	Sum       float64 `json:"sum"`
	Square    float64 `json:"square"`
	Histogram string  `json:"histogram"` // compressed, base64
}

// Histogram returns the histogram in the compressed form of HdrHistogram, in base64.
func (d *Distribution) Histogram() string {
	b, err := d.histogram.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return ""
	}
	return string(b) // is base64 already
}

// MarshalJSON writes what another process needs to merge it.
func (d *Distribution) MarshalJSON() ([]byte, error) {
	if d.count == 0 {
		return []byte(`{"count":0}`), nil
	}
	return json.Marshal(distributionJSON{d.count, d.min, d.max, d.sum, d.square, d.Histogram()})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (d *Distribution) UnmarshalJSON(text []byte) error {
	var j distributionJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	*d = *NewDistribution()
	if j.Count == 0 {
		return nil
	}
	h, err := hdrhistogram.Decode([]byte(j.Histogram))
	if err != nil {
		return err
	}
	d.histogram, d.count, d.min, d.max, d.sum, d.square = h, j.Count, j.Min, j.Max, j.Sum, j.Square
	return nil
}

// packed returns numbers as base64, for the protocol between processes.
func packed(list []int64) string {
	b := make([]byte, 0, 8*len(list))
	for _, v := range list {
		for shift := range 8 {
			b = append(b, byte(v>>(8*shift)))
		}
	}
	return base64.StdEncoding.EncodeToString(b)
}

// unpacked is the reverse of packed.
func unpacked(text string) []int64 {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	list := make([]int64, len(b)/8)
	for i := range list {
		for shift := range 8 {
			list[i] |= int64(b[8*i+shift]) << (8 * shift)
		}
	}
	return list
}
