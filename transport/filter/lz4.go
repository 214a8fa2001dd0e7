package filter

import (
	"errors"
	"fmt"
	"sync"

	"github.com/pierrec/lz4/v4"

	"github.com/madara-go/madara/transport"
)

// LZ4 compresses messages as MADARA's filter of that id does: one block without a
// frame. The zero value is ready; it may be used by many goroutines. A receiver
// that is MADARA cannot decode a message that is longer than its datagram unless
// it came in fragments: towards such peers set Sharing.FragmentSize below the
// length of the compressed messages. MADARA knows it as LZ4BufferFilter.
type LZ4 struct{}

var _ transport.Filter = LZ4{}

// ID is "lz4".
func (LZ4) ID() string { return "lz4" }

var compressors = sync.Pool{New: func() any { return new(lz4.Compressor) }}

// Encode is transport.Filter.Encode.
func (LZ4) Encode(dst, src []byte) ([]byte, error) {
	if len(src) == 0 {
		return append(dst, 0), nil // a block of no bytes
	}
	from, bound := len(dst), lz4.CompressBlockBound(len(src))
	dst = grow(dst, bound)
	c := compressors.Get().(*lz4.Compressor)
	n, err := c.CompressBlock(src, dst[from:from+bound])
	compressors.Put(c)
	if err != nil {
		return nil, err
	}
	if n == 0 { // the library's word for what does not get shorter
		return appendLiterals(dst[:from], src), nil
	}
	return dst[:from+n], nil
}

// grow returns dst with room for n bytes more.
func grow(dst []byte, n int) []byte {
	if cap(dst)-len(dst) < n {
		dst = append(make([]byte, 0, len(dst)+n), dst...)
	}
	return dst[:len(dst)+n][:len(dst)+n]
}

// appendLiterals appends a block that holds src as it is.
func appendLiterals(dst, src []byte) []byte {
	n := len(src)
	if n < 15 {
		dst = append(dst, byte(n)<<4)
	} else {
		dst = append(dst, 15<<4)
		for n -= 15; n >= 255; n -= 255 {
			dst = append(dst, 255)
		}
		dst = append(dst, byte(n))
	}
	return append(dst, src...)
}

// most is how much longer than its block a message can be: a byte of a block
// stands for at most 255.
const most = 255

// scratch is room to decode, for messages whose length is not known.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// Decode is transport.Filter.Decode. It takes room for no more than limit bytes,
// and no more than the block could make.
func (LZ4) Decode(dst, src []byte, limit int) ([]byte, error) {
	if len(src) == 0 {
		return nil, fmt.Errorf("a block of 0 bytes: %w", ErrContent)
	}
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	// Most messages get a few times shorter, so the first room is small.
	for room := min(limit, 8*len(src)+64); ; room = min(limit, 8*room) {
		if cap(*buf) < room || *buf == nil { // the library takes no nil
			*buf = make([]byte, max(room, 64))
		}
		n, err := lz4.UncompressBlock(src, (*buf)[:room])
		switch {
		case err == nil:
			return append(dst, (*buf)[:n]...), nil
		case !errors.Is(err, lz4.ErrInvalidSourceShortBuffer):
			return nil, fmt.Errorf("%w: %w", ErrContent, err)
		case room/most >= len(src):
			return nil, fmt.Errorf("the block is damaged: %w", ErrContent)
		case room == limit:
			return nil, fmt.Errorf("damaged, or more than the %d bytes that are allowed: %w", limit, ErrLimit)
		}
	}
}
