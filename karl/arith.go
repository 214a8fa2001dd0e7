package karl

import "math"

// Apply returns x o y, where o is one of the operators + - * / % == != < <= >
// >=; any other gives an uninitialized value. It never fails: a division by
// zero is nan, integers wrap around. Format f (nil for the default) is for
// doubles appended to a string. Numbers allocate nothing.
func (o Op) Apply(x, y Value, f *NumberFormat) Value {
	if x.kind == KindInteger && y.kind == KindInteger {
		return o.integers(int64(x.bits), int64(y.bits))
	}
	if x.kind == KindDouble && y.kind == KindDouble {
		return o.doubles(x.float(), y.float())
	}
	if o >= OpEqual && o <= OpGreaterEqual {
		return o.compare(x, y)
	}
	return o.mixed(x, y, f)
}

func (o Op) integers(x, y int64) Value {
	switch o {
	case OpAdd:
		return Int(x + y)
	case OpSub:
		return Int(x - y)
	case OpMul:
		return Int(x * y)
	case OpDiv:
		if y == 0 {
			return Float(math.NaN())
		}
		return Int(x / y) // Go defines the least integer by -1 as wrapping
	case OpRem:
		if y == 0 {
			return Float(math.NaN())
		}
		return Int(x % y)
	case OpEqual:
		return Bool(x == y)
	case OpNotEqual:
		return Bool(x != y)
	case OpLess:
		return Bool(x < y)
	case OpLessEqual:
		return Bool(x <= y)
	case OpGreater:
		return Bool(x > y)
	case OpGreaterEqual:
		return Bool(x >= y)
	}
	return Value{}
}

func (o Op) doubles(x, y float64) Value {
	switch o {
	case OpAdd:
		return Float(x + y)
	case OpSub:
		return Float(x - y)
	case OpMul:
		return Float(x * y)
	case OpDiv:
		if y == 0 {
			return Float(math.NaN())
		}
		return Float(x / y)
	case OpRem: // defined for integers only
		return Float(x)
	case OpEqual:
		return Bool(x == y)
	case OpNotEqual:
		return Bool(x != y)
	case OpLess:
		return Bool(x < y)
	case OpLessEqual:
		return Bool(x <= y)
	case OpGreater:
		return Bool(x > y)
	case OpGreaterEqual:
		return Bool(x >= y)
	}
	return Value{}
}

// mixed is Apply for arithmetic on any kinds.
func (o Op) mixed(x, y Value, f *NumberFormat) Value {
	if o < OpAdd || o > OpRem {
		return Value{}
	}
	cx, cy := x.class(), y.class()
	switch {
	case cx == opaque:
		return x
	case cx == textual && o == OpAdd:
		return appendTo(x.text(), y, f)
	case cx == integral && cy == integral:
		return o.integers(x.Int(), y.Int())
	case o == OpRem:
		return x
	}
	return o.doubles(x.Float(), y.Float())
}

// appendTo returns the string s followed by the text of v.
func appendTo(s string, v Value, f *NumberFormat) Value {
	if v.class() == textual {
		return String(s + v.text())
	}
	var scratch [64]byte
	text := v.AppendText(scratch[:0], f, listSeparator)
	b := make([]byte, 0, len(s)+len(text))
	return String(owned(append(append(b, s...), text...)))
}

// Neg returns -v: a number with its sign changed, where the least integer stays
// as it is, and any other value unchanged.
func (v Value) Neg() Value {
	switch v.kind {
	case KindInteger:
		return Int(-int64(v.bits))
	case KindDouble:
		return Float(-v.float())
	}
	return v
}

// Plus returns +v, which is 0 + v: a number, element 0 of an array, the number
// that a string begins with.
func (v Value) Plus() Value {
	if v.kind == KindInteger {
		return v
	}
	return OpAdd.Apply(Int(0), v, nil)
}

// Not returns !v, the integer 1 if v is false and 0 if it is true, as [Value.IsTrue] says.
func (v Value) Not() Value { return Bool(!v.IsTrue()) }

// Step returns what ++ (delta 1) and -- (delta -1) make of v: a number that much
// greater, the same of element 0 of an array, delta itself of an uninitialized
// value; strings and files stay as they are.
func (v Value) Step(delta int64) Value {
	switch v.class() {
	case integral:
		return Int(v.Int() + delta)
	case floating:
		return Float(v.Float() + float64(delta))
	}
	return v
}
