package udp

import (
	"encoding/binary"
	"syscall"

	"golang.org/x/sys/unix"
)

// control prepares a socket before it is bound.
func control(shared bool) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1) // without it overflows are not counted
			if shared {
				failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
			}
		})
		if err != nil {
			return err
		}
		return failed
	}
}

// kernelDrops returns the count of datagrams that the socket's queue had no room
// for, since it was opened, from a datagram's control messages.
func kernelDrops(oob []byte) (uint32, bool) {
	if len(oob) == 0 {
		return 0, false
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0, false
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_RXQ_OVFL && len(m.Data) >= 4 {
			return binary.NativeEndian.Uint32(m.Data), true
		}
	}
	return 0, false
}
