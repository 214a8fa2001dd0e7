package karl

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestInt(t *testing.T) {
	tests := []struct {
		v    Value
		want int64
	}{
		{Value{}, 0},
		{Int(-3), -3},
		{Float(2.7), 2},
		{Float(-2.7), -2},
		{Float(-0.9), 0},
		{Float(9.9999999), 9},
		{Float(1e20), math.MaxInt64},
		{Float(-1e20), math.MinInt64},
		{Float(1 << 63), math.MaxInt64},
		{Float(math.Nextafter(1<<63, 0)), 1<<63 - 1024},
		{Float(-1 << 63), math.MinInt64},
		{Float(math.MaxFloat64), math.MaxInt64},
		{Float(nan), 0},
		{Float(inf), 0},
		{Float(-inf), 0},
		{Ints([]int64{5, 6}), 5},
		{Ints(nil), 0},
		{Floats([]float64{5.9, 6}), 5},
		{Floats([]float64{inf}), 0},
		{Floats(nil), 0},
		{File(KindFile, []byte("5")), 0},
		{File(KindJPEG, []byte("5")), 0},
		{File(KindXML, []byte("5")), 5},
		{File(KindText, []byte("6")), 6},
	}
	for _, test := range tests {
		if got := test.v.Int(); got != test.want {
			t.Errorf("%v %v: %d, want %d", test.v.Kind(), test.v, got, test.want)
		}
	}
	for text, want := range map[string]int64{
		"": 0, "42": 42, "42.9": 42, "abc": 0, "12abc": 12, " \t\n\v\f\r7": 7, "-3": -3, "+3": 3, "- 3": 0, "--3": 0,
		"+-3": 0, "010": 10, "0x1f": 0, "1e3": 1, "-": 0, " ": 0, "\x007": 0, "7\x008": 7, "\u00a07": 0, "1_000": 1,
		"9223372036854775807": math.MaxInt64, "9223372036854775808": math.MaxInt64,
		"-9223372036854775808": math.MinInt64, "-9223372036854775809": math.MinInt64,
		"9223372036854775809": math.MaxInt64, "-9223372036854775807": -math.MaxInt64,
		"99999999999999999999999999": math.MaxInt64, "-99999999999999999999999999": math.MinInt64,
		"18446744073709551617": math.MaxInt64, "000000000000000000000000000001": 1,
	} {
		if got := String(text).Int(); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestFloat(t *testing.T) {
	tests := []struct {
		v    Value
		want float64
	}{
		{Value{}, 0},
		{Int(7), 7},
		{Int(1<<53 + 1), 1 << 53}, // to the even neighbour
		{Int(1<<53 + 3), 1<<53 + 4},
		{Float(-0.5), -0.5},
		{Ints([]int64{3, 4}), 3},
		{Ints(nil), 0},
		{Floats([]float64{1.5, 4}), 1.5},
		{Floats(nil), 0},
		{File(KindFile, []byte("5")), 0},
		{File(KindText, []byte("5.5")), 5.5},
	}
	for _, test := range tests {
		if got := test.v.Float(); got != test.want {
			t.Errorf("%v %v: %v, want %v", test.v.Kind(), test.v, got, test.want)
		}
	}
	for text, want := range map[string]float64{
		"": 0, "2.5": 2.5, "abc": 0, "1e3": 1000, "1E3": 1000, "inf": 0, "nan": 0, "-inf": 0, "infinity": 0, "0x10": 0,
		"  3.5xyz": 3.5, ".5": 0.5, "-.5e1": -5, "+7": 7, "5.": 5, "5.e1": 50, ".": 0, "-": 0, "-.": 0, ".e5": 0, "e5": 0,
		"1e": 0, "1e+": 0, "12eggs": 0, "12 eggs": 12, "1,5": 1, "1.2.3": 1.2, "1e2.5": 100, "1e400": math.MaxFloat64,
		"-1e400": -math.MaxFloat64, "1e-400": 0, "0e99999999999999999999": 0, "1e99999999999999999999": math.MaxFloat64,
		"1e-99999999999999999999": 0, "007.5": 7.5, "1_0": 1, "0b1": 0, "- 1": 0, "\x001": 0, "1p3": 1,
		"1.7976931348623157e308": math.MaxFloat64, "9007199254740993": 1 << 53,
	} {
		if got := String(text).Float(); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if got := String("-0").Float(); !math.Signbit(got) {
		t.Error("the sign of -0 is lost")
	}
}

func TestNumbersSurviveText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "int")
		if got := String(Int(n).String()).Int(); got != n {
			t.Fatalf("%d: %d", n, got)
		}
		f := rapid.Float64().Draw(t, "float")
		if got := String(strconv.FormatFloat(f, 'g', -1, 64)).Float(); got != f {
			t.Fatalf("%v: %v", f, got)
		}
		if f == math.Trunc(f) && math.Abs(f) < 1<<62 && float64(Float(f).Int()) != f {
			t.Fatalf("%v: %d", f, Float(f).Int())
		}
		// A tail that no number goes on with changes nothing.
		s := strconv.FormatInt(n, 10)
		if got := String(" " + s + rapid.SampledFrom([]string{"", "x", " 1", ",5"}).Draw(t, "tail")); got.Int() != n || got.Float() != float64(n) {
			t.Fatalf("%v: %d %v", got, got.Int(), got.Float())
		}
	})
}

