package harness

import (
	"bytes"
	"encoding/xml"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// pageOf returns the page of a report of two cases, the second of which nothing
// was measured of.
func pageOf(t *testing.T, name string) string {
	t.Helper()
	w := &Workload{Payload: 8, Period: 1e6, Count: plan.Count, Warmup: plan.Warmup, Subscribers: 2}
	c := newCell(name, w)
	run := &Run{Sent: newSent()}
	for i, f := range []fake{{delay: 123 * us}, {delay: 456 * us, lost: []int64{700, 701}}} {
		tracker := f.tracker(plan)
		r := tracker.Result()
		r.Subscriber = i
		run.Received = append(run.Received, r)
		run.Peaks = tracker.peaks
	}
	c.add(w, run, nil, NewDistribution())
	r := &Report{
		Track: "event", Mode: "oneway", Topology: TopologySameHost, Host: []*Host{{CPU: "a processor"}}, Transport: map[string]any{"kind": "udp"},
		Workload: map[string]any{"payload_size": []int{8}}, Resources: map[string]any{}, Results: []*Cell{c, newCell("not come to", w)}, Reference: referencesOf("event"),
	}
	r.finish(nil, nil, false)
	text, err := r.html([]string{"a change"})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPage has what was measured, in a form that any reader of XML understands,
// and refers to nothing outside.
func TestPage(t *testing.T) {
	text := pageOf(t, `udp <script>alert("x")</script> & N=2`)
	d := xml.NewDecoder(strings.NewReader(text))
	count := map[string]int{}
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if s, ok := token.(xml.StartElement); ok {
			count[s.Name.Local]++
			for _, a := range s.Attr {
				if a.Name.Local == "src" || a.Name.Local == "href" || strings.Contains(a.Value, "://") {
					t.Errorf("%s refers to %s", s.Name.Local, a.Value)
				}
			}
		}
	}
	if count["svg"] != 3 || count["script"] != 0 || count["table"] != 4 {
		t.Errorf("plots, scripts and tables: %d, %d, %d; want 3, 0, 4", count["svg"], count["script"], count["table"])
	}
	for _, want := range []string{
		"<td>drops</td>", "2 of 4000 dropped", "<li>a change</li>", "a processor", "payload_size", "N=512", `class="lossy"><title>subscriber 1: mean 456.`,
		`class="whole"><title>subscriber 0: mean 123.0 us`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(text, "ZgotmplZ") || bytes.Contains([]byte(text), []byte("NaN")) {
		t.Error("the page has what cannot be shown")
	}
}

// TestPlots draws points where the values are.
func TestPlots(t *testing.T) {
	paths := regexp.MustCompile(` d="([^"]*)"`).FindAllStringSubmatch(pageOf(t, "a case"), -1)
	if len(paths) != 3 {
		t.Fatalf("%d curves, want 3: latency, from due, through the run", len(paths))
	}
	across, upward := decades(123, 456, plotLeft, plotWidth-plotRight), decades(456, 456, plotHeight-plotBottom, plotTop)
	near(t, "the axis begins at", across.least, 100, 1e-9)
	near(t, "the axis ends at", across.most, 1000, 1e-9)
	points := regexp.MustCompile(`[ML]([-0-9.]+) ([-0-9.]+)`)
	half := 0
	for _, m := range points.FindAllStringSubmatch(paths[0][1], -1) {
		x, _ := strconv.ParseFloat(m[1], 64)
		if want := across.at(456); x > want+0.2 || x < across.at(123)-0.2 {
			t.Fatalf("a point of the distribution is at %g", x)
		}
		if x < across.at(200) {
			half++
		}
	}
	near(t, "points of the quicker subscriber", float64(half), 100, 2)
	run := points.FindAllStringSubmatch(paths[2][1], -1)
	if len(run) != maxPeaks-1 || strings.Count(paths[2][1], "M") != 2 {
		t.Errorf("%d points and %d lines, want %d and 2 about the two that nothing is known of", len(run), strings.Count(paths[2][1], "M"), maxPeaks-1)
	}
	for _, m := range run {
		y, _ := strconv.ParseFloat(m[2], 64)
		near(t, "the largest latency is drawn", y, upward.at(456), 0.2)
	}
}
