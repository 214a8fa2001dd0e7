package karl

import (
	"math"
	"slices"
	"unsafe"
)

// Kind says which type of value a variable holds. It is an ordinal, made for
// tables and switches; [Kind.Code] is the number MADARA's messages, files and
// #type use. The zero Kind is KindUninitialized.
type Kind uint8

// The kinds of a [Value].
const (
	KindUninitialized Kind = iota // never set, cleared or deleted
	KindInteger                   // int64
	KindString                    // bytes without an encoding
	KindDouble                    // float64
	KindFile                      // bytes of a file of unknown type
	KindXML                       // text of an XML file, behaves as a string
	KindText                      // text of a text file, behaves as a string
	KindIntegers                  // []int64
	KindDoubles                   // []float64
	KindJPEG                      // bytes of a JPEG image, behaves as a file

	kinds = iota
)

var kindNames = [kinds]string{
	"uninitialized", "integer", "string", "double", "file",
	"xml", "text", "integer_array", "double_array", "jpeg",
}

// String returns the name of the kind, "integer_array" for KindIntegers.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "invalid"
}

// Code returns the number that stands for the kind in MADARA's messages and
// files and that #type returns: 0, 1, 2, 4, … 256.
func (k Kind) Code() int {
	if k == KindUninitialized || k >= kinds {
		return 0
	}
	return 1 << (k - 1)
}

// KindOfCode returns the kind whose [Kind.Code] is code, and whether there is one.
func KindOfCode(code int) (Kind, bool) {
	for k := range Kind(kinds) {
		if k.Code() == code {
			return k, true
		}
	}
	return 0, false
}

// IsString reports whether values of the kind behave as strings: KindString, KindXML, KindText.
func (k Kind) IsString() bool { return k == KindString || k == KindXML || k == KindText }

// IsFile reports whether values of the kind are opaque bytes: KindFile, KindJPEG.
func (k Kind) IsFile() bool { return k == KindFile || k == KindJPEG }

// IsArray reports whether the kind is KindIntegers or KindDoubles.
func (k Kind) IsArray() bool { return k == KindIntegers || k == KindDoubles }

// Value is one value of the language: what a variable holds and what an
// expression returns. Values are immutable and may be copied and shared
// between goroutines freely. The zero Value is uninitialized: false, 0 and ""
// in expressions. Compare with [Value.Equal]; == does not compile.
// MADARA knows it as KnowledgeRecord, without the metadata.
type Value struct {
	_    [0]func()
	kind Kind
	bits uint64         // the integer, the bits of the double, or the length of the payload
	data unsafe.Pointer // first byte or element of the immutable payload; nil when empty
}

// Int returns an integer value.
func Int(i int64) Value { return Value{kind: KindInteger, bits: uint64(i)} }

// Float returns a double value.
func Float(f float64) Value { return Value{kind: KindDouble, bits: math.Float64bits(f)} }

// Bool returns the integer 1 for true and 0 for false, as comparisons do.
func Bool(b bool) Value {
	if b {
		return Int(1)
	}
	return Int(0)
}

// String returns a string value. The bytes need not be UTF-8.
func String(s string) Value { return stringOf(KindString, s) }

func stringOf(k Kind, s string) Value {
	return Value{kind: k, bits: uint64(len(s)), data: unsafe.Pointer(unsafe.StringData(s))}
}

// Ints returns an integer array holding a copy of s.
func Ints(s []int64) Value { return intsOf(slices.Clone(s)) }

// Floats returns a double array holding a copy of s.
func Floats(s []float64) Value { return floatsOf(slices.Clone(s)) }

// intsOf and floatsOf take the slice over: nobody may write to it any more.
func intsOf(s []int64) Value {
	return Value{kind: KindIntegers, bits: uint64(len(s)), data: unsafe.Pointer(unsafe.SliceData(s))}
}

func floatsOf(s []float64) Value {
	return Value{kind: KindDoubles, bits: uint64(len(s)), data: unsafe.Pointer(unsafe.SliceData(s))}
}

// File returns the contents of a file as a value of kind KindFile, KindJPEG,
// KindXML or KindText (KindString is taken too), holding a copy of b. Any other
// kind gives KindFile.
func File(k Kind, b []byte) Value {
	if !k.IsString() && !k.IsFile() {
		k = KindFile
	}
	return stringOf(k, string(b))
}

// Words returns the three machine words of the value, for code that lays
// values out itself, as the knowledge base does in its records: kind, bits (the
// integer, the bits of the double, or the payload's length) and payload (its
// first byte or element). The payload must not be written to.
func (v Value) Words() (k Kind, bits uint64, payload unsafe.Pointer) { return v.kind, v.bits, v.data }

// FromWords makes a value of words that [Value.Words] returned; anything else
// is undefined. The payload must stay unchanged as long as the value lives.
func FromWords(k Kind, bits uint64, payload unsafe.Pointer) Value {
	return Value{kind: k, bits: bits, data: payload}
}

// Kind returns the kind of the value.
func (v Value) Kind() Kind { return v.kind }

// Exists reports whether the value is anything but uninitialized.
func (v Value) Exists() bool { return v.kind != KindUninitialized }

// text returns the payload of a string or file without copying.
func (v Value) text() string { return unsafe.String((*byte)(v.data), int(v.bits)) }

func (v Value) ints() []int64     { return unsafe.Slice((*int64)(v.data), int(v.bits)) }
func (v Value) floats() []float64 { return unsafe.Slice((*float64)(v.data), int(v.bits)) }

func (v Value) float() float64 { return math.Float64frombits(v.bits) }

// Len returns the number of elements of an array, the number of bytes of a
// string or file, 1 for a number and 0 for an uninitialized value. (#size is
// the language's own measure and counts differently.)
func (v Value) Len() int {
	switch v.kind {
	case KindUninitialized:
		return 0
	case KindInteger, KindDouble:
		return 1
	}
	return int(v.bits)
}

// At returns element i of an array, and whether there is one. Anything but an
// array has none.
func (v Value) At(i int) (Value, bool) {
	if i < 0 || uint64(i) >= v.bits {
		return Value{}, false
	}
	switch v.kind {
	case KindIntegers:
		return Int(v.ints()[i]), true
	case KindDoubles:
		return Float(v.floats()[i]), true
	}
	return Value{}, false
}

// Equal reports whether v and w are the same value: same kind, same contents.
// Doubles are the same when their bits are, so a nan equals itself. The
// language's == is [OpEqual].
func (v Value) Equal(w Value) bool {
	if v.kind != w.kind || v.bits != w.bits {
		return false
	}
	switch v.kind {
	case KindIntegers:
		return slices.Equal(v.ints(), w.ints())
	case KindDoubles:
		return slices.EqualFunc(v.floats(), w.floats(), func(a, b float64) bool {
			return math.Float64bits(a) == math.Float64bits(b)
		})
	case KindString, KindFile, KindXML, KindText, KindJPEG:
		return v.text() == w.text()
	}
	return true
}

// IsTrue is the truth of the value in conditions: a number unless it is 0 or
// nan, an array if element 0 is true, a string or file if it is not empty.
func (v Value) IsTrue() bool {
	switch v.kind {
	case KindInteger:
		return v.bits != 0
	case KindDouble:
		f := v.float()
		return f < 0 || f > 0
	case KindIntegers:
		return v.bits > 0 && *(*int64)(v.data) != 0
	case KindDoubles:
		if v.bits == 0 {
			return false
		}
		f := *(*float64)(v.data)
		return f < 0 || f > 0
	case KindUninitialized:
		return false
	}
	return v.bits > 0
}
