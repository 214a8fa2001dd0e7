package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadReport refuses files that are no reports, before anything is measured.
func TestReadReport(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ text, want string }{
		{`{"schema":"bench/1","track":"event","mode":"oneway","results":[]}`, ""},
		{`{"schema":"bench/1","host":[{"cpu":"x"}],"results":[{"case":"a","rounds":null},{"case":"b","rounds":[{"mean":1}]}]}`, ""},
		{`{"schema":"bench/1","results":[null]}`, "result 0 is null"},
		{`{"schema":"bench/1","host":[null],"results":[]}`, "host 0 is null"},
		{`{"schema":"bench/1","results":[{"case":"a","rounds":[` + strings.Repeat(`{},`, 100) + `{}]}]}`, "101 rounds, allowed is 0 to 100"},
		{`{"schema":"bench/2"}`, `schema is "bench/2", allowed is "bench/1"`},
		{`[]`, "not a file of --json"},
		{``, "not a file of --json"},
	} {
		name := filepath.Join(dir, "old.json")
		if err := os.WriteFile(name, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := ReadReport(name)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
		if err == nil {
			compare(r, reported(measuredCell(nil)))
		}
	}
	if _, err := ReadReport(dir); err == nil {
		t.Error("a directory is a report")
	}
}

// TestCompareConditions judges only what was measured alike, and says what was not.
func TestCompareConditions(t *testing.T) {
	report := func(change func(*Report)) *Report {
		var list []*Cell
		for _, name := range []string{"one", "two"} {
			c := newCell(name, &Workload{Processes: 2})
			for i := range 5 {
				c.Rounds = append(c.Rounds, Round{Mean: 100 + float64(i), P50: 100, P99: 200 + float64(i)})
			}
			list = append(list, c)
		}
		r := &Report{
			Topology: TopologySameHost, Host: []*Host{{CPU: "one"}}, Results: list,
			Workload: map[string]any{"period_us": int64(1000), "queue_depth": 256, "payload_size": []int{8}, "rounds": 5, "languages": []string{"go", "go"}},
		}
		change(r)
		return r
	}
	slower := func(r *Report) {
		for _, c := range r.Results {
			for i := range c.Rounds {
				c.Rounds[i].Mean *= 2
			}
		}
	}
	for _, c := range []struct {
		name          string
		old, new      func(*Report)
		judged, worse int
		want          string
	}{
		{"alike", func(*Report) {}, slower, 4, 2, "worse"},
		{"read from a file", func(r *Report) { r.Workload["period_us"] = 1000.0 }, slower, 4, 2, "worse"},
		{"other payloads and rounds", func(r *Report) { r.Workload["payload_size"], r.Workload["rounds"] = []int{8, 64}, 1 }, slower, 4, 2, "worse"},
		{"an older release that knew less", func(r *Report) { delete(r.Workload, "queue_depth") }, slower, 4, 2, "worse"},
		{"other period", func(r *Report) { r.Workload["period_us"] = 500.0 }, slower, 0, 0, "Measured otherwise and so not judged: period_us was 500 and is 1000."},
		{"other depth", func(r *Report) { r.Workload["queue_depth"] = 1 }, slower, 0, 0, "queue_depth was 1 and is 256"},
		{"other topology", func(r *Report) { r.Topology = TopologyNetns }, slower, 0, 0, "topology was netns and is same-host"},
		{"other processes", func(r *Report) { r.Results[0].Processes = 1 }, slower, 2, 1, "not judged: 2 processes and before 1"},
		{"a case less", func(*Report) {}, func(r *Report) { slower(r); r.Results = r.Results[:1] }, 2, 1, "only in the older file"},
		{"a case more", func(r *Report) { r.Results = r.Results[:1] }, slower, 2, 1, "new"},
		{"a case not measured", func(*Report) {}, func(r *Report) { slower(r); r.Results[0].Rounds = nil }, 2, 1, "not measured in both"},
		{"a partial one", func(r *Report) { r.Interrupted = true }, slower, 4, 2, "did not come to its end"},
		{"other machine", func(r *Report) { r.Host[0].CPU = "two" }, slower, 4, 2, "of another machine"},
		{"few rounds", func(r *Report) {
			for _, c := range r.Results {
				c.Rounds = c.Rounds[:1]
			}
		}, slower, 4, 0, "too few to be sure"},
	} {
		got := compare(report(c.old), report(c.new))
		if text := strings.Join(got.table, "\n"); got.judged != c.judged || got.worse != c.worse || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d judged and %d worse, want %d, %d and %q: %s", c.name, got.judged, got.worse, c.judged, c.worse, c.want, text)
		}
	}
	// What could not be judged is a warning.
	r := report(func(*Report) {})
	r.Resources = map[string]any{}
	r.finish(nil, report(func(r *Report) { r.Results = nil }), true)
	if len(r.Warnings) != 1 || r.Warnings[0].Code != codeNotCompared || r.Verdict.Exit != exitFailed {
		t.Errorf("%+v, %+v", r.Warnings, r.Verdict)
	}
}
