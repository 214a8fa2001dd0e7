//go:build unix && !linux

package udp

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// control prepares a socket before it is bound.
func control(shared bool) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		if !shared {
			return nil
		}
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
			// Here several sockets share a port with SO_REUSEPORT.
			if failed == nil {
				failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
			}
		})
		if err != nil {
			return err
		}
		return failed
	}
}

// kernelDrops knows nothing where the system does not tell.
func kernelDrops([]byte) (uint32, bool) { return 0, false }
