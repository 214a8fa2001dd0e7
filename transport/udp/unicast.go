package udp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/madara-go/madara/transport"
)

// resolveTimeout bounds how long host names may take.
const resolveTimeout = 10 * time.Second

// Link is an Event over UDP. It also implements [transport.Peers] if it was made
// by [Unicast].
type Link struct{ *link }

// LocalAddr returns the address the socket is bound to, with the port that the
// system chose if none was given.
func (l Link) LocalAddr() netip.AddrPort {
	a := l.conn.LocalAddr().(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// UnicastLink is a Link whose peers can be changed.
type UnicastLink struct{ Link }

// SetPeers replaces the peers. The addresses must be of the family of the socket.
func (l UnicastLink) SetPeers(peers []netip.AddrPort) error { return l.setPeers(peers) }

// Unicast opens a socket on listen, "ip:port" or ":port", and sends each message
// to all peers, "host:port". It receives from anyone. s may be nil. MADARA knows
// it as UDP transport, with listen and peers as its hosts.
func Unicast(listen string, peers []string, s *transport.Settings) (UnicastLink, error) {
	if err := s.Validate(); err != nil {
		return UnicastLink{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), resolveTimeout)
	defer cancel()
	v6 := false
	var to []netip.AddrPort
	for _, peer := range peers {
		a, err := resolve(ctx, peer, "peer", false)
		if err == nil && (a.Port() == 0 || a.Addr().IsUnspecified()) {
			err = fmt.Errorf("peer %q: want a host and a port: %w", peer, transport.ErrSettings)
		}
		if err != nil {
			return UnicastLink{}, err
		}
		to = append(to, a)
		v6 = v6 || a.Addr().Is6()
	}
	at, err := resolve(ctx, listen, "address to listen on", v6)
	if err != nil {
		return UnicastLink{}, err
	}
	network := "udp4"
	if at.Addr().Is6() {
		network = "udp" // both families, if the address is [::]
	} else if v6 {
		return UnicastLink{}, fmt.Errorf("address to listen on %q is IPv4 and a peer IPv6: listen on [::]: %w", listen, transport.ErrSettings)
	}
	config := net.ListenConfig{Control: control(false)}
	conn, err := config.ListenPacket(ctx, network, at.String())
	if err != nil {
		return UnicastLink{}, err
	}
	l, err := open(conn.(*net.UDPConn), s.WithDefaults(), to)
	if err != nil {
		conn.Close()
		return UnicastLink{}, err
	}
	return UnicastLink{Link{l}}, nil
}
