package karl

import (
	"testing"

	"pgregory.net/rapid"
)

func TestCompare(t *testing.T) {
	str := func(s string) Value { return String(s) }
	empty, file := Value{}, File(KindFile, []byte("a"))
	for _, test := range []struct {
		x, y Value
		want string // the operators that are true
	}{
		{Int(1), Int(2), "!= < <="},
		{Int(2), Int(2), "== <= >="},
		{Int(1<<63 - 1), Int(1<<63 - 2), "!= > >="},
		{Int(1<<53 + 1), Float(1 << 53), "== <= >="}, // as doubles
		{Float(nan), Float(nan), "!="},
		{Float(nan), Int(1), "!="},
		{Int(1), Float(nan), "!="},
		{Float(inf), Int(1<<63 - 1), "!= > >="},
		{empty, empty, "== <= >="},
		{empty, Float(nan), "=="},
		{empty, str(""), "== <= >="},
		{empty, str("0"), "!= <= >="},
		{empty, str("1"), "!= < <="},
		{empty, Ints([]int64{0, 5}), "== <= >="},
		{empty, File(KindFile, nil), "=="},
		{empty, file, "!="},
		{File(KindFile, nil), empty, "!="},
		{Float(nan), empty, "!="},
		{str(""), empty, "== <= >="},
		{str("0"), empty, "!= <= >="},
		{Int(5), str(""), "!= > >="},
		{Int(0), str(""), "!= <= >="},
		{str(""), Int(0), "!= <= >="},
		{Int(5), str("5abc"), "== <= >="},
		{Int(5), str(" 5"), "!= <= >="},
		{Int(-5), str("-5"), "!= <= >="},
		{Int(5), str("5e"), "!= > >="}, // an exponent without digits spoils the number
		{Int(10), str("10.5"), "!= < <="},
		{str("10.5"), Int(10), "!= <= >="}, // on the left a string is an integer
		{str("10.5"), Float(10), "!= > >="},
		{str("abc"), Float(0), "== <= >="},
		{Float(0), str("abc"), "== <= >="},
		{Float(5), str(" 5"), "== <= >="},
		{str("10"), str("9"), "!= < <="},
		{str("ab"), str("abc"), "!= < <="},
		{str("é"), str("z"), "!= > >="},
		{str("a\x00b"), str("a\x00c"), "!= <= >="}, // order ends at the zero byte
		{str("a\x00b"), str("a"), "!= <= >="},
		{File(KindXML, []byte("a")), str("a"), "== <= >="},
		{Ints([]int64{1, 2}), Ints([]int64{1, 3}), "== <= >="},
		{Ints(nil), Int(0), "== <= >="},
		{Floats([]float64{1.5}), Float(1.5), "== <= >="},
		{Ints([]int64{3, 9}), str("3"), "== <= >="},
		{str("2"), Ints([]int64{1, 9}), "!= > >="},
		{file, file, "!="},
		{file, Int(1), "!="},
		{Int(1), file, "!="},
		{str("a"), file, "!="},
	} {
		got := ""
		for o := OpEqual; o <= OpGreaterEqual; o++ {
			if o.Apply(test.x, test.y, nil).IsTrue() {
				got += " " + o.String()
			}
		}
		if got != " "+test.want {
			t.Errorf("%v %q and %v %q:%s, want %s", test.x.Kind(), test.x, test.y.Kind(), test.y, got, test.want)
		}
	}
}

func TestComparisonsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := anyValue().Draw(t, "x"), anyValue().Draw(t, "y")
		is := func(o Op) bool {
			v := o.Apply(x, y, nil)
			if v.Kind() != KindInteger || v.Int() != 0 && v.Int() != 1 {
				t.Fatalf("%s gives %v", o, v)
			}
			return v.IsTrue()
		}
		less, greater := is(OpLess), is(OpGreater)
		if less != Less(x, y) || greater != Greater(x, y) {
			t.Fatal("Less or Greater differs from the operator")
		}
		if less && greater || less && !is(OpLessEqual) || greater && !is(OpGreaterEqual) {
			t.Fatal("the orders contradict each other")
		}
		if is(OpEqual) == is(OpNotEqual) {
			t.Fatal("== and != are not opposites")
		}
		if (less || greater) && is(OpLessEqual) && is(OpGreaterEqual) {
			t.Fatal("<= and >= although one is less")
		}
	})
}
