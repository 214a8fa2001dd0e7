// Package udp is links over UDP that carry bare MADARA datagrams: one message a
// datagram, no topics, no sequence numbers. [Unicast] sends to a list of peers,
// [Multicast] to a group. Each has one socket and one reader, which waits for
// nothing but the socket. Datagrams that the system's queue had no room for are
// counted where the system tells (Linux).
//
// Several processes of a host may share a multicast group; they hear each other
// and themselves.
package udp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/internal/hub"
)

type link struct {
	hub      hub.Hub
	conn     *net.UDPConn
	settings transport.Settings
	max      int
	start    time.Time
	closed   atomic.Bool
	done     sync.WaitGroup
	stop     chan struct{} // closed by Close

	mu     sync.Mutex // one datagram at a time
	out    sender
	peers  []netip.AddrPort
	sealed []byte
	next   time.Time // the earliest time of the next datagram, for Pacing
	tokens float64   // for MaxSendRate
	filled time.Time
}

// open makes a link around a socket and starts its reader.
func open(conn *net.UDPConn, s transport.Settings, peers []netip.AddrPort) (*link, error) {
	l := &link{conn: conn, settings: s, max: s.MaxDatagram, start: time.Now(), stop: make(chan struct{}), tokens: 1}
	if s.Sealer != nil {
		l.max -= s.Sealer.Overhead()
	}
	if err := raiseBuffers(conn, s.ReadBuffer, s.WriteBuffer); err != nil {
		return nil, err
	}
	if err := l.out.init(conn); err != nil {
		return nil, err
	}
	if err := l.setPeers(peers); err != nil {
		return nil, err
	}
	if !s.NoReceiving {
		l.done.Go(l.read)
	}
	return l, nil
}

func (l *link) setPeers(peers []netip.AddrPort) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.out.setPeers(peers); err != nil {
		return err
	}
	l.peers = append([]netip.AddrPort(nil), peers...)
	return nil
}

func (l *link) Publish(topic string, payload []byte) (uint64, error) {
	switch {
	case topic != "":
		return 0, fmt.Errorf("topic %q on udp, where the only one is %q: %w", topic, "", transport.ErrTopic)
	case len(payload) > l.max:
		return 0, fmt.Errorf("%d bytes, at most %d are allowed: %w", len(payload), l.max, transport.ErrTooLarge)
	case l.closed.Load():
		return 0, transport.ErrClosed
	case l.settings.NoSending:
		l.hub.Drop(transport.DropNoSending, 1)
		return 0, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	datagram := payload
	if s := l.settings.Sealer; s != nil {
		sealed, err := hub.Seal(s, l.sealed[:0], payload)
		if err != nil {
			l.hub.Drop(transport.DropSeal, 1)
			return 0, nil
		}
		datagram, l.sealed = sealed, sealed
	}
	var failed error
	for i := range l.peers {
		if !l.admit() {
			l.hub.Drop(transport.DropSendLimit, 1)
			continue
		}
		err := l.out.send(datagram, i)
		switch {
		case err == nil:
			l.hub.Sent(len(datagram))
		case isFull(err):
			l.hub.Drop(transport.DropSendBuffer, 1)
		case errors.Is(err, net.ErrClosed):
			return 0, transport.ErrClosed
		default:
			l.hub.Drop(transport.DropSendError, 1)
			if failed == nil {
				failed = &net.OpError{Op: "write", Net: "udp", Source: l.conn.LocalAddr(), Addr: net.UDPAddrFromAddrPort(l.peers[i]), Err: err}
			}
		}
	}
	return 0, failed
}

// admit waits for Pacing and reports whether MaxSendRate lets a datagram through.
func (l *link) admit() bool {
	s := &l.settings
	if s.Pacing == 0 && s.MaxSendRate == 0 {
		return true
	}
	now := time.Now()
	if s.MaxSendRate > 0 {
		if !l.filled.IsZero() {
			l.tokens = min(l.tokens+now.Sub(l.filled).Seconds()*s.MaxSendRate, max(1, s.MaxSendRate/10))
		}
		l.filled = now
		if l.tokens < 1 {
			return false
		}
		l.tokens--
	}
	if wait := l.next.Sub(now); wait > 0 {
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-l.stop:
			t.Stop()
		}
	}
	l.next = time.Now().Add(s.Pacing)
	return true
}

