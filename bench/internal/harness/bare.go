package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// openBare opens an end that is a Go socket, or channels, and a loop that reads.
func openBare(e *Endpoint, publisher bool) (end, error) {
	switch e.Kind {
	case "inproc":
		return openChannels(e, publisher), nil
	case "udp", "multicast":
		return openDatagrams(e, publisher)
	}
	return openConns(e, publisher)
}

// channels is a fan-out over Go channels: each message is copied once and handed
// to the channel of each subscriber.
type channels struct {
	e         *Endpoint
	room      *room
	publisher bool
	done      sync.WaitGroup
}

type room struct {
	mu   sync.Mutex
	out  []chan []byte
	back []chan []byte
	lost uint64
}

var rooms sync.Map

func openChannels(e *Endpoint, publisher bool) *channels {
	r, _ := rooms.LoadOrStore(e.Address, &room{})
	return &channels{e: e, room: r.(*room), publisher: publisher}
}

func (c *channels) publish(payload []byte) error {
	m := append([]byte(nil), payload...)
	c.room.mu.Lock()
	defer c.room.mu.Unlock()
	to := c.room.out
	if !c.publisher {
		to = c.room.back
	}
	for _, ch := range to {
		select {
		case ch <- m:
		default:
			c.room.lost++
		}
	}
	return nil
}

func (c *channels) subscribe(handle func([]byte)) error {
	ch := make(chan []byte, max(c.e.Depth, 1))
	c.room.mu.Lock()
	defer c.room.mu.Unlock()
	if c.publisher {
		c.room.back = append(c.room.back, ch)
	} else {
		c.room.out = append(c.room.out, ch)
	}
	c.done.Go(func() {
		for m := range ch {
			handle(m)
		}
	})
	return nil
}

func (c *channels) ready(context.Context, int) error { return nil }

func (c *channels) drops() map[string]uint64 {
	c.room.mu.Lock()
	defer c.room.mu.Unlock()
	return nonZero("channel.full", c.room.lost)
}

func nonZero(name string, n uint64) map[string]uint64 {
	if n == 0 {
		return nil
	}
	return map[string]uint64{name: n}
}

func (c *channels) close() error {
	c.room.mu.Lock()
	list := c.room.out
	if c.publisher {
		list = c.room.back
		c.room.back = nil
	} else {
		c.room.out = nil
	}
	for _, ch := range list {
		close(ch)
	}
	c.room.mu.Unlock()
	c.done.Wait()
	return nil
}

// fan hands what one reader of a process reads to its subscribers: to one of
// them at once, to more by a channel and a goroutine for each.
type fan struct {
	mu      sync.RWMutex
	depth   int
	handles []func([]byte)
	chans   []chan []byte
	lost    atomic.Uint64
	done    sync.WaitGroup
}

func (f *fan) add(handle func([]byte)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handles = append(f.handles, handle)
	ch := make(chan []byte, max(f.depth, 1))
	f.chans = append(f.chans, ch)
	f.done.Go(func() {
		for m := range ch {
			handle(m)
		}
	})
}

func (f *fan) deliver(payload []byte) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if len(f.handles) == 1 {
		f.handles[0](payload)
		return
	}
	m := append([]byte(nil), payload...)
	for _, ch := range f.chans {
		select {
		case ch <- m:
		default:
			f.lost.Add(1)
		}
	}
}

func (f *fan) close() {
	f.mu.Lock()
	for _, ch := range f.chans {
		close(ch)
	}
	f.handles, f.chans = nil, nil
	f.mu.Unlock()
	f.done.Wait()
}

// datagrams is a UDP socket.
type datagrams struct {
	fan
	conn   *net.UDPConn // reads
	sender *net.UDPConn // writes
	to     []netip.AddrPort
	reader sync.WaitGroup
}

func openDatagrams(e *Endpoint, publisher bool) (end, error) {
	d := &datagrams{fan: fan{depth: e.Depth}}
	var err error
	if e.Kind == "udp" {
		listen, peers := e.Address, e.Peers
		if !publisher {
			listen, peers = e.Listen, []string{e.Address}
		}
		at, err := net.ResolveUDPAddr("udp", listen)
		if err != nil {
			return nil, err
		}
		for _, p := range peers {
			a, err := net.ResolveUDPAddr("udp", p)
			if err != nil {
				return nil, err
			}
			d.to = append(d.to, netip.AddrPortFrom(a.AddrPort().Addr().Unmap(), a.AddrPort().Port()))
		}
		if d.conn, err = net.ListenUDP("udp4", at); err != nil {
			return nil, err
		}
		d.sender = d.conn
	} else if err = d.openGroup(e, publisher); err != nil {
		return nil, err
	}
	d.sender.SetWriteBuffer(socketBuffer)
	if d.conn != nil {
		d.conn.SetReadBuffer(socketBuffer)
		d.reader.Go(d.read)
	}
	return d, nil
}

