package karl

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNumberFormat(t *testing.T) {
	tests := []struct {
		x          float64
		precision  int64
		scientific bool
		want       string
	}{
		{0.5, -1, false, "0.500000"},
		{0, -1, false, "0.000000"},
		{math.Copysign(0, -1), -1, false, "-0.000000"},
		{1e20, -1, false, "100000000000000000000.000000"},
		{1e-7, -1, false, "0.000000"},
		{5e-7, -1, false, "0.000000"}, // below the half in binary
		{0.0000015, -1, false, "0.000002"},
		{123456.789, -1, false, "123456.789000"},
		{nan, -1, false, "nan"},
		{math.Copysign(nan, -1), -1, false, "nan"},
		{inf, 0, true, "inf"},
		{-inf, 3, false, "-inf"},
		{0.5, 0, false, "0"}, // ties go to the even digit
		{1.5, 0, false, "2"},
		{2.5, 0, false, "2"},
		{-0.4, 0, false, "-0"},
		{0.25, 1, false, "0.2"},
		{0.35, 1, false, "0.3"},
		{0.1, 17, false, "0.10000000000000001"},
		{12345.678, -1, true, "1.234568e+04"},
		{12345.678, 2, true, "1.23e+04"},
		{1e100, 0, true, "1e+100"},
		{0.00012, -1, true, "1.200000e-04"},
		{0, -1, true, "0.000000e+00"},
		{-7, -5, false, "-7.000000"},
	}
	for _, test := range tests {
		f := &NumberFormat{Scientific: test.scientific}
		f.SetPrecision(test.precision)
		if got := Float(test.x).Text(f, ""); got != test.want {
			t.Errorf("%v with precision %d, scientific %v: %q, want %q", test.x, test.precision, test.scientific, got, test.want)
		}
	}
	if got := Float(1.0/3).Text(nil, ""); got != "0.333333" {
		t.Error(got)
	}
}

func TestPrecision(t *testing.T) {
	var f NumberFormat
	if f.Precision() != -1 {
		t.Error("the zero value is not the default")
	}
	for n, want := range map[int64]int64{0: 0, 3: 3, -1: -1, -9: -1, math.MinInt64: -1, math.MaxInt64: math.MaxInt32 - 1} {
		f.SetPrecision(n)
		if got := f.Precision(); got != want {
			t.Errorf("%d: %d", n, got)
		}
	}
	f.SetPrecision(math.MaxInt64)
	if n := len(Float(5e-324).Text(&f, "")); n != maxPrecision+2 {
		t.Errorf("%d bytes", n)
	}
	f.SetPrecision(-1)
	if f != (NumberFormat{}) {
		t.Error("not the zero value again")
	}
}

func TestText(t *testing.T) {
	tests := []struct {
		v    Value
		want string
	}{
		{Value{}, ""},
		{Int(math.MinInt64), "-9223372036854775808"},
		{Float(2), "2.000000"},
		{String("a\x00é"), "a\x00é"},
		{File(KindXML, []byte("<a/>")), "<a/>"},
		{File(KindText, []byte("t")), "t"},
		{File(KindFile, []byte("xyz")), "binary:size=3"},
		{File(KindJPEG, nil), "binary:size=0"},
		{Ints([]int64{1, -2, 3}), "1, -2, 3"},
		{Ints(nil), ""},
		{Floats([]float64{1.5, nan}), "1.500000, nan"},
	}
	for _, test := range tests {
		if got := test.v.String(); got != test.want {
			t.Errorf("%v: %q, want %q", test.v.Kind(), got, test.want)
		}
		if got := string(test.v.AppendText([]byte(">"), nil, ", ")); got != ">"+test.want {
			t.Errorf("%v: appended %q, want %q", test.v.Kind(), got, test.want)
		}
	}
	if got := Ints([]int64{1, 2, 3}).Text(nil, ""); got != "123" {
		t.Error(got)
	}
}

func TestTextOfArrayJoinsElements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := anyValue().Draw(t, "value")
		var f NumberFormat
		f.Scientific = rapid.Bool().Draw(t, "scientific")
		f.SetPrecision(rapid.Int64Range(-1, 20).Draw(t, "precision"))
		delimiter := rapid.SampledFrom([]string{"", ", ", "::"}).Draw(t, "delimiter")
		if v.Kind().IsArray() {
			var parts []string
			for i := range v.Len() {
				e, _ := v.At(i)
				parts = append(parts, e.Text(&f, ""))
			}
			if got, want := v.Text(&f, delimiter), strings.Join(parts, delimiter); got != want {
				t.Fatalf("%q, want %q", got, want)
			}
		}
		if got, want := string(v.AppendText(nil, &f, delimiter)), v.Text(&f, delimiter); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}

func BenchmarkAppendText(b *testing.B) {
	buf := make([]byte, 0, 128)
	for name, v := range map[string]Value{
		"integer": Int(123456), "double": Float(12.3456789), "doubles": Floats([]float64{1.5, 2.25, 1e9}),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v.AppendText(buf[:0], nil, ", ")
			}
		})
	}
}
