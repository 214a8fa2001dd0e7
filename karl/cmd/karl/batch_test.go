package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// builtIn is where build put the command, "" if it was not asked to.
var builtIn string

// build returns the path of the command as "go build" makes it.
var build = sync.OnceValues(func() (string, error) {
	var err error
	if builtIn, err = os.MkdirTemp("", "karl-test-"); err != nil {
		return "", err
	}
	name := filepath.Join(builtIn, "karl")
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if out, err := exec.Command("go", "build", "-o", name, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return name, nil
})

func built(t *testing.T) string {
	t.Helper()
	name, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// vector is a case of the vectors; answer is what the command says of one.
type vector struct {
	ID     string
	Result typed
	Vars   map[string]typed
	Output *string
	Phase  string
	Tol    float64
	Quirk  bool
}

type answer struct {
	ID     string
	Result *typed
	Vars   map[string]typed
	Output string
	Error  *struct {
		Phase, Message string
		Line, Column   int
	}
}

type typed struct {
	Type  string
	Value any
}

func TestVectors(t *testing.T) {
	vectors, err := os.ReadFile("../../testdata/karl-vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(built(t), "eval", "--batch", "-", "--max-steps", "100000")
	command.Stdin = bytes.NewReader(vectors)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	questions, answers := decoder(bytes.NewReader(vectors)), decoder(bytes.NewReader(out))
	n := 0
	for ; questions.More(); n++ {
		var v vector
		var a answer
		if err := questions.Decode(&v); err != nil {
			t.Fatal(err)
		}
		if err := answers.Decode(&a); err != nil {
			t.Fatalf("after %s: %v", v.ID, err)
		}
		if a.ID != v.ID {
			t.Fatalf("answer to %q where %s was asked", a.ID, v.ID)
		}
		if !v.Quirk {
			compare(t, v, a)
		}
	}
	if n != 1908 || answers.More() {
		t.Errorf("%d vectors, want 1908 and as many answers", n)
	}
}

func decoder(r io.Reader) *json.Decoder {
	d := json.NewDecoder(r)
	d.UseNumber() // integers keep all their digits
	return d
}

func compare(t *testing.T, v vector, a answer) {
	t.Helper()
	switch failed := v.Result.Type == "error"; {
	case failed && (a.Error == nil || v.Phase != "" && a.Error.Phase != v.Phase):
		t.Errorf("%s: error %+v, want one of phase %q", v.ID, a.Error, v.Phase)
	case failed && a.Error.Message == "":
		t.Errorf("%s: an error without a message", v.ID)
	case failed && a.Result != nil:
		t.Errorf("%s: a result and an error", v.ID)
	case !failed && (a.Error != nil || a.Result == nil):
		t.Errorf("%s: error %+v, want %+v", v.ID, a.Error, v.Result)
	case !failed && !same(*a.Result, v.Result, v.Tol):
		t.Errorf("%s: result %+v, want %+v", v.ID, *a.Result, v.Result)
	}
	for name, want := range v.Vars {
		if got, ok := a.Vars[name]; !ok || !same(got, want, v.Tol) {
			t.Errorf("%s: %s = %+v, want %+v", v.ID, name, got, want)
		}
	}
	if v.Vars != nil && len(a.Vars) != len(v.Vars) {
		t.Errorf("%s: variables %v, want %v", v.ID, a.Vars, v.Vars)
	}
	if v.Output != nil && a.Output != *v.Output {
		t.Errorf("%s: output %q, want %q", v.ID, a.Output, *v.Output)
	}
}

// same compares notations: everything exactly but doubles, which are numbers.
func same(got, want typed, tol float64) bool {
	if got.Type != want.Type {
		return false
	}
	switch want.Type {
	case "double":
		return sameNumber(got.Value, want.Value, tol)
	case "double_array":
		g, _ := got.Value.([]any)
		w, _ := want.Value.([]any)
		for i := range w {
			if i >= len(g) || !sameNumber(g[i], w[i], tol) {
				return false
			}
		}
		return len(g) == len(w)
	}
	return reflect.DeepEqual(got.Value, want.Value)
}

func sameNumber(got, want any, tol float64) bool {
	g, ok := got.(json.Number)
	w, finite := want.(json.Number)
	if !ok || !finite {
		return got == want
	}
	x, err1 := g.Float64()
	y, err2 := w.Float64()
	return err1 == nil && err2 == nil && math.Abs(x-y) <= tol*math.Abs(y)
}

// TestHostileLines has lines that would end a careless batch.
func TestHostileLines(t *testing.T) {
	big := "a = 'x'; .i[0->19)(a = a + a); "
	lines := []struct{ program, want string }{
		{".i[0->100000000000)(x = .i)", "stopped after 10000000 steps"},
		{strings.Repeat("(", 3_000_000), "nested"},
		{"#eval(" + strings.Repeat("[", 100_000), ""},
		{"x[2000000000] = 1", "2000000000"},
		{"a = 'x'; .i[0->100)(a = a + a)", "bytes"},
		{".i[0->10000000)(x{.i} = .i)", "variable"},
		{big + ".i[0->90000)(x{.i} = a + #to_string(.i))", "memory"},
		{"a[131071] = 1; .i[0->90000)(x{.i} = a; x{.i}[0] = .i)", "memory"},
		{"#sleep(1000000)", "stopped after"}, // not for the memory of the line before
		{big + ".i[0->90000)(#print(a))", "printed"},
		{"#eval('#eval(#arg(0))'); x = '\x00\x1f'; y = #to_string(#buffer(1.5))", ""},
	}
	var in bytes.Buffer
	for i, l := range lines {
		program, _ := json.Marshal(l.program)
		fmt.Fprintf(&in, "{\"id\":%d,\"program\":%s}\n", i, program)
	}
	in.WriteString("{\"program\":\"1\xff\"}\n\x00\n")
	in.WriteString(`{"program":"` + strings.Repeat("1;", maxLine/2) + "\"}\n")
	in.WriteString(`{"id":-1,"program":"6*7"}`) // and no end of line

	command := exec.Command(built(t), "eval", "--batch", "-", "--timeout", "5s")
	command.Stdin = &in
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(bytes.NewReader(out))
	answers.Buffer(nil, 1<<30)
	for i, l := range lines {
		var a struct {
			ID    int
			Error *struct{ Message string }
		}
		if !answers.Scan() {
			t.Fatalf("no answer to line %d: %v", i, answers.Err())
		}
		if err := json.Unmarshal(answers.Bytes(), &a); err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		switch {
		case a.ID != i:
			t.Errorf("answer %d has id %d", i, a.ID)
		case l.want != "" && (a.Error == nil || !strings.Contains(a.Error.Message, l.want)):
			t.Errorf("answer to %.60q: %+v, want an error with %q", l.program, a.Error, l.want)
		}
	}
	var rest []string
	for answers.Scan() {
		rest = append(rest, answers.Text())
	}
	if len(rest) != 4 {
		t.Fatalf("%d answers at the end, want 4", len(rest))
	}
	for i, want := range []string{"not UTF-8", "invalid character", "longer than", `{"id":-1,"result":{"type":"integer","value":42}`} {
		if !strings.Contains(rest[i], want) {
			t.Errorf("answer %q, want %q in it", rest[i], want)
		}
	}
}

// TestAnswersAtOnce asks only after it has the answer before.
func TestAnswersAtOnce(t *testing.T) {
	command := exec.Command(built(t), "eval", "--batch", "-")
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(time.Minute, func() { command.Process.Kill() })
	defer stuck.Stop()
	answers := bufio.NewScanner(out)
	for i := range 3 {
		fmt.Fprintf(in, "{\"id\":%d,\"program\":\"1\"}\n", i)
		if want := fmt.Sprintf(`{"id":%d,`, i); !answers.Scan() || !strings.HasPrefix(answers.Text(), want) {
			t.Errorf("answer %q (%v), want %s", answers.Text(), answers.Err(), want)
		}
	}
	in.Close()
	if err := command.Wait(); err != nil {
		t.Error(err)
	}
}

// TestExitCodes has the codes of the command as it is built.
func TestExitCodes(t *testing.T) {
	name := built(t)
	for _, c := range []struct {
		want int
		args []string
	}{
		{exitOK, []string{"eval", "1"}},
		{exitOK, []string{"--help"}},
		{exitOK, []string{"version"}},
		{exitUnreached, []string{"run", "-", "--until", "0"}},
		{exitUsage, []string{"--bogus"}},
		{exitUsage, nil},
		{exitCompile, []string{"eval", "1 +"}},
		{exitEvaluate, []string{"eval", "f()"}},
		{exitIO, []string{"run", "missing.karl"}},
	} {
		err := exec.Command(name, c.args...).Run()
		got := 0
		if exit, ok := err.(*exec.ExitError); ok {
			got = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if got != c.want {
			t.Errorf("karl %q: exit code %d, want %d", c.args, got, c.want)
		}
	}
}
