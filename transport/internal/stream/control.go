package stream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/internal/hub"
	"github.com/madara-go/madara/transport/internal/service"
)

// The bounds of a Control.
const (
	maxOpen    = 16_384    // requests of one connection that are not answered
	maxHeld    = 256 << 20 // bytes of requests that are held at the same time, if none may be so long
	maxTargets = 1024
	queued     = 1 << 20          // bytes that wait for one connection
	kernel     = 96 << 10         // bytes of the socket's send buffer: what is in it cannot be overtaken
	ahead      = 4 << 10          // bytes that are read ahead; parts are read to where they belong
	piece      = 128 << 10        // bytes that are written at once
	stalled    = 10 * time.Second // for a piece, and for the rest of a request
)

// Control is a transport.Control over connections: one to each target for each
// priority, so that no request waits behind one of a lower class.
type Control struct {
	counters hub.Counters
	services service.Table
	network  *Network
	session  uint64
	accepted *acceptor
	held     atomic.Int64 // bytes of requests that are received or handled
	stalled  time.Duration
	max      int   // bytes of a request or response
	room     int64 // for requests that are received or handled
	stop     context.Context
	cancel   context.CancelFunc

	mu      sync.Mutex // before line.mu
	closed  bool
	targets map[string]*target

	life    sync.Mutex // after line.mu
	ended   bool
	running sync.WaitGroup
}

// NewControl returns a Control that serves whoever connects to listener, unless
// it is nil.
func NewControl(n *Network, listener net.Listener, s transport.Settings) *Control {
	c := &Control{network: n, session: rand.Uint64() | 1, stalled: stalled, max: s.MaxPayload, room: max(maxHeld, 2*int64(s.MaxPayload)), targets: map[string]*target{}}
	c.services.Counters = &c.counters
	c.stop, c.cancel = context.WithCancel(context.Background())
	c.accepted = accept(listener, n, func(d transport.Drop) { c.counters.Drop(d, 1) }, c.serve)
	return c
}

// Serve is transport.Control.Serve.
func (c *Control) Serve(method string, o *transport.ServeOptions, handle transport.Handler) (transport.Service, error) {
	return c.services.Serve(method, o, handle)
}

// MaxPayload is transport.Control.MaxPayload.
func (c *Control) MaxPayload() int { return c.max }

// Stats is transport.Control.Stats.
func (c *Control) Stats() transport.Stats { return c.counters.Stats() }

// Close is transport.Control.Close.
func (c *Control) Close() error {
	c.services.Inside("Control.Close")
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.life.Lock()
	c.ended = true
	c.life.Unlock()
	c.cancel()
	err := c.accepted.close()
	c.services.End()
	c.running.Wait()
	c.services.Close()
	return err
}

// Call is transport.Control.Call.
func (c *Control) Call(ctx context.Context, to, method string, request []byte, o *transport.CallOptions) ([]byte, error) {
	if o == nil {
		o = &transport.CallOptions{}
	}
	if err := service.CheckCall(method, request, c.max, o); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, service.ContextError(ctx)
	}
	t, err := c.target(to)
	if err != nil {
		return nil, err
	}
	c.counters.Calls.Add(1)
	c.counters.Pending.Add(1)
	defer c.counters.Pending.Add(-1)
	l := &t.lines[service.Class(o.Priority)]
	var broke error // what the connection broke with
	for {
		var response []byte
		caller, err := l.get(ctx)
		again := broke != nil
		if err == nil {
			response, err = caller.call(ctx, method, request)
			again = true
		}
		switch {
		case err == nil:
			return response, nil
		case errors.Is(err, transport.ErrUnreachable) && o.Idempotent && again:
			broke = err
		case broke != nil && ctx.Err() != nil:
			return nil, named(fmt.Errorf("%w: %w", service.ContextError(ctx), broke), to, method)
		default:
			return nil, named(err, to, method)
		}
		if !sleep(min(firstBackoff, time.Until(l.again())), ctx.Done()) {
			return nil, named(fmt.Errorf("%w: %w", service.ContextError(ctx), broke), to, method)
		}
	}
}

// named puts target and method into an error that does not say them.
func named(err error, to, method string) error {
	var remote *transport.RemoteError
	if errors.As(err, &remote) {
		remote.Target, remote.Method = to, method
		return err
	}
	return fmt.Errorf("%s of %s: %w", method, to, err)
}