// maxSources is how many senders' addresses are kept as text.
const maxSources = 1024

// reading is what the reader of the socket knows.
type reading struct {
	buffer, oob []byte
	sources     map[netip.AddrPort]string
	overflow    uint32 // datagrams that the system dropped
	failures    int    // without a datagram between them
}

// read takes datagrams from the socket until it is closed.
func (l *link) read() {
	in := &reading{
		buffer: make([]byte, transport.MaxDatagramSize+1), oob: make([]byte, 64), sources: map[netip.AddrPort]string{},
	}
	hub.Read(func(r *hub.Reader) error { return l.datagram(in, r) })
}

// datagram takes one datagram. An error means that the socket is closed.
func (l *link) datagram(in *reading, reader *hub.Reader) error {
	n, oobn, _, from, err := l.conn.ReadMsgUDPAddrPort(in.buffer, in.oob)
	arrived := time.Since(l.start)
	if err != nil {
		if l.closed.Load() || errors.Is(err, net.ErrClosed) {
			return net.ErrClosed
		}
		// Errors of a connectionless socket are of single datagrams. Should they
		// not be, this must not spin.
		l.hub.Drop(transport.DropRead, 1)
		if in.failures++; in.failures > 10 {
			select {
			case <-l.stop:
				return net.ErrClosed
			case <-time.After(100 * time.Millisecond):
			}
		}
		return nil
	}
	in.failures = 0
	if total, ok := kernelDrops(in.oob[:oobn]); ok {
		l.hub.Drop(transport.DropKernel, uint64(total-in.overflow))
		in.overflow = total
	}
	l.hub.Received(n)
	source, ok := in.sources[from]
	if !ok {
		if len(in.sources) == maxSources {
			clear(in.sources)
		}
		source = netip.AddrPortFrom(from.Addr().Unmap(), from.Port()).String()
		in.sources[from] = source
	}
	b := l.hub.Get(n)
	m := &b.Message
	if s := l.settings.Sealer; s != nil {
		opened, err := hub.Open(s, b.Data()[:0], in.buffer[:n])
		if err != nil {
			l.hub.Refused(source, err)
			b.Release()
			return nil
		}
		m.Payload, m.Sealed = opened, true
	} else {
		m.Payload = b.Data()[:copy(b.Data(), in.buffer[:n])]
	}
	m.Source, m.Arrived = source, arrived
	l.hub.Dispatch(b, reader)
	return nil
}

func (l *link) Subscribe(topic string, o *transport.SubscribeOptions, handle func(*transport.Message)) (transport.Subscription, error) {
	if topic != "" {
		return nil, fmt.Errorf("topic %q on udp, where the only one is %q: %w", topic, "", transport.ErrTopic)
	}
	return l.hub.Subscribe(topic, o, handle)
}

func (l *link) Ready(context.Context, string, int) error { return nil }
func (l *link) Topics() bool                             { return false }
func (l *link) MaxPayload() int                          { return l.max }
func (l *link) Stats() transport.Stats                   { return l.hub.Stats() }

func (l *link) Close() error {
	l.hub.Inside("Event.Close")
	var err error
	if !l.closed.Swap(true) {
		close(l.stop)
		err = l.conn.Close()
	}
	l.done.Wait()
	l.hub.Close()
	return err
}

// resolve turns "host:port" into an address; wanted says what it is for.
func resolve(ctx context.Context, address, wanted string, v6 bool) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%s %q: want host:port: %w", wanted, address, transport.ErrSettings)
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "udp", port)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%s %q: port %q: %w", wanted, address, port, err)
	}
	if host == "" {
		unspecified := netip.IPv4Unspecified()
		if v6 {
			unspecified = netip.IPv6Unspecified()
		}
		return netip.AddrPortFrom(unspecified, uint16(number)), nil
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return netip.AddrPortFrom(ip.Unmap(), uint16(number)), nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%s %q: %w", wanted, address, err)
	}
	best := ips[0].Unmap()
	for _, ip := range ips { // IPv4 first, as MADARA's peers have nothing else
		if ip.Unmap().Is4() {
			best = ip.Unmap()
			break
		}
	}
	return netip.AddrPortFrom(best, uint16(number)), nil
}
