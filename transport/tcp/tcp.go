// Package tcp is links between processes and hosts over TCP, with TLS 1.3 unless
// both ends are on one host. [NewEvent] publishes and subscribes, [NewControl]
// calls and serves.
//
//	robot, err := tcp.NewControl("10.0.0.7:4200", &tcp.Settings{TLS: config})
//	…
//	defer robot.Close()
//	robot.Serve("stop", nil, stop)
//
// The protocol is this library's own, see transport/doc/stream.md; MADARA has
// nothing like it.
package tcp

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/internal/stream"
)

// Settings is how a link works. The zero value, and a nil pointer, is the
// default: plain TCP between processes of one host, everything else refused.
type Settings struct {
	// Settings is used as far as it is about streams: WriteBuffer bounds what
	// waits for one peer (1 MiB at least), Sealer seals the payloads of an Event,
	// NoSending and NoReceiving are as everywhere.
	transport.Settings

	// TLS makes both ends prove who they are. It needs Certificates, RootCAs for
	// the ends that this one connects to and ClientCAs for those that connect to
	// it. The version is always 1.3, and clients must have a certificate. The
	// config is copied.
	TLS *tls.Config

	// Plain allows addresses of other hosts without TLS: anybody on the way can
	// then read and change everything.
	Plain bool
}

// NewEvent accepts peers at listen, "host:port", unless it is "", and keeps a
// connection to each of peers. It makes them in the background, again and again;
// Ready waits for those that matter. What is published goes to all peers that
// subscribe to its topic, and to its own subscriptions. s may be nil.
func NewEvent(listen string, peers []string, s *Settings) (Event, error) {
	l, n, err := open(listen, peers, s)
	if err != nil {
		return Event{}, err
	}
	return Event{stream.NewEvent(n, l, peers, s.base()), addr(l)}, nil
}

// NewControl serves at listen, "host:port", unless it is "". The targets of its
// calls are "host:port" as well. s may be nil.
func NewControl(listen string, s *Settings) (Control, error) {
	l, n, err := open(listen, nil, s)
	if err != nil {
		return Control{}, err
	}
	return Control{stream.NewControl(n, l, s.base()), addr(l)}, nil
}

// Event is a [transport.Event] over TCP.
type Event struct {
	*stream.Event
	addr netip.AddrPort
}

// LocalAddr returns the address that peers can connect to, with the port that
// the system chose if none was given; the zero AddrPort if there is none.
func (e Event) LocalAddr() netip.AddrPort { return e.addr }

// Control is a [transport.Control] over TCP.
type Control struct {
	*stream.Control
	addr netip.AddrPort
}

// LocalAddr is as that of Event.
func (c Control) LocalAddr() netip.AddrPort { return c.addr }

func addr(l net.Listener) netip.AddrPort {
	if l == nil {
		return netip.AddrPort{}
	}
	a := l.Addr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

func (s *Settings) base() transport.Settings {
	if s == nil {
		s = &Settings{}
	}
	return s.WithDefaults()
}

func open(listen string, peers []string, s *Settings) (net.Listener, *stream.Network, error) {
	if s == nil {
		s = &Settings{}
	}
	if err := s.Validate(); err != nil {
		return nil, nil, err
	}
	n := &stream.Network{Name: "tcp"}
	dialer := &net.Dialer{}
	var config *tls.Config
	if s.TLS != nil {
		config = s.TLS.Clone()
		config.MinVersion = tls.VersionTLS13
		config.ClientAuth = tls.RequireAndVerifyClientCert
		if len(config.Certificates) == 0 && config.GetCertificate == nil && config.GetClientCertificate == nil {
			return nil, nil, fmt.Errorf("tcp.Settings.TLS has no certificate, and both ends need one: %w", transport.ErrSettings)
		}
	}
	n.Dial = func(ctx context.Context, address string) (net.Conn, error) {
		if err := s.allows(address); err != nil {
			return nil, err
		}
		if config != nil {
			return (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", address)
		}
		return dialer.DialContext(ctx, "tcp", address)
	}
	n.Admit = func(conn net.Conn) (string, error) {
		if c, ok := conn.(*tls.Conn); ok {
			if err := c.Handshake(); err != nil {
				return "", fmt.Errorf("%w: %w", stream.ErrRefused, err)
			}
		}
		a := conn.RemoteAddr().(*net.TCPAddr).AddrPort()
		return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()).String(), nil
	}
	for _, peer := range peers {
		if _, _, err := net.SplitHostPort(peer); err != nil {
			return nil, nil, fmt.Errorf("peer %q: want host:port: %w", peer, transport.ErrSettings)
		}
		if err := s.allows(peer); err != nil {
			return nil, nil, err
		}
	}
	if listen == "" {
		return nil, n, nil
	}
	if _, _, err := net.SplitHostPort(listen); err != nil {
		return nil, nil, fmt.Errorf("address to listen on %q: want host:port: %w", listen, transport.ErrSettings)
	}
	if err := s.allows(listen); err != nil {
		return nil, nil, err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, nil, err
	}
	if config != nil {
		return tlsListener{l, config}, n, nil
	}
	return l, n, nil
}

// tlsListener is as tls.NewListener makes it, but with the address of the socket.
type tlsListener struct {
	net.Listener
	config *tls.Config
}

func (l tlsListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return tls.Server(conn, l.config), nil
}

// allows returns why an address may not be used without TLS.
func (s *Settings) allows(address string) error {
	if s.TLS != nil || s.Plain {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("address %q: want host:port: %w", address, transport.ErrSettings)
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("address %q is not of this host alone: set tcp.Settings.TLS, or Plain to do without: %w", address, transport.ErrSettings)
}
