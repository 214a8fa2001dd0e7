package wire

import (
	"bytes"
	"fmt"

	"github.com/madara-go/madara/transport"
)

// FilterHeaderSize is the length of the header that each filter puts before
// what it encoded, in bytes.
const FilterHeaderSize = 20

// filterVersion is 1.0.0, as four bytes with a zero first.
var filterVersion = [4]byte{0, 1, 0, 0}

// AppendFilterHeader appends the header of a filter's output of size bytes.
func AppendFilterHeader(dst []byte, id string, size int) []byte {
	dst = order.AppendUint64(dst, uint64(size))
	var name [8]byte
	copy(name[:], id)
	dst = append(dst, name[:]...)
	return append(dst, filterVersion[:]...)
}

// ParseFilterHeader reads a filter's header and returns what it is before.
func ParseFilterHeader(b []byte) (id []byte, payload []byte, err error) {
	if len(b) < FilterHeaderSize {
		return nil, nil, fmt.Errorf("%d bytes, the header of a filter has %d: %w", len(b), FilterHeaderSize, ErrShort)
	}
	id = b[8:16]
	if i := bytes.IndexByte(id, 0); i >= 0 {
		id = id[:i]
	}
	if size := order.Uint64(b); size != uint64(len(b)-FilterHeaderSize) {
		return id, nil, fmt.Errorf("size %d before %d bytes: %w", size, len(b)-FilterHeaderSize, ErrSize)
	}
	if version := order.Uint32(b[16:]); version < order.Uint32(filterVersion[:]) {
		return id, nil, fmt.Errorf("version %v of filter %q: %w", b[17:20], id, ErrFilter)
	}
	return id, b[FilterHeaderSize:], nil
}

// Chain is the filters that messages go through before they are cut into
// fragments, first to last, and back, last to first. The zero value changes
// nothing. It may be used by many goroutines if its filters may.
type Chain []transport.Filter

// Encode returns the message after all filters, the message itself if there are
// none. A filter that panics has failed.
func (c Chain) Encode(message []byte) (_ []byte, err error) {
	defer survive(&err)
	for _, f := range c {
		out, err := f.Encode(make([]byte, FilterHeaderSize, FilterHeaderSize+len(message)+64), message)
		if err != nil {
			return nil, fmt.Errorf("filter %q: %w", f.ID(), err)
		}
		AppendFilterHeader(out[:0], f.ID(), len(out)-FilterHeaderSize)
		message = out
	}
	return message, nil
}

// survive makes an error of what a filter panics with.
func survive(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("a filter panicked: %v", r)
	}
}

// Decode undoes Encode. No filter may make more than limit bytes. A filter that
// panics has failed.
func (c Chain) Decode(message []byte, limit int) (_ []byte, err error) {
	defer survive(&err)
	for i := len(c) - 1; i >= 0; i-- {
		f := c[i]
		id, payload, err := ParseFilterHeader(message)
		if err != nil {
			if _, plain := ParseHeader(message); plain == nil {
				err = ErrFilter
			}
			return nil, fmt.Errorf("filter %q: %w", f.ID(), err)
		}
		if string(id) != f.ID() {
			return nil, fmt.Errorf("filter %q where %q is wanted: %w", id, f.ID(), ErrFilter)
		}
		if message, err = f.Decode(nil, payload, limit); err != nil {
			return nil, fmt.Errorf("filter %q: %w", f.ID(), err)
		}
	}
	return message, nil
}
