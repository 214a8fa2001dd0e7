package karl

import (
	"math"
	"strconv"
	"unsafe"
)

// defaultPrecision is the number of decimals where a program asked for none.
const defaultPrecision = 6

// maxPrecision is the greatest number of decimals that is printed. The longest
// double has 1,074; all that follow are zeros.
const maxPrecision = 1100

// NumberFormat says how doubles become text. The zero value prints fixed
// notation with 6 decimals, as 0.500000. It is a plain value: comparable, and
// not to be changed while another goroutine reads it.
type NumberFormat struct {
	// Scientific prints 1.234568e+04 instead of 12345.678000.
	Scientific bool

	decimals int32 // one more than the precision, 0 for the default
}

// Precision returns the number of decimals that SetPrecision set, -1 for the default.
func (f *NumberFormat) Precision() int64 { return int64(f.decimals) - 1 }

// SetPrecision sets the number of decimals. A negative n sets the default, 6.
// Numbers are printed with at most 1,100 decimals, whatever n is, and an n
// beyond 31 bits is kept as the greatest that fits.
func (f *NumberFormat) SetPrecision(n int64) {
	f.decimals = int32(min(max(n, -1), math.MaxInt32-1) + 1)
}

// appendFloat appends x as a program prints it. A nil f is the default.
func (f *NumberFormat) appendFloat(dst []byte, x float64) []byte {
	if x-x != 0 { // nan or infinite
		switch {
		case x > 0:
			return append(dst, "inf"...)
		case x < 0:
			return append(dst, "-inf"...)
		}
		return append(dst, "nan"...)
	}
	notation, decimals := byte('f'), defaultPrecision
	if f != nil {
		if f.Scientific {
			notation = 'e'
		}
		if f.decimals > 0 {
			decimals = min(int(f.decimals-1), maxPrecision)
		}
	}
	return strconv.AppendFloat(dst, x, notation, decimals, 64)
}

// listSeparator stands between the elements of arrays in texts.
const listSeparator = ", "

// String returns the value as #to_string does with the default format: digits
// of a number, a string as it is, the elements of an array with ", " between
// them, "binary:size=3" for a file, and "" for an uninitialized value.
func (v Value) String() string { return v.Text(nil, listSeparator) }

// Text returns the value as #to_string does: as [Value.String], with doubles in
// format f (nil for the default) and delimiter between the elements of arrays.
// The text of a string is not copied.
func (v Value) Text(f *NumberFormat, delimiter string) string {
	switch v.kind {
	case KindUninitialized:
		return ""
	case KindString, KindXML, KindText:
		return v.text()
	case KindInteger:
		return strconv.FormatInt(int64(v.bits), 10)
	}
	var buf [64]byte
	return string(v.AppendText(buf[:0], f, delimiter))
}

// AppendText appends what [Value.Text] returns to dst and returns the longer slice.
func (v Value) AppendText(dst []byte, f *NumberFormat, delimiter string) []byte {
	switch v.kind {
	case KindInteger:
		return strconv.AppendInt(dst, int64(v.bits), 10)
	case KindDouble:
		return f.appendFloat(dst, v.float())
	case KindString, KindXML, KindText:
		return append(dst, v.text()...)
	case KindIntegers:
		for i, x := range v.ints() {
			if i > 0 {
				dst = append(dst, delimiter...)
			}
			dst = strconv.AppendInt(dst, x, 10)
		}
	case KindDoubles:
		for i, x := range v.floats() {
			if i > 0 {
				dst = append(dst, delimiter...)
			}
			dst = f.appendFloat(dst, x)
		}
	case KindFile, KindJPEG:
		dst = append(dst, "binary:size="...)
		dst = strconv.AppendUint(dst, v.bits, 10)
	}
	return dst
}

// owned makes a string of bytes that nobody writes to any more.
func owned(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
