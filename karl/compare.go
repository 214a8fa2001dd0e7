package karl

import (
	"strings"
)

// class is how operators see a kind.
type class uint8

const (
	integral class = iota // uninitialized, integer, integer array
	floating              // double, double array
	textual               // string, xml, text
	opaque                // file, jpeg
)

var kindClasses = [kinds]class{
	KindDouble: floating, KindDoubles: floating,
	KindString: textual, KindXML: textual, KindText: textual,
	KindFile: opaque, KindJPEG: opaque,
}

func (v Value) class() class { return kindClasses[v.kind] }

// order is how two values stand to each other. None is set where neither is the
// greater and they are not the same: nan, and files.
type order uint8

const (
	less order = 1 << iota
	same
	greater
)

// accepts holds the orders for which a comparison is true.
var accepts = [ops]order{
	OpLess: less, OpLessEqual: less | same,
	OpGreater: greater, OpGreaterEqual: greater | same,
}

func orderOf[T int64 | float64](x, y T) order {
	switch {
	case x < y:
		return less
	case x > y:
		return greater
	case x == y:
		return same
	}
	return 0
}

// compare orders two values of any kinds.
func compare(x, y Value) order {
	cx, cy := x.class(), y.class()
	switch {
	case cx == opaque || cy == opaque:
		return 0
	case cx == floating || cy == floating:
		return orderOf(x.Float(), y.Float())
	case cx == textual && cy == textual:
		return orderOfTexts(x.text(), y.text())
	case cy == textual: // a string on the right is read as a double, one on the left as an integer
		return orderOf(float64(x.Int()), y.Float())
	}
	return orderOf(x.Int(), y.Int())
}

// orderOfTexts compares bytes, up to the first zero byte of either, as C does.
func orderOfTexts(x, y string) order {
	if i := strings.IndexByte(x, 0); i >= 0 {
		x = x[:i]
	}
	if i := strings.IndexByte(y, 0); i >= 0 {
		y = y[:i]
	}
	return orderOf(int64(strings.Compare(x, y)), 0)
}

// equal is the == of the language.
func equal(x, y Value) bool {
	if x.kind == KindUninitialized {
		return !y.IsTrue()
	}
	cx, cy := x.class(), y.class()
	switch {
	case cx == opaque || cy == opaque:
		return false
	case cx == floating || cy == floating:
		return x.Float() == y.Float()
	case cx == textual && cy == textual:
		return x.text() == y.text()
	case cx == textual && y.kind == KindUninitialized:
		return x.bits == 0
	case cx == textual:
		return equalNumeral(y.Int(), x.text())
	case cy == textual:
		return equalNumeral(x.Int(), y.text())
	}
	return x.Int() == y.Int()
}

// equalNumeral compares an integer with a text, which counts as a number only
// if its first byte is a digit.
func equalNumeral(n int64, s string) bool {
	return s != "" && isDigit(s[0]) && float64(n) == leadingFloat(s)
}

// Less reports whether x < y in the language, as the operator , asks. Nothing
// is less than nan or a file, nor they than anything.
func Less(x, y Value) bool {
	if x.kind == KindInteger && y.kind == KindInteger {
		return int64(x.bits) < int64(y.bits)
	}
	return compare(x, y) == less
}

// Greater reports whether x > y in the language, as the operator ; asks.
// Nothing is greater than nan or a file, nor they than anything.
func Greater(x, y Value) bool {
	if x.kind == KindInteger && y.kind == KindInteger {
		return int64(x.bits) > int64(y.bits)
	}
	return compare(x, y) == greater
}

// compare is Apply for comparisons of values that are not both integers or both doubles.
func (o Op) compare(x, y Value) Value {
	switch o {
	case OpEqual:
		return Bool(equal(x, y))
	case OpNotEqual:
		return Bool(!equal(x, y))
	}
	return Bool(compare(x, y)&accepts[o] != 0)
}
