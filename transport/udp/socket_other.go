//go:build !unix

package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/madara-go/madara/transport"
)

// control has nothing to do: on these systems several sockets share a multicast
// port only if the system allows it by itself.
func control(bool) func(network, address string, c syscall.RawConn) error { return nil }

// kernelDrops knows nothing where the system does not tell.
func kernelDrops([]byte) (uint32, bool) { return 0, false }

// sender waits at most a millisecond for a full buffer.
type sender struct {
	conn  *net.UDPConn
	v6    bool
	peers []netip.AddrPort
}

func (s *sender) init(conn *net.UDPConn) error {
	s.conn = conn
	s.v6 = conn.LocalAddr().(*net.UDPAddr).IP.To4() == nil
	return nil
}

func (s *sender) setPeers(peers []netip.AddrPort) error {
	for _, p := range peers {
		if !s.v6 && !p.Addr().Unmap().Is4() {
			return fmt.Errorf("peer %v is IPv6 and the socket IPv4: %w", p, transport.ErrSettings)
		}
	}
	s.peers = peers
	return nil
}

func (s *sender) send(datagram []byte, peer int) error {
	s.conn.SetWriteDeadline(time.Now().Add(time.Millisecond))
	_, err := s.conn.WriteToUDPAddrPort(datagram, s.peers[peer])
	return err
}

func isFull(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

func raiseBuffers(conn *net.UDPConn, read, write int) error {
	if err := conn.SetReadBuffer(read); err != nil {
		return err
	}
	return conn.SetWriteBuffer(write)
}
