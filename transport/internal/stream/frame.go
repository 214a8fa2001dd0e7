// Package stream is Event and Control over connections that keep order: what
// transport/unix and transport/tcp have in common. Those two give it connections
// and say who is at the other end.
//
// Both ends begin with a hello, and frames follow: a length (4 bytes, of what
// comes after it), a kind (1 byte), and a body. Numbers are big-endian. See
// transport/doc/stream.md.
package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The surfaces, which do not understand each other.
const (
	magicEvent   = "MADARA-E"
	magicControl = "MADARA-C"
	version      = 1
)

// hello is what both ends send first.
type hello struct {
	class   uint8  // of a control connection: the priority of its calls, from 0
	window  uint32 // of a control connection: how many requests may be open
	session uint64 // of the process's link; random, not 0
}

const helloSize = 8 + 1 + 1 + 2 + 4 + 8

func (h hello) append(b []byte, magic string) []byte {
	b = append(b, magic...)
	b = append(b, version, h.class, 0, 0)
	b = binary.BigEndian.AppendUint32(b, h.window)
	return binary.BigEndian.AppendUint64(b, h.session)
}

// errFrame is of bytes that are not this protocol.
var errFrame = errors.New("not a frame of this protocol")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), errFrame)
}

func readHello(r io.Reader, magic string) (h hello, err error) {
	var b [helloSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return h, err
	}
	switch {
	case string(b[:8]) != magic:
		return h, malformed("the other end says %q, not %q", b[:8], magic)
	case b[8] != version:
		return h, malformed("the other end speaks version %d, not %d", b[8], version)
	}
	h = hello{class: b[9], window: binary.BigEndian.Uint32(b[12:]), session: binary.BigEndian.Uint64(b[16:])}
	if h.session == 0 {
		return h, malformed("the session is 0")
	}
	return h, nil
}

// The kinds of frames.
const (
	kindSubscribe   = 1 // topic: one subscription more
	kindUnsubscribe = 2 // topic: one less
	kindMessage     = 3 // sequence 8 | count on its topic 8, 0 for not counted | topic length 1 | topic | payload

	kindRequest  = 10 // id 8 | time left in µs 8, 0 for none | total 4 | method length 1 | method | first part
	kindContinue = 11 // id 8 | next part of a request or response
	kindCancel   = 12 // id 8: the caller has left
	kindResponse = 13 // id 8 | status 1 | total 4 | first part
)

const (
	frameHead    = 5
	messageHead  = 8 + 8 + 1
	requestHead  = 8 + 8 + 4 + 1
	responseHead = 8 + 1 + 4
	idSize       = 8
)

// beginFrame appends the head of a frame whose body has so many bytes.
func beginFrame(b []byte, kind byte, body int) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(body)+1)
	return append(b, kind)
}

// readHead reads the head of a frame and returns the length of its body, at most
// limit. buf is room for it.
func readHead(r io.Reader, buf []byte, limit int) (kind byte, body int, err error) {
	if _, err := io.ReadFull(r, buf[:frameHead]); err != nil {
		return 0, 0, err
	}
	return parseHead(buf, limit)
}

func parseHead(b []byte, limit int) (kind byte, body int, err error) {
	n := binary.BigEndian.Uint32(b)
	if n == 0 || int64(n)-1 > int64(limit) {
		return 0, 0, malformed("a frame of %d bytes, allowed are 1 to %d", n, limit+1)
	}
	return b[4], int(n) - 1, nil
}

// message is the head of a message on the wire, without its topic.
type message struct {
	sequence, count uint64
	topic           int // bytes
}

func parseMessage(b []byte, body int) (m message, err error) {
	m = message{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), int(b[16])}
	if messageHead+m.topic > body {
		return m, malformed("a topic of %d bytes in a message of %d", m.topic, body)
	}
	if m.sequence == 0 || m.count > m.sequence {
		return m, malformed("sequence %d and count %d", m.sequence, m.count)
	}
	return m, nil
}

// chunk is how much of a request or response goes into one frame, so that
// others get their turn.
const chunk = 32 << 10

// stage is how much is allocated for what the other end only announced.
const stage = 1 << 20
