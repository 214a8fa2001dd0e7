package karl

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
)

// Int returns the value as #to_integer does. A double is cut toward zero; one
// that is too large gives the nearest int64, nan and infinities give 0. A
// string gives the decimal digits it begins with, after white space and a sign,
// or the nearest int64, or 0 without digits. An array gives its element 0;
// files, empty arrays and uninitialized values give 0.
func (v Value) Int() int64 {
	if v.kind == KindInteger {
		return int64(v.bits)
	}
	return v.convertInt()
}

func (v Value) convertInt() int64 {
	switch v.kind {
	case KindDouble:
		return truncate(v.float())
	case KindString, KindXML, KindText:
		return leadingInt(v.text())
	case KindIntegers:
		if v.bits > 0 {
			return *(*int64)(v.data)
		}
	case KindDoubles:
		if v.bits > 0 {
			return truncate(*(*float64)(v.data))
		}
	}
	return 0
}

// Float returns the value as #to_double does. A string gives the decimal number
// it begins with, after white space: 0 without one or with an exponent that has
// no digits, and the greatest double for one that is too large. An array gives
// its element 0; files, empty arrays and uninitialized values give 0.
func (v Value) Float() float64 {
	if v.kind == KindDouble {
		return v.float()
	}
	return v.convertFloat()
}

func (v Value) convertFloat() float64 {
	switch v.kind {
	case KindInteger:
		return float64(int64(v.bits))
	case KindString, KindXML, KindText:
		return leadingFloat(v.text())
	case KindIntegers:
		if v.bits > 0 {
			return float64(*(*int64)(v.data))
		}
	case KindDoubles:
		if v.bits > 0 {
			return *(*float64)(v.data)
		}
	}
	return 0
}

// truncate cuts f toward zero. Go leaves conversions out of range to the
// machine, so they are told apart first.
func truncate(f float64) int64 {
	const limit = 1 << 63
	switch {
	case f >= -limit && f < limit:
		return int64(f)
	case f >= limit && f <= math.MaxFloat64:
		return math.MaxInt64
	case f < -limit && f >= -math.MaxFloat64:
		return math.MinInt64
	}
	return 0 // nan or infinite
}

