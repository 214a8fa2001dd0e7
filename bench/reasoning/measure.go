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

	// The figure that the row is judged by: the ratio, or another with its unit;
	// low and high are the quartiles of the rounds.
	Unit   string  `json:"unit"`
	Figure float64 `json:"figure"`
	Low    float64 `json:"figure_low"`
	High   float64 `json:"figure_high"`

	Clock       string  `json:"clock"` // "cpu" or "wall"
	P95         float64 `json:"p95_ns,omitempty"`
	PerVariable float64 `json:"bytes_per_variable,omitempty"`
	Gate        *gate   `json:"gate,omitempty"`
}

// results is one run of the command with one number of processors.
type results struct {
	MutexNS float64     `json:"native_mutex_ns"`
	Rows    []result    `json:"rows"`
	Env     environment `json:"env"`

	More []*results `json:"more,omitempty"` // with the other numbers that -cpu gave
}

// reading is what one round tells about a row, per operation.
type reading struct {
	operations  int64
	ns          float64
	p95         float64
	allocs      float64
	bytes       float64
	perVariable float64
}

// prepared is a row that runs, with what was measured so far.
type prepared struct {
	row
	*work
	units      int // in one round
	operations int64
	readings   []reading
	ratios     []float64
}

// mutexShare is how long the mutex is measured next to a row: the unit needs
// less time than a row, because it is measured so many times.
const mutexShare = 5

// warmUpShare is the part of a round that a row runs before it is timed.
const warmUpShare = 20

// maxUnits keeps the number of units an int where that has 32 bits.
const maxUnits = 1 << 30

// measure runs all rows in turn, so many rounds, each row about the time given.
// Slow spells of the machine so hit all rows alike. Beside each row, before and
// after it, runs the native mutex, which the row's time is divided by.
func measure(rows []row, rounds int, s size) (*results, error) {
	mutex, err := prepareMutex(s.each / mutexShare)
	if err != nil {
		return nil, err
	}
	list := make([]*prepared, len(rows))
	for i, r := range rows {
		if list[i], err = prepare(r, s.each); err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
	}
	var wall, busy time.Duration
	var units, parallel []float64
	for range rounds {
		runtime.GC()
		parallel = append(parallel, parallelism())
		before, err := mutex.time()
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			began, busyFrom := time.Now(), now()
			r, err := p.sample(s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			if !p.wall && !p.allocates { // the collector works beside those that allocate
				wall += time.Since(began)
				busy += now() - busyFrom
			}
			after, err := mutex.time()
			if err != nil {
				return nil, err
			}
			unit := (before.by(p.wall) + after.by(p.wall)) / 2
			p.readings, p.ratios = append(p.readings, *r), append(p.ratios, r.ns/unit)
			before = after
			units = append(units, after.cpu)
		}
		for _, p := range list {
			if p.end != nil {
				p.end()
			}
		}
	}
	out := &results{MutexNS: rounded(median(units), 3), Env: thisMachine()}
	out.Env.Rounds, out.Env.RoundMS, out.Env.Quick = rounds, milliseconds(s.each), s.quick
	if clockName == "cpu" {
		out.Env.Parallel = rounded(median(parallel), 2)
	}
	if wall > 0 {
		out.Env.CPUShare = rounded(float64(busy)/float64(wall), 2)
	}
	for _, p := range append(list, mutex) {
		if err := p.verify(); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	for _, p := range list {
		r := p.result()
		r.Gate = gateOf(p.row, &out.Env)
		out.Rows = append(out.Rows, r)
	}
	return out, nil
}

// prepare opens a row, warms it up, and finds out how many units take the time
// given.
func prepare(r row, each time.Duration) (*prepared, error) {
	p := &prepared{row: r, units: 1}
	if r.fresh != nil {
		return p, nil
	}
	if err := p.reopen(); err != nil {
		return nil, err
	}
	each *= time.Duration(max(1, r.longer))
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

// reopen verifies what a row counted and opens it anew, as each round does:
// where in memory a base is, and how its index scatters names, makes some rows
// faster or slower for as long as the base lives.
func (p *prepared) reopen() error {
	if err := p.verify(); err != nil {
		return err
	}
	w, err := p.open()
	p.work, p.operations = w, 0
	return err
}

// verify returns an error unless the row's counter is what it should be.
func (p *prepared) verify() error {
	if p.work == nil {
		return nil
	}
	if err := p.check(p.operations); err != nil {
		return fmt.Errorf("after %d operations %w", p.operations, err)
	}
	return nil
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

// spent is nanoseconds per operation by both clocks.
type spent struct{ cpu, wall float64 }

func (s spent) by(wall bool) float64 {
	if wall {
		return s.wall
	}
	return s.cpu
}

// time runs one round.
func (p *prepared) time() (spent, error) {
	began, busyFrom := time.Now(), now()
	err := p.do(p.units)
	busy, wall := now()-busyFrom, time.Since(began)
	n := float64(p.units) * float64(p.per)
	return spent{float64(busy) / n, float64(wall) / n}, err
}

// sample measures a row once.
func (p *prepared) sample(s size) (*reading, error) {
	if p.fresh != nil {
		return p.fresh(s)
	}
	if err := p.reopen(); err != nil {
		return nil, err
	}
	if err := p.do(max(1, p.units/warmUpShare)); err != nil {
		return nil, err
	}
	c := count()
	t, err := p.time()
	r := c.reading(p.units * p.per)
	r.ns = t.by(p.wall)
	return r, err
}

// result takes the medians of the rounds.
func (p *prepared) result() result {
	of := func(f func(reading) float64) []float64 {
		var list []float64
		for _, r := range p.readings {
			list = append(list, f(r))
		}
		return list
	}
	ns := of(func(r reading) float64 { return r.ns })
	perVariable := of(func(r reading) float64 { return r.perVariable })
	out := result{
		Name: p.name, NS: rounded(median(ns), 4), Ratio: rounded(median(p.ratios), 4),
		Allocs:      rounded(median(of(func(r reading) float64 { return r.allocs })), 3),
		Bytes:       rounded(median(of(func(r reading) float64 { return r.bytes })), 2),
		P95:         rounded(median(of(func(r reading) float64 { return r.p95 })), 0),
		PerVariable: rounded(median(perVariable), 2),
		Unit:        p.unit, Clock: clockName,
	}
	if p.wall {
		out.Clock = "wall"
	}
	figures := p.ratios
	switch p.unit {
	case "":
		out.Unit = unitMutex
	case unitMicros:
		figures = of(func(r reading) float64 { return r.ns / 1e3 })
	case unitBytes:
		figures = perVariable
	}
	out.Figure = rounded(median(figures), 4)
	out.Low, out.High = rounded(quantile(figures, 0.25), 4), rounded(quantile(figures, 0.75), 4)
	return out
}

func median(of []float64) float64 { return quantile(of, 0.5) }

// quantile returns the value below which a part of the values lies, between two
// of them in proportion.
func quantile(of []float64, part float64) float64 {
	if len(of) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(of))
	at := part * float64(len(s)-1)
	i := int(at)
	if i+1 >= len(s) {
		return s[len(s)-1]
	}
	return s[i] + (s[i+1]-s[i])*(at-float64(i))
}

func rounded(x float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(x*scale) / scale
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
