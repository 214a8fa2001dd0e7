package udp

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/madara-go/madara/transport"
)

// Broadcast listens on a port and sends each message to all hosts of a network,
// "192.168.1.255:15000", or of all networks that this host is in directly,
// "255.255.255.255:15000". Several processes of a host may use one port; each
// hears all of them, itself too. It is for IPv4; where the network lets multicast
// pass, [Multicast] disturbs fewer hosts. s may be nil. MADARA's own broadcast
// transport cannot send, as it never asks the system for the right to.
func Broadcast(address string, s *transport.Settings) (Link, error) {
	if err := s.Validate(); err != nil {
		return Link{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), resolveTimeout)
	defer cancel()
	to, err := resolve(ctx, address, "broadcast address", false)
	if err != nil {
		return Link{}, err
	}
	if !to.Addr().Is4() || to.Addr().IsUnspecified() || to.Addr().IsMulticast() || to.Port() == 0 {
		return Link{}, fmt.Errorf("broadcast address %q: want an IPv4 address that all hosts of a network have, as 192.168.1.255, and a port: %w", address, transport.ErrSettings)
	}
	// Package net gives every UDP socket over IPv4 the right to broadcast.
	config := net.ListenConfig{Control: control(true)}
	conn, err := config.ListenPacket(ctx, "udp4", netip.AddrPortFrom(netip.IPv4Unspecified(), to.Port()).String())
	if err != nil {
		return Link{}, err
	}
	l, err := open(conn.(*net.UDPConn), s.WithDefaults(), []netip.AddrPort{to})
	if err != nil {
		conn.Close()
		return Link{}, err
	}
	return Link{l}, nil
}
