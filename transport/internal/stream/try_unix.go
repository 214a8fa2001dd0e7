//go:build unix

package stream

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// tryWriter writes without waiting for room. It is used by one goroutine at a time.
type tryWriter struct {
	raw  syscall.RawConn
	buf  []byte
	n    int
	err  error
	call func(fd uintptr) bool
}

// newTryWriter returns nil for connections that are more than a socket.
func newTryWriter(conn net.Conn) *tryWriter {
	s, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	t := &tryWriter{raw: raw}
	t.call = func(fd uintptr) bool {
		t.n, t.err = unix.Write(int(fd), t.buf)
		return true
	}
	return t
}

// write returns how many bytes the system took, and false if the connection broke.
func (t *tryWriter) write(b []byte) (int, bool) {
	t.buf = b
	err := t.raw.Write(t.call)
	t.buf = nil
	if err != nil {
		return 0, false
	}
	switch t.err {
	case nil:
		return max(t.n, 0), true
	case unix.EAGAIN, unix.EINTR:
		return 0, true
	}
	return 0, false
}
