package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"-h", 0, "-rounds"},
		{"-nonsense", 2, "not defined: -nonsense"},
		{"-rounds 5", 2, "at least 6"},
		{"-rounds x", 2, "invalid value"},
		{"-rounds 1001", 2, "at most 1000"},
		{"-time 0s", 2, "at least 1ms"},
		{"-time 11s", 2, "at most 10s"},
		{"-cpu 0", 2, `-cpu has "0", each must be a number from 1 to 1024`},
		{"-cpu 1,,2", 2, `-cpu has ""`},
		{"-cpu 1,many", 2, `-cpu has "many"`},
		{"-fail", 2, "-fail needs -compare"},
		{"-quick -run Atomic -compare /no/such/file", 1, "-compare: open /no/such/file"},
		{"-quick -run Atomic -compare main_test.go", 1, "not a file of -json"},
		{"-run (", 2, "-run"},
		{"-run nothing", 2, "no row matches"},
		{"-quick file", 2, `unexpected argument "file"`},
		{"-quick -run Atomic -json /no/such/directory/x", 1, "/no/such/directory/x"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(strings.Fields(c.args), &stdout, &stderr); code != c.code {
			t.Errorf("%s: exit code %d, want %d", c.args, code, c.code)
		}
		if !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%s: standard error lacks %q:\n%s", c.args, c.says, &stderr)
		}
		if stdout.Len() > 0 {
			t.Errorf("%s: standard output is not empty:\n%s", c.args, &stdout)
		}
	}
}

func TestTables(t *testing.T) {
	file := filepath.Join(t.TempDir(), "old.json")
	// What is there is replaced, also if it is longer.
	if err := os.WriteFile(file, bytes.Repeat([]byte("x"), 1<<16), 0o666); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if code := run([]string{"--quick", "-json", file}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	for _, r := range allRows() {
		if n := strings.Count(stdout.String(), " "+r.name+" "); n != 2 {
			t.Errorf("%s is in the tables %d times, want 2", r.name, n)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	verify(t, text, len(allRows()))
}

func TestJSON(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run([]string{"-quick", "-run", "Compiled", "-json", "-"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	n := 0
	for _, r := range allRows() {
		if strings.Contains(r.name, "Compiled") {
			n++
		}
	}
	verify(t, stdout.Bytes(), n)
}

// TestProcessors measures twice, into one file.
func TestProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	var stdout, stderr bytes.Buffer
	if code := run([]string{"-quick", "-run", "2 Goroutines|Peek", "-cpu", "2,1", "-json", "-"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	if n := runtime.GOMAXPROCS(0); n != before {
		t.Errorf("GOMAXPROCS is %d, was %d", n, before)
	}
	var r results
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.More) != 1 || r.Env.GOMAXPROCS != 2 || r.More[0].Env.GOMAXPROCS != 1 || len(r.Rows) != len(r.More[0].Rows) {
		t.Errorf("two runs are:\n%s", &stdout)
	}
	for _, row := range r.More[0].Rows {
		if row.Gate != nil && row.Gate.Judged {
			t.Errorf("%s is judged with one processor", row.Name)
		}
	}
	if one, ok := r.with(1); !ok || one != r.More[0] {
		t.Error("the run with one processor is not found")
	}
	if any, ok := r.with(3); ok || any != &r {
		t.Error("a run with three processors is found")
	}
}

// verify reads a file of -json as a stranger would, by the names it documents.
func verify(t *testing.T, text []byte, rows int) {
	t.Helper()
	var file struct {
		Mutex float64          `json:"native_mutex_ns"`
		Rows  []map[string]any `json:"rows"`
		Env   map[string]any   `json:"env"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	if file.Mutex <= 0 || len(file.Rows) != rows || file.Env["go"] == nil {
		t.Errorf("mutex %v, %d rows (want %d), env %v", file.Mutex, len(file.Rows), rows, file.Env)
	}
	for _, r := range file.Rows {
		for _, key := range []string{"ns_per_op", "ratio_to_mutex", "allocs_per_op", "bytes_per_op"} {
			if x, ok := r[key].(float64); !ok || x < 0 {
				t.Errorf("%v: %s is %v", r["name"], key, r[key])
			}
		}
	}
}

// TestWrongCount sees a row fail that counted wrong.
func TestWrongCount(t *testing.T) {
	r := row{name: "wrong", per: 1, open: plain(func(counter *int64, n int) { *counter += int64(n) + 1 })}
	if _, err := measure([]row{r}, 2, size{each: 1e6}); err == nil || !strings.Contains(err.Error(), "wrong: after") {
		t.Errorf("measure returned %v", err)
	}
}
