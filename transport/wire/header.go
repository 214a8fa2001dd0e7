// Package wire is the bytes of MADARA's messages, both ways. Every length that
// bytes claim is compared with what is there before anything is allocated or
// copied. Integers and doubles are little-endian. transport/doc/wire.md has the
// layouts.
//
// An encoder appends to a buffer of the caller's and allocates nothing else. A
// decoder gives views into the message, valid as long as that is.
package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

var order = binary.LittleEndian

// HeaderKind tells the three headers apart.
type HeaderKind uint8

// The kinds of header.
const (
	Normal   HeaderKind = iota
	Reduced             // without domain, originator, type and quality
	Fragment            // of a part of an encoded message
)

// String returns normal, reduced or fragment.
func (k HeaderKind) String() string {
	switch k {
	case Normal:
		return "normal"
	case Reduced:
		return "reduced"
	case Fragment:
		return "fragment"
	}
	return fmt.Sprintf("HeaderKind(%d)", uint8(k))
}

// The lengths of the headers, in bytes.
const (
	NormalSize   = 141
	ReducedSize  = 37
	FragmentSize = 153
)

// The longest domain and originator that a header carries, in bytes; longer ones
// are cut.
const (
	MaxDomain     = 31
	MaxOriginator = 63
)

// Types of messages. Receivers apply any type.
const (
	Assign      uint32 = 0 // what a base sends again
	MultiAssign uint32 = 2 // what a base sends
	Register    uint32 = 3 // tells a registry that the sender is there
)

const (
	idNormal   = "KaRL1.5"
	idReduced  = "karl1.5"
	idFragment = "KFRG1.4"
)

// Header is what stands before the updates of a message, or before the data of
// a fragment.
type Header struct {
	Kind       HeaderKind
	Size       uint64 // of header and updates, or of this fragment
	Domain     []byte // not in a reduced header
	Originator []byte // not in a reduced header
	Type       uint32 // not in a reduced header
	Updates    uint32 // records that follow; of a fragment, the number of fragments
	Quality    uint32 // not in a reduced header
	Clock      uint64
	Timestamp  uint64 // nanoseconds of the sender's monotonic clock
	TTL        uint8  // times that it may be sent on

	Index uint32 // of a fragment, from 0
	Total uint64 // of a fragment: bytes of the whole message
}

// Errors of decoding.
var (
	ErrForeign  = errors.New("not a MADARA message")
	ErrShort    = errors.New("message is cut off")
	ErrSize     = errors.New("message is longer than its header says, or shorter")
	ErrRecord   = errors.New("malformed record")
	ErrCount    = errors.New("impossible count")
	ErrFragment = errors.New("malformed fragment")
	ErrFilter   = errors.New("message does not have the filter's header")
	ErrTooLarge = errors.New("message is too large")
)

// Len returns the length of the header in bytes.
func (h *Header) Len() int {
	switch h.Kind {
	case Reduced:
		return ReducedSize
	case Fragment:
		return FragmentSize
	}
	return NormalSize
}

// Append appends the header to dst.
func (h *Header) Append(dst []byte) []byte {
	dst = order.AppendUint64(dst, h.Size)
	if h.Kind == Reduced {
		dst = append(dst, idReduced+"\x00"...)
		dst = order.AppendUint32(dst, h.Updates)
		dst = order.AppendUint64(dst, h.Clock)
		dst = order.AppendUint64(dst, h.Timestamp)
		return append(dst, h.TTL)
	}
	if h.Kind == Fragment {
		dst = append(dst, idFragment+"\x00"...)
	} else {
		dst = append(dst, idNormal+"\x00"...)
	}
	dst = appendPadded(dst, h.Domain, MaxDomain+1)
	dst = appendPadded(dst, h.Originator, MaxOriginator+1)
	dst = order.AppendUint32(dst, h.Type)
	dst = order.AppendUint32(dst, h.Updates)
	dst = order.AppendUint32(dst, h.Quality)
	dst = order.AppendUint64(dst, h.Clock)
	dst = order.AppendUint64(dst, h.Timestamp)
	dst = append(dst, h.TTL)
	if h.Kind == Fragment {
		dst = order.AppendUint32(dst, h.Index)
		dst = order.AppendUint64(dst, h.Total)
	}
	return dst
}

var zeros [MaxOriginator + 1]byte

// appendPadded appends text in a field of n bytes that ends with at least one NUL.
func appendPadded(dst, text []byte, n int) []byte {
	text = text[:min(len(text), n-1)]
	if i := bytes.IndexByte(text, 0); i >= 0 {
		text = text[:i]
	}
	dst = append(dst, text...)
	return append(dst, zeros[:n-len(text)]...)
}

// ParseHeader reads the header that message begins with. It does not compare
// Size with the length of the message. The errors are ErrForeign and ErrShort.
func ParseHeader(message []byte) (h Header, err error) {
	if len(message) < 16 {
		return h, fmt.Errorf("%d bytes: %w", len(message), ErrShort)
	}
	switch string(message[8:15]) {
	case idNormal:
		h.Kind = Normal
	case idReduced:
		h.Kind = Reduced
	case idFragment:
		h.Kind = Fragment
	default:
		return h, fmt.Errorf("id %q: %w", message[8:15], ErrForeign)
	}
	if len(message) < h.Len() {
		return h, fmt.Errorf("%d bytes, a %s header has %d: %w", len(message), h.Kind, h.Len(), ErrShort)
	}
	h.Size = order.Uint64(message)
	if h.Kind == Reduced {
		h.Updates = order.Uint32(message[16:])
		h.Clock = order.Uint64(message[20:])
		h.Timestamp = order.Uint64(message[28:])
		h.TTL = message[36]
		return h, nil
	}
	h.Domain = untilNUL(message[16:48])
	h.Originator = untilNUL(message[48:112])
	h.Type = order.Uint32(message[112:])
	h.Updates = order.Uint32(message[116:])
	h.Quality = order.Uint32(message[120:])
	h.Clock = order.Uint64(message[124:])
	h.Timestamp = order.Uint64(message[132:])
	h.TTL = message[140]
	if h.Kind == Fragment {
		h.Index = order.Uint32(message[141:])
		h.Total = order.Uint64(message[145:])
	}
	return h, nil
}

// untilNUL returns the text of a padded field, whose last byte is never part of it.
func untilNUL(field []byte) []byte {
	field = field[:len(field)-1]
	if i := bytes.IndexByte(field, 0); i >= 0 {
		return field[:i]
	}
	return field
}