// skipSpace returns how many bytes of white space s begins with.
func skipSpace(s string) int {
	i := 0
	for i < len(s) && (s[i] == ' ' || s[i] >= '\t' && s[i] <= '\r') {
		i++
	}
	return i
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// skipDigits returns the index of the first byte of s from i on that is no digit.
func skipDigits(s string, i int) int {
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i
}

func isSign(s string, i int) bool { return i < len(s) && (s[i] == '+' || s[i] == '-') }

func leadingInt(s string) int64 {
	i := skipSpace(s)
	negative := false
	if isSign(s, i) {
		negative = s[i] == '-'
		i++
	}
	const limit = 1 << 63 // the magnitude of the least int64
	n := uint64(0)
	for ; i < len(s) && isDigit(s[i]); i++ {
		if n > limit/10 {
			n = limit
			break
		}
		n = min(n*10+uint64(s[i]-'0'), limit)
	}
	if negative {
		return -int64(n)
	}
	return int64(min(n, math.MaxInt64))
}

func leadingFloat(s string) float64 {
	start := skipSpace(s)
	i := start
	if isSign(s, i) {
		i++
	}
	digits := i
	i = skipDigits(s, i)
	found := i > digits
	if i < len(s) && s[i] == '.' {
		fraction := i + 1
		i = skipDigits(s, fraction)
		found = found || i > fraction
	}
	if !found {
		return 0
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if isSign(s, i) {
			i++
		}
		exponent := i
		i = skipDigits(s, i)
		if i == exponent {
			return 0
		}
	}
	f, err := strconv.ParseFloat(s[start:i], 64)
	if err != nil { // the text is a number, so it can only be too large
		return math.Copysign(math.MaxFloat64, f)
	}
	return f
}

// AsInts returns the elements of [Value.Integers] in a slice of the caller's own.
func (v Value) AsInts() []int64 {
	switch v.kind {
	case KindUninitialized:
		return nil
	case KindInteger, KindDouble:
		return []int64{v.Int()}
	case KindIntegers:
		return append([]int64(nil), v.ints()...)
	case KindDoubles:
		s := make([]int64, v.bits)
		for i, f := range v.floats() {
			s[i] = truncate(f)
		}
		return s
	}
	s := make([]int64, v.Size())
	for i, c := range []byte(v.text()) {
		s[i] = int64(c)
	}
	return s
}

// AsFloats returns the elements of [Value.Doubles] in a slice of the caller's own.
func (v Value) AsFloats() []float64 {
	switch v.kind {
	case KindUninitialized:
		return nil
	case KindInteger, KindDouble:
		return []float64{v.Float()}
	case KindIntegers:
		s := make([]float64, v.bits)
		for i, n := range v.ints() {
			s[i] = float64(n)
		}
		return s
	case KindDoubles:
		return append([]float64(nil), v.floats()...)
	}
	s := make([]float64, v.Size())
	for i, c := range []byte(v.text()) {
		s[i] = float64(c)
	}
	return s
}

// Integers returns the value as #to_integers does: an array of as many integers
// as the value has elements. A number has one, a string one for each byte and a
// zero behind the last, a file one for each byte, an uninitialized value none.
// Doubles are cut as by [Value.Int].
func (v Value) Integers() Value {
	if v.kind == KindIntegers {
		return v
	}
	return intsOf(v.AsInts())
}

// Doubles returns the value as #to_doubles does: as [Value.Integers], with
// doubles for elements, which keep their fractions.
func (v Value) Doubles() Value {
	if v.kind == KindDoubles {
		return v
	}
	return floatsOf(v.AsFloats())
}

// Buffer returns the value as #buffer does, as a file: the bytes of a string or
// file, 8 bytes for each number, least first, and none for an uninitialized value.
func (v Value) Buffer() Value {
	switch v.kind {
	case KindString, KindXML, KindText, KindFile, KindJPEG:
		v.kind = KindFile
		return v
	case KindInteger, KindDouble:
		return stringOf(KindFile, owned(binary.LittleEndian.AppendUint64(nil, v.bits)))
	case KindIntegers:
		b := make([]byte, 0, 8*v.bits)
		for _, n := range v.ints() {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
		return stringOf(KindFile, owned(b))
	case KindDoubles:
		b := make([]byte, 0, 8*v.bits)
		for _, f := range v.floats() {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
		}
		return stringOf(KindFile, owned(b))
	}
	return stringOf(KindFile, "")
}

// Bytes returns a copy of what #write_file writes: the bytes of a string or
// file, and the text of [Value.String] of any other value.
func (v Value) Bytes() []byte {
	if v.kind.IsFile() {
		return []byte(v.text())
	}
	return v.AppendText(nil, nil, listSeparator)
}

// Size returns what #size does: the number of bytes of a string and one more,
// the elements of an array, the bytes of a file, and 1 for any other value.
// [Value.Len] is the length Go programs expect.
func (v Value) Size() int64 {
	switch v.kind {
	case KindUninitialized, KindInteger, KindDouble:
		return 1
	case KindString, KindXML, KindText:
		return int64(v.bits) + 1
	}
	return int64(v.bits)
}

// Fragment returns what #fragment does: the bytes or elements first to last,
// counted from 0, of a value of the same kind. It is empty when first is
// negative, behind last or behind the end, and ends where the value does. A
// number or an uninitialized value gives an uninitialized one.
func (v Value) Fragment(first, last int64) Value {
	switch v.kind {
	case KindUninitialized, KindInteger, KindDouble:
		return Value{}
	}
	length := int64(v.bits)
	if first == 0 && last >= length-1 {
		return v
	}
	from, to := 0, 0
	if first >= 0 && first < length && first <= last {
		from, to = int(first), int(min(last, length-1))+1
	}
	// The part is copied, so that a small one does not keep all of a large value.
	switch v.kind {
	case KindIntegers:
		return Ints(v.ints()[from:to])
	case KindDoubles:
		return Floats(v.floats()[from:to])
	}
	return stringOf(v.kind, strings.Clone(v.text()[from:to]))
}

// ArrayOf returns the value of an array literal: doubles if any element is of
// KindDouble, integers otherwise, with each element converted by [Value.Float]
// or [Value.Int]. No elements give an uninitialized value. It keeps nothing of elems.
func ArrayOf(elems []Value) Value {
	if len(elems) == 0 {
		return Value{}
	}
	for i := range elems {
		if elems[i].kind == KindDouble {
			s := make([]float64, len(elems))
			for i, e := range elems {
				s[i] = e.Float()
			}
			return floatsOf(s)
		}
	}
	s := make([]int64, len(elems))
	for i, e := range elems {
		s[i] = e.Int()
	}
	return intsOf(s)
}

// WithElement returns a copy of the array v whose element i is e, an integer or
// a double; any other e returns v as it is. A short array grows by zeros. A
// double turns an array of integers into doubles, and an integer stored among
// doubles becomes one. Where v is no array, an array of zeros and e replaces it.
// It panics if i is negative; how long the array may get is the caller's to check.
func (v Value) WithElement(i int, e Value) Value {
	if e.kind != KindInteger && e.kind != KindDouble {
		return v
	}
	length := i + 1
	if v.kind.IsArray() {
		length = max(length, int(v.bits))
	}
	if v.kind != KindDoubles && e.kind == KindInteger {
		s := make([]int64, length)
		if v.kind == KindIntegers {
			copy(s, v.ints())
		}
		s[i] = int64(e.bits)
		return intsOf(s)
	}
	s := make([]float64, length)
	switch v.kind {
	case KindIntegers:
		for i, n := range v.ints() {
			s[i] = float64(n)
		}
	case KindDoubles:
		copy(s, v.floats())
	}
	s[i] = e.Float()
	return floatsOf(s)
}

// AppendBytes appends the bytes of a string or file to dst, and nothing for any
// other kind.
func (v Value) AppendBytes(dst []byte) []byte {
	if v.kind.IsString() || v.kind.IsFile() {
		return append(dst, v.text()...)
	}
	return dst
}

// MakeInts returns an integer array of n elements that at gives.
func MakeInts(n int, at func(i int) int64) Value {
	s := make([]int64, n)
	for i := range s {
		s[i] = at(i)
	}
	return intsOf(s)
}

// MakeFloats returns a double array of n elements that at gives.
func MakeFloats(n int, at func(i int) float64) Value {
	s := make([]float64, n)
	for i := range s {
		s[i] = at(i)
	}
	return floatsOf(s)
}
