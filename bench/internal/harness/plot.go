package harness

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The size of a plot and of what is around it, in pixels.
const (
	plotWidth  = 720
	plotHeight = 260
	plotLeft   = 70
	plotRight  = 30
	plotTop    = 10
	plotBottom = 45
)

// plot is a picture as the template needs it.
type plot struct {
	Title, X, Y    string // what is on the axes
	Width, Height  int
	Curves         []curve
	Boxes          []box
	Across, Upward []tick
	Left, Right    float64 // of the drawn area
	Top, Bottom    float64
}

// curve is a line through points.
type curve struct{ Name, Class, Path string }

// box is the distribution of one subscriber: a thin line from the smallest to the
// largest, a thick one from p50 to p95.
type box struct {
	X, Width           float64
	Min, P50, P95, Max float64
	Class, Note        string // Class is lossy where messages did not come
}

type tick struct {
	At    float64
	Label string
}

// axis maps values to pixels.
type axis struct {
	least, most float64
	from, to    float64
	log         bool
}

func (a *axis) at(v float64) float64 {
	v = min(max(v, a.least), a.most)
	share := (v - a.least) / (a.most - a.least)
	if a.log {
		share = math.Log(v/a.least) / math.Log(a.most/a.least)
	}
	return math.Round((a.from+share*(a.to-a.from))*10) / 10
}

// decades is an axis of whole powers of ten around values above zero.
func decades(least, most, from, to float64) *axis {
	least = math.Pow(10, math.Floor(math.Log10(max(least, 0.01))))
	most = math.Pow(10, math.Ceil(math.Log10(max(most, 0.01))))
	return &axis{least, max(most, 10*least), from, to, true}
}

func (a *axis) ticks() []tick {
	var list []tick
	if !a.log {
		for i := range 6 {
			v := a.least + (a.most-a.least)*float64(i)/5
			list = append(list, tick{a.at(v), strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)})
		}
		return list
	}
	for v := a.least; v <= a.most*1.001; v *= 10 {
		list = append(list, tick{a.at(v), strconv.FormatFloat(v, 'f', -1, 64)})
	}
	return list
}

// lines are the classes of curves, by their order.
var lines = []string{"one", "two", "three"}

func newPlot(title, x, y string) *plot {
	return &plot{
		Title: title, X: x, Y: y, Width: plotWidth, Height: plotHeight,
		Left: plotLeft, Right: plotWidth - plotRight, Top: plotTop, Bottom: plotHeight - plotBottom,
	}
}

func (p *plot) axes(across, upward *axis) { p.Across, p.Upward = across.ticks(), upward.ticks() }

// add draws a curve; points whose y is not a number are gaps.
func (p *plot) add(name string, across, upward *axis, x, y []float64) {
	var b strings.Builder
	move := true
	for i := range x {
		if math.IsNaN(y[i]) {
			move = true
			continue
		}
		word := byte('L')
		if move {
			word = 'M'
		}
		fmt.Fprintf(&b, "%c%g %g", word, across.at(x[i]), upward.at(y[i]))
		move = false
	}
	p.Curves = append(p.Curves, curve{name, lines[len(p.Curves)%len(lines)], b.String()})
}

// plotShares is the cumulative distribution of latencies, of all rounds.
func (c *Cell) plotShares() *plot {
	type one struct {
		name string
		d    *Distribution
	}
	var list []one
	least, most := math.Inf(1), 0.0
	for _, o := range []one{{"latency", c.pooled}, {"from due", c.schedule}, {"bare", c.bare}} {
		if o.d.count > 0 {
			list = append(list, o)
			least, most = min(least, float64(o.d.min)/1000), max(most, float64(o.d.max)/1000)
		}
	}
	if len(list) == 0 {
		return nil
	}
	p := newPlot("Share of messages that came within a time", "us", "%")
	across, upward := decades(least, most, p.Left, p.Right), &axis{0, 100, p.Bottom, p.Top, false}
	p.axes(across, upward)
	for _, o := range list {
		x, y := []float64{float64(o.d.min) / 1000}, []float64{0}
		for q := 0.5; q < 100; q += 0.5 {
			v := min(max(o.d.histogram.ValueAtPercentile(q), o.d.min), o.d.max)
			x, y = append(x, float64(v)/1000), append(y, q)
		}
		x, y = append(x, float64(o.d.max)/1000), append(y, 100)
		p.add(o.name, across, upward, x, y)
	}
	return p
}

// plotRun is the largest latencies through the last round.
func (c *Cell) plotRun() *plot {
	least, most := math.Inf(1), 0.0
	x, y := make([]float64, len(c.Peaks)), make([]float64, len(c.Peaks))
	for i, v := range c.Peaks {
		x[i], y[i] = float64(c.first)+float64(i)*float64(c.count)/float64(len(c.Peaks)), v
		if v <= 0 {
			y[i] = math.NaN() // nothing came
			continue
		}
		least, most = min(least, v), max(most, v)
	}
	if most == 0 {
		return nil
	}
	p := newPlot("Largest latency through the last round", "sequence", "us")
	across, upward := &axis{float64(c.first), float64(c.first + c.count), p.Left, p.Right, false}, decades(least, most, p.Bottom, p.Top)
	p.axes(across, upward)
	p.add("largest latency", across, upward, x, y)
	return p
}

// plotEach is the latencies of each subscriber of the last round.
func (c *Cell) plotEach() *plot {
	least, most := math.Inf(1), 0.0
	for _, s := range c.Each {
		if s.Latency.Count > 0 {
			least, most = min(least, s.Latency.Min), max(most, s.Latency.Max)
		}
	}
	if most == 0 {
		return nil
	}
	p := newPlot("Latency of each subscriber in the last round: least to largest, and p50 to p95", "subscriber", "us")
	n := float64(len(c.Each))
	across, upward := &axis{0, n, p.Left, p.Right, false}, decades(least, most, p.Bottom, p.Top)
	p.Upward = upward.ticks()
	every := max(1, len(c.Each)/16)
	for i, s := range c.Each {
		b := box{
			X: across.at(float64(i) + 0.5), Width: min(12, max(0.5, 0.6*(p.Right-p.Left)/n)), Class: "whole",
			Min: upward.at(s.Latency.Min), Max: upward.at(s.Latency.Max), P50: upward.at(s.Latency.P50), P95: upward.at(s.Latency.P95),
			Note: fmt.Sprintf("subscriber %d: mean %.1f us, p50 %.1f, p95 %.1f, max %.1f, received %d, dropped %d",
				s.Subscriber, s.Latency.Mean, s.Latency.P50, s.Latency.P95, s.Latency.Max, s.Received, s.Dropped),
		}
		if s.Dropped > 0 {
			b.Class = "lossy"
		}
		if i%every == 0 {
			p.Across = append(p.Across, tick{b.X, strconv.Itoa(s.Subscriber)})
		}
		if s.Latency.Count > 0 {
			p.Boxes = append(p.Boxes, b)
		}
	}
	return p
}
