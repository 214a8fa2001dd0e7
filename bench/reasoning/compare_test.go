package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCompareRow(t *testing.T) {
	at := func(figure, low, high float64) *result {
		return &result{Unit: unitMutex, Figure: figure, Low: low, High: high}
	}
	for _, c := range []struct {
		name     string
		old, new *result
		mark     string
		ok       bool
	}{
		{"the same", at(2, 1.9, 2.1), at(2, 1.9, 2.1), "", true},
		{"slower", at(2, 1.9, 2.1), at(3, 2.9, 3.1), "slower", true},
		{"faster", at(3, 2.9, 3.1), at(2, 1.9, 2.1), "faster", true},
		{"slower within the noise", at(2, 1.5, 2.5), at(2.6, 2.4, 3.1), "", true},
		{"faster within the noise", at(2.6, 2.4, 3.1), at(2, 1.5, 2.5), "", true},
		{"sure but small", at(2, 2, 2), at(2.09, 2.09, 2.09), "", true},
		{"sure and large enough", at(2, 2, 2), at(2.11, 2.11, 2.11), "slower", true},
		{"an old file, little change", &result{Ratio: 2}, at(2.15, 2.15, 2.15), "", true},
		{"an old file, much change", &result{Ratio: 2}, at(2.3, 2.25, 2.4), "slower", true},
		{"another unit", &result{Unit: unitBytes, Figure: 5}, at(2, 2, 2), "", false},
		{"nothing before", at(0, 0, 0), at(2, 2, 2), "", false},
	} {
		if _, mark, ok := compareRow(c.old, c.new); mark != c.mark || ok != c.ok {
			t.Errorf("%s: %q, %t; want %q, %t", c.name, mark, ok, c.mark, c.ok)
		}
	}
}

// TestCompare reads an old file, from before there were units, with a row that
// was far faster, one far slower, and without one.
func TestCompare(t *testing.T) {
	old := `{"native_mutex_ns": 14, "env": {"gomaxprocs": 1, "cpu": "another"}, "rows": [
		{"name": "Go: Mutex Increments", "ns_per_op": 1, "ratio_to_mutex": 0.001},
		{"name": "Go: RWMutex Increments", "ns_per_op": 1, "ratio_to_mutex": 1000}]}`
	file := filepath.Join(t.TempDir(), "old.json")
	if err := os.WriteFile(file, []byte(old), 0o666); err != nil {
		t.Fatal(err)
	}
	args := []string{"-quick", "-run", "^Go: (Atomic|Mutex|RWMutex)", "-cpu", "2", "-compare", file}
	var stdout, stderr bytes.Buffer
	if code := run(args, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	for _, says := range []string{"no run with GOMAXPROCS 2; this is its run with 1", "another machine", "slower\n", "faster\n", "new\n", "1 rows slower, 1 faster"} {
		if !strings.Contains(stdout.String(), says) {
			t.Errorf("the comparison lacks %q:\n%s", says, &stdout)
		}
	}
	stderr.Reset()
	if code := run(append(args, "-fail", "-json", "-"), &bytes.Buffer{}, &stderr); code != exitSlow {
		t.Errorf("exit code %d with -fail: %s", code, &stderr)
	}
}

func TestGates(t *testing.T) {
	known := map[string]bool{}
	for _, r := range allRows() {
		known[r.name] = true
	}
	for name := range gates {
		if !known[name] {
			t.Errorf("there is no row %q for its gate", name)
		}
	}
	r := results{Rows: []result{
		{Name: "met", Figure: 1, Unit: "M", Gate: &gate{Must: 1, Judged: true, Clean: true}},
		{Name: "slow", Figure: 1.5, Unit: "M", Gate: &gate{Must: 1, Judged: true}},
		{Name: "dirty", Figure: 0.5, Unit: "M", Allocs: 1, Gate: &gate{Must: 1, Judged: true, Clean: true}},
		{Name: "alone", Figure: 9, Unit: "M", Gate: &gate{Must: 1}},
		{Name: "free", Figure: 9, Unit: "M"},
	}}
	if n := r.judge(); n != 2 {
		t.Errorf("%d gates missed, want 2", n)
	}
	var out bytes.Buffer
	writeGates(&out, &r)
	for _, says := range []string{"1 met, 2 missed, 1 not judged because", "missed by slow: 1.50 M", "missed by dirty: 0.50 M", "with 1 allocations"} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("the summary lacks %q:\n%s", says, &out)
		}
	}
}

func TestQuantile(t *testing.T) {
	values := []float64{4, 1, 3, 2}
	for part, want := range map[float64]float64{0: 1, 0.25: 1.75, 0.5: 2.5, 1: 4} {
		if got := quantile(values, part); got != want {
			t.Errorf("quantile %v is %v, want %v", part, got, want)
		}
	}
	if quantile(nil, 0.5) != 0 {
		t.Error("the quantile of nothing is not 0")
	}
}
