package wire

import (
	"bytes"
	"fmt"
	"math"

	"github.com/madara-go/madara/karl"
)

// Record is one named value of a message.
type Record struct {
	Name  []byte
	Value karl.Value
	Time  uint64 // of insertion, nanoseconds of the writer's monotonic clock
}

// recordHead is the length of a record without name and value.
const recordHead = 4 + 1 + 4 + 4 + 8

// MinRecord is the length of the shortest record that can be applied, in bytes.
const MinRecord = recordHead + 1

// AppendRecord appends a record to dst. A value that does not exist has no form
// on the wire: it is left out.
func AppendRecord(dst []byte, name string, v karl.Value, time uint64) []byte {
	if !v.Exists() {
		return dst
	}
	dst = order.AppendUint32(dst, uint32(len(name)+1))
	dst = append(append(dst, name...), 0)
	dst = order.AppendUint32(dst, uint32(v.Kind().Code()))
	switch k := v.Kind(); k {
	case karl.KindInteger:
		dst = order.AppendUint64(order.AppendUint32(dst, 1), time)
		return order.AppendUint64(dst, uint64(v.Int()))
	case karl.KindDouble:
		dst = order.AppendUint64(order.AppendUint32(dst, 1), time)
		return order.AppendUint64(dst, math.Float64bits(v.Float()))
	case karl.KindIntegers, karl.KindDoubles:
		dst = order.AppendUint64(order.AppendUint32(dst, uint32(v.Len())), time)
		for i := range v.Len() {
			_, bits, _ := element(v, i)
			dst = order.AppendUint64(dst, bits)
		}
		return dst
	default:
		n := v.Len()
		if k.IsString() {
			n++
		}
		dst = order.AppendUint64(order.AppendUint32(dst, uint32(n)), time)
		dst = v.AppendBytes(dst)
		if k.IsString() {
			dst = append(dst, 0)
		}
		return dst
	}
}

func element(v karl.Value, i int) (karl.Kind, uint64, bool) {
	x, ok := v.At(i)
	k, bits, _ := x.Words()
	return k, bits, ok
}

// RecordSize returns the length of a record in bytes, 0 of a value that does not exist.
func RecordSize(name string, v karl.Value) int {
	n := recordHead + len(name)
	switch k := v.Kind(); {
	case k == karl.KindUninitialized:
		return 0
	case k == karl.KindInteger || k == karl.KindDouble:
		return n + 8
	case k.IsArray():
		return n + 8*v.Len()
	case k.IsString():
		return n + v.Len() + 1
	}
	return n + v.Len()
}

// Updates reads the records of a message, one after the other.
type Updates struct {
	rest []byte
	left uint32
	err  error
}

// ReadUpdates returns the records behind a header. count is Header.Updates; the
// body may hold more, which are ignored, or fewer.
func ReadUpdates(body []byte, count uint32) Updates { return Updates{rest: body, left: count} }

// Next reads the next record into r and reports whether there was one. The name
// is a view into the message; the value is not.
func (u *Updates) Next(r *Record) bool {
	if u.left == 0 || u.err != nil || len(u.rest) == 0 {
		if u.left > 0 && u.err == nil {
			u.err = fmt.Errorf("%d updates are missing: %w", u.left, ErrShort)
		}
		return false
	}
	rest, err := ParseRecord(u.rest, r)
	if err != nil {
		u.err = err
		return false
	}
	u.rest = rest
	u.left--
	return true
}

// Err returns why Next ended before the count of records: what was read before is good.
func (u *Updates) Err() error { return u.err }

// Rest returns the bytes that were not read.
func (u *Updates) Rest() []byte { return u.rest }

// ParseRecord reads the record that b begins with and returns what is behind it.
// The error is ErrRecord or ErrShort, or ErrCount for a count that no sender
// makes: then nothing of the message is to be used.
func ParseRecord(b []byte, r *Record) (rest []byte, err error) {
	if len(b) < 4 {
		return b, fmt.Errorf("%d bytes where a record should be: %w", len(b), ErrShort)
	}
	size := uint64(order.Uint32(b))
	if size == 0 || size > uint64(len(b)-4) {
		return b, fmt.Errorf("a name of %d bytes in a record of %d: %w", size, len(b), ErrRecord)
	}
	name := b[4 : 4+size]
	if name[size-1] != 0 {
		return b, fmt.Errorf("a name without its final NUL: %w", ErrRecord)
	}
	if i := bytes.IndexByte(name, 0); i >= 0 {
		name = name[:i]
	}
	v := b[4+size:]
	if len(v) < 16 {
		return b, fmt.Errorf("%q: %d bytes where a value should be: %w", clip(name), len(v), ErrShort)
	}
	code, count := order.Uint32(v), uint64(order.Uint32(v[4:]))
	r.Name, r.Time = name, order.Uint64(v[8:])
	data := v[16:]
	kind, ok := karl.KindOfCode(int(code))
	if !ok || kind == karl.KindUninitialized || code > 256 {
		return b, fmt.Errorf("%q: unknown type %d: %w", clip(name), code, ErrRecord)
	}
	length := count
	switch {
	case kind == karl.KindInteger || kind == karl.KindDouble:
		if count != 1 {
			return b, fmt.Errorf("%q: count %d for one %s: %w", clip(name), count, kind, ErrCount)
		}
		length = 8
	case kind.IsArray():
		if count >= 1<<29 {
			return b, fmt.Errorf("%q: an array of %d elements: %w", clip(name), count, ErrCount)
		}
		length = 8 * count
	}
	if length > uint64(len(data)) {
		return b, fmt.Errorf("%q: %d bytes of value, %d are there: %w", clip(name), length, len(data), ErrRecord)
	}
	data, rest = data[:length], data[length:]
	switch kind {
	case karl.KindInteger:
		r.Value = karl.Int(int64(order.Uint64(data)))
	case karl.KindDouble:
		r.Value = karl.Float(math.Float64frombits(order.Uint64(data)))
	case karl.KindIntegers:
		r.Value = karl.MakeInts(int(count), func(i int) int64 { return int64(order.Uint64(data[8*i:])) })
	case karl.KindDoubles:
		r.Value = karl.MakeFloats(int(count), func(i int) float64 { return math.Float64frombits(order.Uint64(data[8*i:])) })
	case karl.KindString, karl.KindXML, karl.KindText:
		if length > 0 {
			data = data[:length-1] // the NUL, whatever is there
		}
		r.Value = karl.File(kind, data)
	default:
		r.Value = karl.File(kind, data)
	}
	return rest, nil
}

// RecordTime returns the offset of the time in a record that ParseRecord has read.
func RecordTime(record []byte) int { return 4 + int(order.Uint32(record)) + 8 }

func clip(name []byte) []byte { return name[:min(len(name), 64)] }
