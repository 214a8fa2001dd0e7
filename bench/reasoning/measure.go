package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"
)

// result is what is known about a row in the end: medians over the rounds.
type result struct {
	Name   string  `json:"name"`
	NS     float64 `json:"ns_per_op"`
	Ratio  float64 `json:"ratio_to_mutex"`
	Allocs float64 `json:"allocs_per_op"`
	Bytes  float64 `json:"bytes_per_op"`
}

// results is one run of the command.
type results struct {
	MutexNS float64     `json:"native_mutex_ns"`
	Rows    []result    `json:"rows"`
	Env     environment `json:"env"`
}

// prepared is a row that runs, with what was measured so far.
type prepared struct {
	row
	*work
	units      int // in one round
	operations int64
	ns         []float64
	ratio      []float64
	allocs     []float64
	bytes      []float64
}

// mutexShare is how long the mutex is measured next to a row: the unit needs
// less time than a row, because it is measured so many times.
const mutexShare = 5

// maxUnits keeps the number of units an int where that has 32 bits.
const maxUnits = 1 << 30

// measure runs all rows in turn, so many rounds, each row about the time given.
// Slow spells of the machine so hit all rows alike. Beside each row, before and
// after it, runs the native mutex, which the row's time is divided by.
func measure(rows []row, rounds int, each time.Duration) (*results, error) {
	mutex, err := prepareMutex(each / mutexShare)
	if err != nil {
		return nil, err
	}
	list := make([]*prepared, len(rows))
	for i, r := range rows {
		if list[i], err = prepare(r, each); err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
	}
	var wall, busy time.Duration
	for range rounds {
		runtime.GC()
		began, busyFrom := time.Now(), now()
		before, err := mutex.time()
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			ns, err := p.sample()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			after, err := mutex.time()
			if err != nil {
				return nil, err
			}
			p.ratio = append(p.ratio, ns/((before+after)/2))
			before = after
		}
		wall += time.Since(began)
		busy += now() - busyFrom
	}
	out := &results{MutexNS: rounded(median(mutex.ns), 3), Env: thisMachine()}
	out.Env.Rounds, out.Env.RoundMS = rounds, milliseconds(each)
	out.Env.CPUShare = rounded(float64(busy)/float64(wall), 2)
	for _, p := range append(list, mutex) {
		if err := p.check(p.operations); err != nil {
			return nil, fmt.Errorf("%s: after %d operations %w", p.name, p.operations, err)
		}
	}
	for _, p := range list {
		out.Rows = append(out.Rows, result{
			Name: p.name, NS: rounded(median(p.ns), 4), Ratio: rounded(median(p.ratio), 4),
			Allocs: rounded(median(p.allocs), 3), Bytes: rounded(median(p.bytes), 2),
		})
	}
	return out, nil
}

// prepare opens a row, warms it up, and finds out how many units take the time
// given.
func prepare(r row, each time.Duration) (*prepared, error) {
	w, err := r.open()
	if err != nil {
		return nil, err
	}
	p := &prepared{row: r, work: w, units: 1}
	for {
		began := time.Now()
		if err := p.do(p.units); err != nil {
			return nil, err
		}
		if took := time.Since(began); took >= each/4 || p.units >= maxUnits/2 {
			p.units = max(1, int(min(float64(p.units)*float64(each)/float64(took), maxUnits)))
			return p, nil
		}
		p.units *= 2
	}
}

func prepareMutex(each time.Duration) (*prepared, error) {
	rows := plainRows()
	i := slices.IndexFunc(rows, func(r row) bool { return r.name == mutexRow })
	return prepare(rows[i], each)
}

func (p *prepared) do(units int) error {
	p.operations += int64(units) * int64(p.per)
	return p.run(units)
}

// time runs one round and returns the nanoseconds per operation.
func (p *prepared) time() (float64, error) {
	began := now()
	err := p.do(p.units)
	ns := float64(now()-began) / (float64(p.units) * float64(p.per))
	p.ns = append(p.ns, ns)
	return ns, err
}

// sample is time, and counts what is allocated meanwhile.
func (p *prepared) sample() (float64, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ns, err := p.time()
	runtime.ReadMemStats(&after)
	n := float64(p.units) * float64(p.per)
	p.allocs = append(p.allocs, float64(after.Mallocs-before.Mallocs)/n)
	p.bytes = append(p.bytes, float64(after.TotalAlloc-before.TotalAlloc)/n)
	return ns, err
}

func median(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(of))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

func rounded(x float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(x*scale) / scale
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
