package harness

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestSamplesOfTracker has a time for each sequence that came, and none for others.
func TestSamplesOfTracker(t *testing.T) {
	p := plan
	p.WantSamples = true
	f := fake{delay: 7 * us, lost: []int64{10, 500}, twice: []int64{600}}
	times := f.tracker(p).times
	if len(times) != 2000 {
		t.Fatalf("%d times, want 2000", len(times))
	}
	for i, at := range times {
		sequence := int64(i) + p.Warmup
		want := sequence*p.Period + 7*us
		if slices.Contains(f.lost, sequence) {
			want = noTime
		}
		if at != want {
			t.Fatalf("sequence %d came at %d, want %d", sequence, at, want)
		}
	}
	if f.tracker(plan).times != nil {
		t.Error("samples that nobody wanted")
	}
}

// TestSampleFile runs over links within the process: the file has what the
// figures are made of.
func TestSampleFile(t *testing.T) {
	l, err := NewLab("inproc", TopologyProcess, "")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w := Workload{Payload: 64, Period: 20 * time.Microsecond, Count: sampleChunk + 50, Warmup: 20, Subscribers: 3, Processes: 2, Depth: 1 << 15, Policy: "drop-oldest", Timeout: 1e9}
	w.Call.InFlight, w.Reply = 3, 64
	for _, c := range []struct {
		name, track string
		run         func(context.Context, Workload, bool) (*Run, error)
		send, done  int // columns
		rows        int64
	}{
		{"event", "event", l.Event, 5, 7, 3 * w.Count}, {"trip", "event", l.Trip, 5, 7, w.Count}, {"call", "control", l.Call, 4, 5, w.Count},
	} {
		file := filepath.Join(t.TempDir(), "samples.csv")
		s := &Session{Report: &Report{}}
		if s.samples, err = createSamples(file, c.track); err != nil {
			t.Fatal(err)
		}
		run, err := c.run(context.Background(), s.Sampled(newCell("a case, with a comma", &w), w), false)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if err := s.samples.close(); err != nil {
			t.Fatal(err)
		}
		rows := readCSV(t, file)
		if got := int64(len(rows) - 1); got != c.rows {
			t.Errorf("%s: %d rows, want %d", c.name, got, c.rows)
		}
		d := NewDistribution()
		next := map[string]int64{} // sequence, by subscriber
		for i, row := range rows[1:] {
			subscriber := ""
			if c.track == "event" {
				subscriber = row[2]
			}
			sequence := number(t, row[c.send-2])
			if want := w.Warmup + next[subscriber]; sequence != want || number(t, row[c.send-1]) != want*w.Period.Nanoseconds() {
				t.Fatalf("%s: row %d is %q, want sequence %d", c.name, i, row, want)
			}
			next[subscriber]++
			if row[0] != "a case, with a comma" || row[1] != "1" {
				t.Fatalf("%s: row %d is %q", c.name, i, row)
			}
			if row[c.done] != "" {
				d.Add(number(t, row[c.done]) - number(t, row[c.send]))
			}
		}
		want := run.latency()
		if d.count != want.count || d.min != want.min || d.max != want.max || d.sum != want.sum {
			t.Errorf("%s: %d samples, %d to %d ns, sum %.0f; the figures have %d, %d to %d, %.0f",
				c.name, d.count, d.min, d.max, d.sum, want.count, want.min, want.max, want.sum)
		}
		if got := slices.Max(run.Peaks); got != want.max {
			t.Errorf("%s: the highest peak is %d, the largest latency %d", c.name, got, want.max)
		}
	}
}

// TestSampleRequests refuses what is not there.
func TestSampleRequests(t *testing.T) {
	p := &peer{assignment: &Assignment{Role: roleSubscribe}, seats: []*seat{{tracker: NewTracker(Plan{Count: 10, WantSamples: true})}}}
	for _, c := range []struct {
		ask sampleRequest
		ok  bool
	}{
		{sampleRequest{columnReceive, 0, 0, 10}, true},
		{sampleRequest{columnReceive, 0, 10, 0}, true},
		{sampleRequest{columnReceive, 0, 5, 6}, false},
		{sampleRequest{columnReceive, 0, -1, 2}, false},
		{sampleRequest{columnReceive, 0, 1 << 62, 1 << 62}, false},
		{sampleRequest{columnReceive, 1, 0, 1}, false},
		{sampleRequest{columnReceive, -1, 0, 1}, false},
		{sampleRequest{columnSend, 0, 0, 1}, false},
	} {
		if _, err := p.samples(c.ask); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.ask, err)
		}
	}
}

// TestPeaks finds two stalls where they were, and travels.
func TestPeaks(t *testing.T) {
	p := Plan{Start: 1000 * ms, Period: ms, Warmup: 10, Count: 4000}
	k := (&fake{delay: 10 * us, stall: func(sent int64) int64 {
		switch sent - p.Start {
		case 10 * ms, 2013 * ms:
			return 300 * us
		}
		return 0
	}}).tracker(p).peaks
	text, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	var back, all peaks
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	all.merge(back)
	all.merge(make(peaks, len(back)))
	if len(all) != maxPeaks {
		t.Fatalf("%d peaks, want %d", len(all), maxPeaks)
	}
	for i, ns := range all {
		want := 10 * us
		if i == 0 || i == 500 {
			want = 310 * us
		}
		if ns != want {
			t.Errorf("peak %d is %d, want %d", i, ns, want)
		}
	}
}

func readCSV(t *testing.T, file string) [][]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