func TestArraysFromValues(t *testing.T) {
	tests := []struct {
		v      Value
		ints   []int64
		floats []float64
	}{
		{Value{}, nil, nil},
		{Int(5), []int64{5}, []float64{5}},
		{Float(2.7), []int64{2}, []float64{2.7}},
		{String("ab"), []int64{97, 98, 0}, []float64{97, 98, 0}},
		{String("\xff"), []int64{255, 0}, []float64{255, 0}},
		{String(""), []int64{0}, []float64{0}},
		{File(KindXML, []byte("a")), []int64{97, 0}, []float64{97, 0}},
		{File(KindFile, []byte("ab")), []int64{97, 98}, []float64{97, 98}},
		{File(KindJPEG, nil), nil, nil},
		{Ints([]int64{1, 2}), []int64{1, 2}, []float64{1, 2}},
		{Floats([]float64{1.9, -1.9, 1e30}), []int64{1, -1, math.MaxInt64}, []float64{1.9, -1.9, 1e30}},
		{Ints(nil), nil, nil},
	}
	for _, test := range tests {
		if got := test.v.AsInts(); !slices.Equal(got, test.ints) {
			t.Errorf("%v %v: %v, want %v", test.v.Kind(), test.v, got, test.ints)
		}
		if got := test.v.AsFloats(); !slices.Equal(got, test.floats) {
			t.Errorf("%v %v: %v, want %v", test.v.Kind(), test.v, got, test.floats)
		}
		if got := test.v.Integers(); !got.Equal(Ints(test.ints)) {
			t.Errorf("%v %v: %v", test.v.Kind(), test.v, got)
		}
		if got := test.v.Doubles(); !got.Equal(Floats(test.floats)) {
			t.Errorf("%v %v: %v", test.v.Kind(), test.v, got)
		}
	}
	v := Ints([]int64{1, 2})
	v.AsInts()[0] = 9
	if v.Int() != 1 {
		t.Error("AsInts gave the payload away")
	}
	w := Floats([]float64{1, 2})
	w.AsFloats()[0] = 9
	if w.Float() != 1 {
		t.Error("AsFloats gave the payload away")
	}
}

func TestBuffer(t *testing.T) {
	for _, test := range []struct {
		v    Value
		want string
	}{
		{Value{}, ""},
		{String("abc"), "abc"},
		{Int(5), "\x05\x00\x00\x00\x00\x00\x00\x00"},
		{Int(-2), "\xfe\xff\xff\xff\xff\xff\xff\xff"},
		{Float(1), "\x00\x00\x00\x00\x00\x00\xf0\x3f"},
		{Ints([]int64{1, 2}), "\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00"},
		{Floats([]float64{1}), "\x00\x00\x00\x00\x00\x00\xf0\x3f"},
		{Floats(nil), ""},
		{File(KindJPEG, []byte("j")), "j"},
		{File(KindFile, []byte("f")), "f"},
	} {
		if got := test.v.Buffer(); !got.Equal(File(KindFile, []byte(test.want))) {
			t.Errorf("%v %v: %v %q", test.v.Kind(), test.v, got.Kind(), got.Bytes())
		}
	}
}

func TestBytesAndSize(t *testing.T) {
	for _, test := range []struct {
		v     Value
		bytes string
		size  int64
	}{
		{Value{}, "", 1},
		{Int(12), "12", 1},
		{Float(5.5), "5.500000", 1},
		{String("hello"), "hello", 6},
		{String(""), "", 1},
		{File(KindText, []byte("ab")), "ab", 3},
		{File(KindFile, []byte("abc")), "abc", 3},
		{File(KindJPEG, nil), "", 0},
		{Ints([]int64{1, 2, 3}), "1, 2, 3", 3},
		{Floats([]float64{1.5}), "1.500000", 1},
		{Ints(nil), "", 0},
	} {
		b := test.v.Bytes()
		if string(b) != test.bytes || test.v.Size() != test.size {
			t.Errorf("%v %v: %q %d", test.v.Kind(), test.v, b, test.v.Size())
		}
		if test.v.Kind() == KindString && len(b) > 0 {
			b[0] = 'X'
			if test.v.String() != test.bytes {
				t.Error("Bytes gave the payload away")
			}
		}
	}
}