// openGroup joins one group where something is to be read, and sends to the other.
func (d *datagrams) openGroup(e *Endpoint, publisher bool) error {
	in, out := e.Reply, e.Address
	if !publisher {
		in, out = out, in
	}
	face, err := multicastInterface(e.Interface)
	if err != nil {
		return err
	}
	if in != "" {
		at, err := net.ResolveUDPAddr("udp4", in)
		if err != nil {
			return err
		}
		if d.conn, err = net.ListenMulticastUDP("udp4", face, at); err != nil {
			return err
		}
	}
	if out == "" {
		d.sender = d.conn
		return nil
	}
	to, err := net.ResolveUDPAddr("udp4", out)
	if err != nil {
		return err
	}
	d.to = []netip.AddrPort{to.AddrPort()}
	if d.sender, err = sendToGroup(face); err != nil && d.conn != nil {
		d.conn.Close()
	}
	return err
}

func (d *datagrams) read() {
	buffer := make([]byte, 1<<16)
	for {
		n, _, err := d.conn.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			d.deliver(buffer[:n])
		}
	}
}

func (d *datagrams) publish(payload []byte) error {
	var failed error
	for _, to := range d.to {
		if _, err := d.sender.WriteToUDPAddrPort(payload, to); err != nil {
			failed = err
		}
	}
	return failed
}

func (d *datagrams) subscribe(handle func([]byte)) error { d.add(handle); return nil }

func (d *datagrams) ready(context.Context, int) error { return nil }

func (d *datagrams) drops() map[string]uint64 { return nonZero("channel.full", d.lost.Load()) }

func (d *datagrams) close() error {
	if d.conn != nil {
		d.conn.Close()
	}
	d.reader.Wait()
	d.fan.close()
	return d.sender.Close()
}

// conns is stream connections: a publisher accepts, a subscriber dials. All
// messages have the same size, so that nothing frames them.
type conns struct {
	fan
	size     int
	listener net.Listener
	mu       sync.Mutex
	list     []net.Conn
	changed  chan struct{}
	closed   bool
	tasks    sync.WaitGroup
}

func networkOf(kind string) string {
	if kind == "unix" {
		return "unix"
	}
	return "tcp"
}

func openConns(e *Endpoint, publisher bool) (end, error) {
	c := &conns{fan: fan{depth: e.Depth}, size: e.Payload, changed: make(chan struct{}, 1)}
	if publisher {
		if e.Kind == "unix" {
			os.Remove(e.Address) // of a run that was killed
		}
		var err error
		if c.listener, err = net.Listen(networkOf(e.Kind), e.Address); err != nil {
			return nil, err
		}
		c.tasks.Go(func() {
			for {
				conn, err := c.listener.Accept()
				if err != nil {
					return
				}
				c.add(conn)
			}
		})
		return c, nil
	}
	conn, err := net.DialTimeout(networkOf(e.Kind), e.Address, 10*time.Second)
	if err != nil {
		return nil, err
	}
	c.add(conn)
	return c, nil
}

func (c *conns) add(conn net.Conn) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		conn.Close()
		return
	}
	c.list = append(c.list, conn)
	c.mu.Unlock()
	c.tasks.Go(func() {
		buffer := make([]byte, c.size)
		for {
			if _, err := io.ReadFull(conn, buffer); err != nil {
				return
			}
			c.deliver(buffer)
		}
	})
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

func (c *conns) publish(payload []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var failed error
	for _, conn := range c.list {
		if _, err := conn.Write(payload); err != nil {
			failed = err
		}
	}
	return failed
}

func (c *conns) subscribe(handle func([]byte)) error { c.fan.add(handle); return nil }

// ready waits for the connections, one for each process of subscribers, which
// says nothing about subscribers: probes do.
func (c *conns) ready(ctx context.Context, _ int) error {
	for {
		c.mu.Lock()
		n := len(c.list)
		c.mu.Unlock()
		if n > 0 {
			return nil
		}
		select {
		case <-c.changed:
		case <-ctx.Done():
			return fmt.Errorf("no subscriber came: %w", context.Cause(ctx))
		}
	}
}

func (c *conns) drops() map[string]uint64 { return nonZero("channel.full", c.lost.Load()) }

func (c *conns) close() error {
	if c.listener != nil {
		c.listener.Close()
	}
	c.mu.Lock()
	c.closed = true
	for _, conn := range c.list {
		conn.Close()
	}
	c.mu.Unlock()
	c.tasks.Wait()
	c.fan.close()
	return nil
}
