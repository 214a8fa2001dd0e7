package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/madara-go/madara/karl"
)

func TestAppendValue(t *testing.T) {
	for _, c := range []struct {
		value karl.Value
		want  string
	}{
		{karl.Value{}, `{"type":"uninitialized","value":null}`},
		{karl.Int(math.MinInt64), `{"type":"integer","value":-9223372036854775808}`},
		{karl.Float(2), `{"type":"double","value":2.0}`},
		{karl.Float(math.Copysign(0, -1)), `{"type":"double","value":-0.0}`},
		{karl.Float(1e300), `{"type":"double","value":1e+300}`},
		{karl.Float(0.1), `{"type":"double","value":0.1}`},
		{karl.Float(math.NaN()), `{"type":"double","value":"nan"}`},
		{karl.Floats([]float64{1, math.Inf(1), math.Inf(-1)}), `{"type":"double_array","value":[1.0,"inf","-inf"]}`},
		{karl.Ints(nil), `{"type":"integer_array","value":[]}`},
		{karl.String("a\"\\\n\t\x00\x7f<é>"), `{"type":"string","value":"a\"\\\n\t\u0000\u007f<é>"}`},
		{karl.String("a\xff"), `{"type":"string","value":[97,255]}`},
		{karl.File(karl.KindText, []byte("é")), `{"type":"text","value":"é"}`},
		{karl.File(karl.KindJPEG, []byte{255, 0}), `{"type":"jpeg","value":[255,0]}`},
	} {
		got := string(appendValue(nil, c.value))
		if got != c.want {
			t.Errorf("%s %q = %s, want %s", c.value.Kind(), c.value, got, c.want)
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("%s is not JSON", got)
		}
	}
}

func TestAppendNameKeepsAll(t *testing.T) {
	got := string(appendName(nil, "a\xffb\xed\xa0\x80\ufffd"))
	if want := `"a\udcffb\udced\udca0\udc80` + "\ufffd" + `"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestWithoutShebang(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"#!karl\r\nx", "       \nx"},
		{"#!karl", "      "},
		{"#print(1)", "#print(1)"},
		{" #!karl", " #!karl"},
	} {
		if got := withoutShebang(c.src); got != c.want {
			t.Errorf("%q = %q, want %q", c.src, got, c.want)
		}
	}
	if src := "#!" + strings.Repeat("é", 3) + "\n1 1"; len(withoutShebang(src)) != len(src) {
		t.Error("offsets have moved")
	}
}
