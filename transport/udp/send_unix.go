//go:build unix

package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/madara-go/madara/transport"
)

// sender sends without waiting for a full buffer, and without allocating.
type sender struct {
	raw   syscall.RawConn
	v6    bool
	peers []unix.Sockaddr

	datagram []byte // of the send that runs, and where it goes
	peer     unix.Sockaddr
	err      error
	call     func(fd uintptr) bool
}

func (s *sender) init(conn *net.UDPConn) (err error) {
	s.v6 = conn.LocalAddr().(*net.UDPAddr).IP.To4() == nil
	s.call = func(fd uintptr) bool {
		s.err = unix.Sendto(int(fd), s.datagram, unix.MSG_DONTWAIT, s.peer)
		return true
	}
	s.raw, err = conn.SyscallConn()
	return err
}

func (s *sender) setPeers(peers []netip.AddrPort) error {
	list := make([]unix.Sockaddr, len(peers))
	for i, p := range peers {
		switch a := p.Addr(); {
		case s.v6:
			to := &unix.SockaddrInet6{Port: int(p.Port()), Addr: a.As16()}
			if zone := a.Zone(); zone != "" {
				face, err := net.InterfaceByName(zone)
				if err != nil {
					return fmt.Errorf("peer %v: %w", p, err)
				}
				to.ZoneId = uint32(face.Index)
			}
			list[i] = to
		case a.Unmap().Is4():
			list[i] = &unix.SockaddrInet4{Port: int(p.Port()), Addr: a.Unmap().As4()}
		default:
			return fmt.Errorf("peer %v is IPv6 and the socket IPv4: %w", p, transport.ErrSettings)
		}
	}
	s.peers = list
	return nil
}

func (s *sender) send(datagram []byte, peer int) error {
	s.datagram, s.peer = datagram, s.peers[peer]
	err := s.raw.Write(s.call)
	s.datagram = nil
	if err != nil {
		return err
	}
	return s.err
}

func isFull(err error) bool {
	return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOBUFS)
}

// raiseBuffers makes the socket's buffers at least so large, as far as the
// system lets it.
func raiseBuffers(conn *net.UDPConn, read, write int) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) {
		for option, size := range map[int]int{unix.SO_RCVBUF: read, unix.SO_SNDBUF: write} {
			if now, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, option); err == nil && now < size {
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, option, size)
			}
		}
	})
}