// target is a process that is called, with a line for each class.
type target struct {
	lines [service.Classes]line
}

func (c *Control) target(address string) (*target, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, transport.ErrClosed
	}
	t := c.targets[address]
	if t == nil {
		if len(c.targets) >= maxTargets {
			c.forget()
		}
		if len(c.targets) >= maxTargets {
			return nil, fmt.Errorf("more than %d targets: %w", maxTargets, transport.ErrBusy)
		}
		t = &target{}
		for i := range t.lines {
			t.lines[i] = line{control: c, address: address, class: uint8(i)}
		}
		c.targets[address] = t
	}
	return t, nil
}

// forget removes the targets without a connection, with mu held.
func (c *Control) forget() {
	for address, t := range c.targets {
		used := false
		for i := range t.lines {
			l := &t.lines[i]
			l.mu.Lock()
			used = used || l.caller != nil || l.dialling != nil
			l.mu.Unlock()
		}
		if !used {
			delete(c.targets, address)
		}
	}
}

// line is the connection to a target for one class, and how to get it.
type line struct {
	control *Control
	address string
	class   uint8

	mu       sync.Mutex
	caller   *caller
	dialling chan struct{} // closed when dialling ends
	failed   error         // of the last dialling
	next     time.Time     // when to dial again
	wait     backoff
}

// again returns when a connection may be had again.
func (l *line) again() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// get returns the connection; it makes it if there is none, but not too often.
func (l *line) get(ctx context.Context) (*caller, error) {
	dialled := false
	for {
		l.mu.Lock()
		if to := l.caller; to != nil {
			l.mu.Unlock()
			return to, nil
		}
		if l.dialling == nil {
			if err := l.failed; err != nil && (dialled || time.Now().Before(l.next)) {
				l.mu.Unlock()
				return nil, fmt.Errorf("%w: %w", transport.ErrUnreachable, err)
			}
			l.dialling = make(chan struct{})
			if !l.control.begin(l.dial) {
				l.dialling = nil
				l.mu.Unlock()
				return nil, transport.ErrClosed
			}
		}
		dialling := l.dialling
		dialled = true
		l.mu.Unlock()
		select {
		case <-dialling:
		case <-ctx.Done():
			return nil, service.ContextError(ctx)
		}
	}
}

// begin starts a goroutine that Close waits for, unless it does already.
func (c *Control) begin(f func()) bool {
	c.life.Lock()
	defer c.life.Unlock()
	if !c.ended {
		c.running.Go(f)
	}
	return !c.ended
}

// dial makes the connection and reads from it until it ends.
func (l *line) dial() {
	c := l.control
	conn, _, theirs, err := dial(c.stop, c.network, l.address, hello{class: l.class, session: c.session}, magicControl)
	var to *caller
	if err == nil {
		shrink(conn)
		to = newCaller(c, conn, int(min(theirs.window, maxOpen)))
	}
	l.mu.Lock()
	l.caller, l.failed = to, err
	if err != nil {
		l.next = time.Now().Add(l.wait.wait())
	} else {
		l.wait.reset()
	}
	close(l.dialling)
	l.dialling = nil
	l.mu.Unlock()
	if err != nil {
		if d, ok := dropOf(err); ok {
			c.counters.Drop(d, 1)
		}
		return
	}
	c.counters.Peers.Add(1)
	defer c.counters.Peers.Add(-1)
	stop := context.AfterFunc(c.stop, to.close)
	defer stop()
	var writing sync.WaitGroup
	writing.Go(to.run)
	err = to.read()
	if d, ok := dropOf(err); ok {
		c.counters.Drop(d, 1)
	}
	l.mu.Lock()
	l.caller = nil
	l.failed, l.next = err, time.Now().Add(l.wait.wait())
	l.mu.Unlock()
	to.close()
	to.lose(err)
	writing.Wait()
}

// shrink makes the socket's send buffer small.
func shrink(conn net.Conn) {
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = t.NetConn()
	}
	if t, ok := conn.(*net.TCPConn); ok && shrinkUnsent(t) {
		return
	}
	if s, ok := conn.(interface{ SetWriteBuffer(int) error }); ok {
		s.SetWriteBuffer(kernel)
	}
}
