package harness

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// reported returns a finished report of cases.
func reported(cells ...*Cell) *Report {
	r := &Report{
		Schema: Schema, Track: "event", Mode: "oneway", Topology: TopologySameHost, Host: []*Host{{CPU: "a processor"}}, Transport: map[string]any{"kind": "tcp"},
		Workload: map[string]any{}, Resources: map[string]any{}, Results: cells,
	}
	r.finish(nil, nil, false)
	return r
}

// TestWriteFails loses nothing of a run if a file cannot be written after all.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	s := &Session{Common: &Common{JSON: filepath.Join(dir, "no", "out.json"), CSV: filepath.Join(dir, "out.csv"), Markdown: "-"}, Report: reported(measuredCell(nil))}
	var out strings.Builder
	if err := s.write(&out, nil); err == nil || !strings.Contains(err.Error(), "out.json") {
		t.Errorf("%v, want what is wrong about out.json", err)
	}
	for _, want := range []string{"| a case | 50.00 |", "a case: mean 50.0 us", "verdict: ok"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in %s", want, &out)
		}
	}
	if text, err := os.ReadFile(s.CSV); err != nil || !strings.Contains(string(text), "\na case,50.00,") {
		t.Errorf("%v: %s", err, text)
	}
	out.Reset()
	s.JSON = ""
	if err := s.write(&out, nil); err != nil || strings.Contains(out.String(), "verdict") {
		t.Errorf("%v: the standard output has one thing: %s", err, &out)
	}
}

// TestWritable refuses files before a run, and leaves what is there alone.
func TestWritable(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	if err := os.WriteFile(there, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		common Common
		want   string // "" if it is fine
	}{
		{Common{JSON: there, CSV: filepath.Join(dir, "new"), Markdown: "-", HTML: os.DevNull}, ""},
		{Common{JSON: dir}, "--json"},
		{Common{CSV: filepath.Join(dir, "no", "file")}, "--csv"},
		{Common{Markdown: dir}, "--markdown"},
		{Common{HTML: dir}, "--html"},
		{Common{Samples: dir}, "--samples"},
		{Common{JSON: "-", HTML: "-"}, "--html is -, allowed is another place than that of --json"},
	} {
		err := c.common.writable()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.common, err, c.want)
		}
	}
	if text, err := os.ReadFile(there); err != nil || string(text) != "text" {
		t.Errorf("%v: %q", err, text)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !os.IsNotExist(err) {
		t.Errorf("a file is left: %v", err)
	}
}

// TestPartial says what a report lacks, in all forms.
func TestPartial(t *testing.T) {
	missing := newCell("not come to", &Workload{})
	for _, c := range []struct {
		change func(*Report)
		cells  []*Cell
		want   string // "" if nothing is lacking
	}{
		{func(*Report) {}, []*Cell{measuredCell(nil)}, ""},
		{func(r *Report) { r.Interrupted = true }, []*Cell{measuredCell(nil), missing}, "INTERRUPTED: what follows is partial"},
		{func(r *Report) { r.Interrupted = true }, []*Cell{missing}, "INTERRUPTED: nothing was measured"},
		{func(r *Report) { r.Stopped = "the gateway ended" }, []*Cell{measuredCell(nil), missing}, "STOPPED, the gateway ended: what follows is partial"},
		{func(r *Report) { r.Stopped = "the gateway ended" }, []*Cell{missing}, "STOPPED, the gateway ended: nothing was measured"},
	} {
		r := reported(c.cells...)
		c.change(r)
		var text strings.Builder
		r.text(&text, nil)
		page, err := r.html(nil)
		if err != nil {
			t.Fatal(err)
		}
		for form, s := range map[string]string{"text": text.String(), "Markdown": r.markdown(nil), "page": string(page)} {
			if got := strings.Contains(s, "INTERRUPTED") || strings.Contains(s, "STOPPED"); got != (c.want != "") || !strings.Contains(s, c.want) {
				t.Errorf("%s, want %q: %s", form, c.want, s)
			}
			if last := c.cells[len(c.cells)-1]; last == missing && !strings.Contains(s, "not come to: not measured") {
				t.Errorf("%s: the case that was not measured: %s", form, s)
			}
		}
	}
	failed := measuredCell(func(r *Run) { r.Received, r.Sent.Failures = nil, plan.Count })
	var text strings.Builder
	reported(failed).text(&text, nil)
	if !strings.Contains(text.String(), "a case: nothing came, 2000 failures") || !regexp.MustCompile(`(?m)^a case( +-){9} +2000$`).MatchString(text.String()) {
		t.Errorf("a case that failed altogether: %s", &text)
	}
}
