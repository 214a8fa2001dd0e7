package udp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"github.com/madara-go/madara/transport"
)

// rejoin is how often joining the group is tried again while its interface is
// not there.
const rejoin = time.Second

// Multicast joins a group, "239.255.0.1:4150" or "[ff02::1234]:4150", and sends
// each message to it. Settings.Interface chooses the network interface, and may
// name one that comes later: joining is tried again each second until it is
// there. Without one the system chooses, and where it knows no way to the group,
// the loopback interface is used. s may be nil.
func Multicast(group string, s *transport.Settings) (Link, error) {
	if err := s.Validate(); err != nil {
		return Link{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), resolveTimeout)
	defer cancel()
	to, err := resolve(ctx, group, "multicast group", false)
	if err != nil {
		return Link{}, err
	}
	if !to.Addr().IsMulticast() || to.Port() == 0 {
		return Link{}, fmt.Errorf("multicast group %q: want an address of 224.0.0.0/4 or ff00::/8 and a port: %w", group, transport.ErrSettings)
	}
	settings := s.WithDefaults()
	network, any := "udp4", netip.IPv4Unspecified()
	if to.Addr().Is6() {
		network, any = "udp6", netip.IPv6Unspecified()
	}
	config := net.ListenConfig{Control: control(true)}
	packet, err := config.ListenPacket(ctx, network, netip.AddrPortFrom(any, to.Port()).String())
	if err != nil {
		return Link{}, err
	}
	conn := packet.(*net.UDPConn)
	m := newMember(conn, to.Addr(), settings)
	if err := m.setup(); err != nil {
		conn.Close()
		return Link{}, fmt.Errorf("multicast group %s: %w", group, err)
	}
	joined := m.join() == nil
	l, err := open(conn, settings, []netip.AddrPort{to})
	if err != nil {
		conn.Close()
		return Link{}, err
	}
	if !joined {
		l.done.Go(func() { m.keepJoining(l.stop) })
	}
	return Link{l}, nil
}

// member joins a group over either version of IP.
type member struct {
	group    net.IP
	name     string // of the interface, "" for any
	ttl      int
	join4    *ipv4.PacketConn
	join6    *ipv6.PacketConn
	loopback bool // fell back to it
}

func newMember(conn *net.UDPConn, group netip.Addr, s transport.Settings) *member {
	m := &member{group: group.AsSlice(), name: s.Interface, ttl: s.TTL}
	if group.Is4() {
		m.join4 = ipv4.NewPacketConn(conn)
	} else {
		m.join6 = ipv6.NewPacketConn(conn)
	}
	return m
}

// setup sets what does not need the interface.
func (m *member) setup() error {
	if m.join4 != nil {
		if err := m.join4.SetMulticastTTL(m.ttl); err != nil {
			return err
		}
		return m.join4.SetMulticastLoopback(true)
	}
	if err := m.join6.SetMulticastHopLimit(m.ttl); err != nil {
		return err
	}
	return m.join6.SetMulticastLoopback(true)
}

// join joins the group, and sends by the interface it joined on.
func (m *member) join() error {
	if m.name != "" {
		face, err := net.InterfaceByName(m.name)
		if err != nil {
			return err
		}
		return m.joinOn(face)
	}
	if err := m.joinOn(nil); err == nil && m.reachable() {
		return nil
	}
	faces, err := net.Interfaces()
	if err != nil {
		return err
	}
	for i := range faces {
		if faces[i].Flags&net.FlagLoopback != 0 && faces[i].Flags&net.FlagUp != 0 {
			m.loopback = true
			return m.joinOn(&faces[i])
		}
	}
	return fmt.Errorf("no interface to join %s on", m.group)
}

// reachable reports whether the system knows a way to the group.
func (m *member) reachable() bool {
	conn, err := net.DialUDP("udp", nil, &net.UDPAddr{IP: m.group, Port: 9})
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func (m *member) joinOn(face *net.Interface) error {
	group := &net.UDPAddr{IP: m.group}
	if m.join4 != nil {
		if face != nil {
			if err := m.join4.SetMulticastInterface(face); err != nil {
				return err
			}
		}
		return m.join4.JoinGroup(face, group)
	}
	if face != nil {
		if err := m.join6.SetMulticastInterface(face); err != nil {
			return err
		}
	}
	return m.join6.JoinGroup(face, group)
}

func (m *member) keepJoining(stop <-chan struct{}) {
	t := time.NewTicker(rejoin)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			if m.join() == nil {
				return
			}
		}
	}
}
