package karl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"
)

var (
	nan = math.NaN()
	inf = math.Inf(1)
)

// vector is a line of testdata/karl-vectors.jsonl, as spec section 11 says.
type vector struct {
	ID, Section, Program, Phase string
	Functions                   map[string]string
	Result                      *vectorValue
	Vars                        map[string]vectorValue
	Tol                         float64
	Port                        *struct {
		Result *vectorValue
		Vars   map[string]vectorValue
	}
}

type vectorValue struct {
	Type  string
	Value any
}

func readVectors(t *testing.T) []vector {
	data, err := os.ReadFile("testdata/karl-vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	for d.More() {
		var v vector
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, v)
	}
	return vectors
}

func (v vectorValue) value() Value {
	switch v.Type {
	case "uninitialized":
		return Value{}
	case "integer":
		return Int(jsonInt(v.Value))
	case "double":
		return Float(jsonFloat(v.Value))
	case "string":
		return String(v.Value.(string))
	}
	elems := v.Value.([]any)
	ints, floats, bytes := []int64{}, []float64{}, []byte{}
	for _, e := range elems {
		switch v.Type {
		case "double_array":
			floats = append(floats, jsonFloat(e))
		default:
			ints = append(ints, jsonInt(e))
			bytes = append(bytes, byte(jsonInt(e)))
		}
	}
	switch v.Type {
	case "integer_array":
		return Ints(ints)
	case "double_array":
		return Floats(floats)
	}
	return File(KindFile, bytes)
}

func jsonInt(x any) int64 {
	n, err := x.(json.Number).Int64()
	if err != nil {
		panic(err)
	}
	return n
}

func jsonFloat(x any) float64 {
	switch x {
	case "nan":
		return nan
	case "inf":
		return inf
	case "-inf":
		return -inf
	}
	f, err := x.(json.Number).Float64()
	if err != nil {
		panic(err)
	}
	return f
}

// matches compares exactly, but takes any nan for any other.
func matches(got, want Value, tol float64) bool {
	if got.Kind() == KindDouble && want.Kind() == KindDouble {
		g, w := got.Float(), want.Float()
		if g != g && w != w || tol > 0 && math.Abs(g-w) <= tol*math.Abs(w) {
			return true
		}
	}
	return got.Equal(want)
}

// TestVectors runs, folded and as they are, all vectors that need nothing but
// values and operators: no loops, functions and names with braces.
func TestVectors(t *testing.T) {
	ran := map[string]int{}
	for _, v := range readVectors(t) {
		result, vars := v.Result, v.Vars
		if v.Port != nil {
			result, vars = v.Port.Result, v.Port.Vars
		}
		if v.Program == "" || v.Functions != nil || result != nil && (result.Type == "error" || result.Type == "crash") {
			continue
		}
		p, err := Parse(v.ID, v.Program)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if p.Body == nil {
			continue
		}
		for _, n := range []Node{p.Body, Fold(p.Body)} {
			m := &machine{vars: map[string]Value{}}
			got, ok := m.tryRun(n)
			if !ok {
				break
			}
			ran[v.Section]++
			if result != nil && !matches(got, result.value(), v.Tol) {
				t.Errorf("%s %s = %v %v, want %v", v.ID, v.Program, got.Kind(), got, result)
			}
			for name, want := range vars {
				if got := m.vars[name]; !matches(got, want.value(), v.Tol) {
					t.Errorf("%s %s: %s = %v %v, want %v", v.ID, v.Program, name, got.Kind(), got, want)
				}
			}
		}
	}
	total := 0
	for _, n := range ran {
		total += n / 2
	}
	t.Logf("%d vectors ran", total)
	for section, least := range map[string]int{
		"types.arith": 64, "types.compare": 64, "types.compare_more": 84, "types.logic": 64, "types.division": 52,
		"types.overflow": 15, "types.strings": 49, "types.arrays": 56, "calls.math": 40, "calls.fragment": 20,
		"calls.type_size": 24, "conv.arrays": 28, "conv.to_double": 20, "conv.to_integer": 40, "conv.to_string": 50,
		"prec.sequence": 60,
	} {
		if n := ran[section] / 2; n < least {
			t.Errorf("%s: %d vectors ran, want at least %d", section, n, least)
		}
	}
}

func TestKinds(t *testing.T) {
	codes := []int{0, 1, 2, 4, 8, 16, 32, 64, 128, 256}
	for k := range Kind(kinds) {
		if k.Code() != codes[k] {
			t.Errorf("%v: %d", k, k.Code())
		}
		if got, ok := KindOfCode(codes[k]); got != k || !ok {
			t.Errorf("%d: %v %v", codes[k], got, ok)
		}
	}
	for _, code := range []int{-1, 3, 512} {
		if k, ok := KindOfCode(code); ok {
			t.Errorf("%d: %v", code, k)
		}
	}
	if Kind(kinds).String() != "invalid" || Kind(kinds).Code() != 0 {
		t.Error("a kind that is none")
	}
}

func TestValuesAreTheirWords(t *testing.T) {
	for i, v := range oneOfEach {
		if got := FromWords(v.Words()); !got.Equal(v) || got.String() != v.String() {
			t.Errorf("%v %v: %v", v.Kind(), v, got)
		}
		for j, w := range oneOfEach {
			if v.Equal(w) != (i == j) {
				t.Errorf("%v %v and %v %v", v.Kind(), v, w.Kind(), w)
			}
		}
	}
	if File(KindDouble, nil).Kind() != KindFile {
		t.Error("a file of a kind that is none")
	}
	if !Floats([]float64{nan}).Equal(Floats([]float64{nan})) || Floats([]float64{0}).Equal(Floats([]float64{-1})) {
		t.Error("arrays of doubles")
	}
}

func TestTruth(t *testing.T) {
	for _, test := range []struct {
		v    Value
		want bool
	}{
		{Value{}, false},
		{Int(-1), true},
		{Float(nan), false},
		{Float(-0.5), true},
		{Float(inf), true},
		{String("0"), true},
		{String(""), false},
		{Ints([]int64{0, 1}), false},
		{Ints([]int64{1}), true},
		{Ints(nil), false},
		{Floats([]float64{nan, 1}), false},
		{Floats([]float64{0.1}), true},
		{Floats(nil), false},
		{File(KindFile, []byte{0}), true},
		{File(KindJPEG, nil), false},
		{File(KindText, []byte("x")), true},
	} {
		if got := test.v.IsTrue(); got != test.want {
			t.Errorf("%v %v: %v", test.v.Kind(), test.v, got)
		}
	}
}

func ExampleValue() {
	position := Floats([]float64{1.5, 2})
	moved := position.WithElement(3, Int(7))
	fmt.Println(moved.Kind(), moved.Len(), moved)
	fmt.Println(position)
	fmt.Println(OpAdd.Apply(String("x = "), position, nil))
	// Output:
	// double_array 4 1.500000, 2.000000, 0.000000, 7.000000
	// 1.500000, 2.000000
	// x = 1.500000, 2.000000
}

func ExampleNumberFormat() {
	var f NumberFormat
	f.SetPrecision(2)
	fmt.Println(Float(12345.678).Text(&f, ""))
	f.Scientific = true
	fmt.Println(Float(12345.678).Text(&f, ""))
	// Output:
	// 12345.68
	// 1.23e+04
}