func TestFragment(t *testing.T) {
	hello, ints, floats := String("hello"), Ints([]int64{1, 2, 3, 4}), Floats([]float64{1.5, 2.5, 3.5})
	for _, test := range []struct {
		v           Value
		first, last int64
		want        Value
	}{
		{hello, 0, 0, String("h")},
		{hello, 1, 3, String("ell")},
		{hello, 0, 99, hello},
		{hello, 4, 4, String("o")},
		{hello, 0, math.MaxInt64, hello},
		{hello, 3, math.MaxInt64, String("lo")},
		{hello, 3, 1, String("")},
		{hello, 5, 9, String("")},
		{hello, 10, 12, String("")},
		{hello, -1, 3, String("")},
		{hello, -5, -1, String("")},
		{hello, 0, -1, String("")},
		{hello, math.MinInt64, math.MaxInt64, String("")},
		{String(""), 0, 3, String("")},
		{File(KindXML, []byte("<a>")), 1, 1, File(KindXML, []byte("a"))},
		{File(KindFile, []byte("hello")), 1, 2, File(KindFile, []byte("el"))},
		{File(KindJPEG, []byte("hello")), 9, 2, File(KindJPEG, nil)},
		{ints, 1, 2, Ints([]int64{2, 3})},
		{ints, 0, 3, ints},
		{ints, 7, 8, Ints(nil)},
		{floats, 2, 2, Floats([]float64{3.5})},
		{floats, 2, 1, Floats(nil)},
		{Int(5), 0, 0, Value{}},
		{Float(2.5), 0, 0, Value{}},
		{Value{}, 0, 0, Value{}},
	} {
		if got := test.v.Fragment(test.first, test.last); !got.Equal(test.want) {
			t.Errorf("%v %v [%d, %d]: %v %v", test.v.Kind(), test.v, test.first, test.last, got.Kind(), got)
		}
	}
}

func TestArrayOf(t *testing.T) {
	for _, test := range []struct {
		elems []Value
		want  Value
	}{
		{nil, Value{}},
		{[]Value{Int(1), Int(2)}, Ints([]int64{1, 2})},
		{[]Value{Int(1), Float(2.5)}, Floats([]float64{1, 2.5})},
		{[]Value{String("2.5"), Value{}, String("x")}, Ints([]int64{2, 0, 0})},
		{[]Value{String("2.5"), Float(1)}, Floats([]float64{2.5, 1})},
		{[]Value{Ints([]int64{9, 8}), Int(1)}, Ints([]int64{9, 1})},
		{[]Value{Floats([]float64{1.5, 2}), Int(1)}, Ints([]int64{1, 1})},
		{[]Value{Floats([]float64{1.5, 2}), Float(1)}, Floats([]float64{1.5, 1})},
		{[]Value{File(KindFile, []byte("7"))}, Ints([]int64{0})},
	} {
		if got := ArrayOf(test.elems); !got.Equal(test.want) {
			t.Errorf("%v: %v %v, want %v", test.elems, got.Kind(), got, test.want)
		}
	}
}

func TestWithElement(t *testing.T) {
	ints, floats := Ints([]int64{1, 2, 3}), Floats([]float64{1.5})
	for _, test := range []struct {
		v    Value
		i    int
		e    Value
		want Value
	}{
		{ints, 1, Int(9), Ints([]int64{1, 9, 3})},
		{ints, 5, Int(9), Ints([]int64{1, 2, 3, 0, 0, 9})},
		{ints, 1, Float(2.5), Floats([]float64{1, 2.5, 3})},
		{ints, 4, Float(2.5), Floats([]float64{1, 2, 3, 0, 2.5})},
		{floats, 2, Int(3), Floats([]float64{1.5, 0, 3})},
		{floats, 0, Float(2), Floats([]float64{2})},
		{Value{}, 2, Int(5), Ints([]int64{0, 0, 5})},
		{Value{}, 0, Float(1.5), Floats([]float64{1.5})},
		{Int(7), 1, Int(2), Ints([]int64{0, 2})},
		{Float(2.5), 1, Int(1), Ints([]int64{0, 1})},
		{String("str"), 0, Int(4), Ints([]int64{4})},
		{File(KindFile, []byte("xyz")), 0, Float(1), Floats([]float64{1})},
		{ints, 0, String("x"), ints},
		{ints, 0, Value{}, ints},
		{ints, 0, floats, ints},
	} {
		if got := test.v.WithElement(test.i, test.e); !got.Equal(test.want) {
			t.Errorf("%v %v [%d] = %v: %v %v", test.v.Kind(), test.v, test.i, test.e, got.Kind(), got)
		}
	}
	if !ints.Equal(Ints([]int64{1, 2, 3})) || !floats.Equal(Floats([]float64{1.5})) {
		t.Error("the array that was copied has changed")
	}
}

func FuzzTextToNumber(f *testing.F) {
	for _, s := range []string{"", "1", "-.5e1", "1e", "0x1f", "99999999999999999999", " +7."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := String(s)
		x := v.Float()
		if x-x != 0 {
			t.Errorf("%q: %v", s, x)
		}
		trimmed := strings.Trim(s, " \t\n\v\f\r")
		if want, err := strconv.ParseInt(trimmed, 10, 64); err == nil && (v.Int() != want || x != float64(want)) {
			t.Errorf("%q: %d %v", s, v.Int(), x)
		}
	})
}
