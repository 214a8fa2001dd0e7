package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
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
		{"-time 0s", 2, "at least 1ms"},
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
	r := row{"wrong", 1, plain(func(counter *int64, n int) { *counter += int64(n) + 1 })}
	if _, err := measure([]row{r}, 2, 1e6); err == nil || !strings.Contains(err.Error(), "wrong: after") {
		t.Errorf("measure returned %v", err)
	}
}
