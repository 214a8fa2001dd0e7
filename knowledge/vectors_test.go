package knowledge_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// A vector is one measured case: see the format in karl/testdata/README.md.
type vector struct {
	ID        string
	Section   string
	Program   *string
	Programs  []string
	Functions map[string]string
	Settings  map[string]bool
	Result    *vectorValue
	Vars      map[string]vectorValue
	Phase     string
	Output    *string
	Tol       float64
	Quirk     bool
	Port      *struct {
		Result *vectorValue
		Vars   map[string]vectorValue
	}
}

type vectorValue struct {
	Type  string
	Value json.RawMessage
}

func readVectors(t testing.TB) []vector {
	t.Helper()
	f, err := os.Open("../karl/testdata/karl-vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []vector
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("line %d: %v", len(all)+1, err)
		}
		if v.Programs == nil {
			v.Programs = []string{*v.Program}
		}
		all = append(all, v)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

const vectorCount = 1908

func TestVectors(t *testing.T) {
	vectors := readVectors(t)
	if len(vectors) != vectorCount {
		t.Fatalf("%d vectors, want %d", len(vectors), vectorCount)
	}
	for _, v := range vectors {
		t.Run(v.ID, func(t *testing.T) { runVector(t, v) })
	}
}

func runVector(t *testing.T, v vector) {
	var out bytes.Buffer
	files, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	kb := knowledge.New(knowledge.WithOutput(&out), knowledge.WithSleep(), knowledge.WithEnv(), knowledge.WithFiles(files))
	defer kb.Close()
	settings := &knowledge.EvalSettings{MaxSteps: 100_000, Strict: v.Settings["exception_on_uninitialized"]}
	for name, text := range v.Functions {
		if err := kb.DefineExpression(name, text); err != nil {
			t.Fatalf("function %s: %v", name, err)
		}
	}
	var got karl.Value
	phase := ""
	for _, program := range v.Programs {
		var e *knowledge.Expression
		if e, err = kb.Compile(program); err != nil {
			phase = "compile"
			break
		}
		if got, err = e.Evaluate(settings); err != nil {
			phase = "evaluate"
			break
		}
	}
	result, vars, output := v.Result, v.Vars, v.Output
	switch {
	case v.Port != nil:
		result, vars, output = v.Port.Result, v.Port.Vars, nil
	case v.ID == "K1733", v.ID == "K1734": // these never end
		if !isLimit(err) {
			t.Errorf("%q: error %v, want the limit of steps", v.Programs, err)
		}
		return
	case v.Phase != "" && v.Phase != phase:
		t.Errorf("%q: phase %q, want %q: %v", v.Programs, phase, v.Phase, err)
	}
	if result != nil {
		switch {
		case result.Type == "error":
			if err == nil {
				t.Errorf("%q = %s %v, want an error", v.Programs, got.Kind(), got)
			}
		case err != nil:
			t.Errorf("%q: %v, want %s %s", v.Programs, err, result.Type, result.Value)
		case !matches(t, got, *result, v.Tol):
			t.Errorf("%q = %s %v, want %s %s", v.Programs, got.Kind(), got, result.Type, result.Value)
		}
	}
	if vars != nil {
		seen := map[string]bool{}
		for name, r := range kb.All("") {
			seen[name] = true
			want, ok := vars[name]
			if !ok {
				t.Errorf("%q: %s = %s %v, want it unset", v.Programs, name, r.Value.Kind(), r.Value)
			} else if !matches(t, r.Value, want, v.Tol) {
				t.Errorf("%q: %s = %s %v, want %s %s", v.Programs, name, r.Value.Kind(), r.Value, want.Type, want.Value)
			}
		}
		for name, want := range vars {
			if !seen[name] {
				t.Errorf("%q: %s is unset, want %s %s", v.Programs, name, want.Type, want.Value)
			}
		}
	}
	if output != nil && out.String() != *output {
		t.Errorf("%q printed %q, want %q", v.Programs, out.String(), *output)
	}
}

// matches compares a value with a vector's; doubles within a relative tolerance.
func matches(t *testing.T, got karl.Value, want vectorValue, tol float64) bool {
	t.Helper()
	if got.Kind().String() != want.Type {
		return false
	}
	decode := func(into any) {
		if err := json.Unmarshal(want.Value, into); err != nil {
			t.Fatalf("value %s: %v", want.Value, err)
		}
	}
	number := func(got float64, raw json.RawMessage) bool {
		var s string
		if json.Unmarshal(raw, &s) == nil {
			switch s {
			case "nan":
				return math.IsNaN(got)
			case "inf":
				return math.IsInf(got, 1)
			}
			return s == "-inf" && math.IsInf(got, -1)
		}
		var f float64
		if err := json.Unmarshal(raw, &f); err != nil {
			t.Fatalf("number %s: %v", raw, err)
		}
		return got == f || math.Abs(got-f) <= tol*math.Abs(f)
	}
	switch got.Kind() {
	case karl.KindUninitialized:
		return true
	case karl.KindInteger:
		var i int64
		decode(&i)
		return got.Int() == i
	case karl.KindDouble:
		return number(got.Float(), want.Value)
	case karl.KindString, karl.KindXML, karl.KindText:
		var s string
		decode(&s)
		return got.String() == s
	case karl.KindFile, karl.KindJPEG:
		var b []int
		decode(&b)
		data := make([]byte, len(b))
		for i, c := range b {
			data[i] = byte(c)
		}
		return bytes.Equal(got.Bytes(), data)
	}
	var elems []json.RawMessage
	decode(&elems)
	if len(elems) != got.Len() {
		return false
	}
	for i, raw := range elems {
		x, _ := got.At(i)
		if x.Kind() == karl.KindInteger {
			var n int64
			if err := json.Unmarshal(raw, &n); err != nil || n != x.Int() {
				return false
			}
		} else if !number(x.Float(), raw) {
			return false
		}
	}
	return true
}
