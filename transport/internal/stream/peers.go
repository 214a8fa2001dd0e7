package stream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/madara-go/madara/transport"
)

// Network makes connections for a link, and says who is at the other end.
type Network struct {
	Name string // "tcp", for errors
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Admit returns who is at the other end of a connection, or an error if it may
	// not be there. It is called for both ends, and may do a handshake until the
	// connection's deadline.
	Admit func(net.Conn) (source string, err error)
}

// The times of a connection.
const (
	helloTimeout = 5 * time.Second
	dialTimeout  = 5 * time.Second
	firstBackoff = 10 * time.Millisecond
	lastBackoff  = 2 * time.Second
)

// maxPeers is how many connections a link accepts.
const maxPeers = 1024

// backoff is the time to wait before dialling again.
type backoff struct{ next time.Duration }

func (b *backoff) reset() { b.next = 0 }

// wait returns the time, with jitter, and doubles the next one.
func (b *backoff) wait() time.Duration {
	b.next = min(max(b.next*2, firstBackoff), lastBackoff)
	return b.next/2 + rand.N(b.next/2)
}

// sleep waits and reports whether stop was not closed meanwhile.
func sleep(d time.Duration, stop <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-stop:
		return false
	}
}

// open begins a connection: who is there, and the hellos.
func open(conn net.Conn, n *Network, ours hello, magic string) (source string, theirs hello, err error) {
	conn.SetDeadline(time.Now().Add(helloTimeout))
	if source, err = n.Admit(conn); err != nil {
		return "", hello{}, err
	}
	if _, err = conn.Write(ours.append(nil, magic)); err != nil {
		return "", hello{}, err
	}
	if theirs, err = readHello(conn, magic); err != nil {
		return "", hello{}, err
	}
	conn.SetDeadline(time.Time{})
	return source, theirs, nil
}

// dial makes a connection and begins it.
func dial(ctx context.Context, n *Network, address string, ours hello, magic string) (_ net.Conn, source string, theirs hello, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := n.Dial(ctx, address)
	if err != nil {
		return nil, "", hello{}, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	source, theirs, err = open(conn, n, ours, magic)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, "", hello{}, err
	}
	return conn, source, theirs, nil
}

// acceptor takes connections from a listener until it is closed.
type acceptor struct {
	listener net.Listener
	network  *Network
	count    func(transport.Drop)
	serve    func(net.Conn)
	stop     chan struct{} // closed by close

	mu      sync.Mutex
	conns   map[net.Conn]bool
	closed  bool
	running sync.WaitGroup
}

func (a *acceptor) run() {
	var wait backoff
	for {
		conn, err := a.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			a.count(transport.DropRead)
			if !sleep(wait.wait(), a.stop) { // out of file descriptors, perhaps
				return
			}
			continue
		}
		wait.reset()
		a.mu.Lock()
		if a.closed || len(a.conns) >= maxPeers {
			full := !a.closed
			a.mu.Unlock()
			conn.Close()
			if full {
				a.count(transport.DropPeer)
			}
			continue
		}
		a.conns[conn] = true
		a.running.Go(func() {
			a.serve(conn)
			conn.Close()
			a.mu.Lock()
			delete(a.conns, conn)
			a.mu.Unlock()
		})
		a.mu.Unlock()
	}
}

// accept starts an acceptor. listener may be nil.
func accept(listener net.Listener, n *Network, count func(transport.Drop), serve func(net.Conn)) *acceptor {
	a := &acceptor{listener: listener, network: n, count: count, serve: serve, conns: map[net.Conn]bool{}, stop: make(chan struct{})}
	if listener != nil {
		a.running.Go(a.run)
	}
	return a
}

// close closes the listener and all its connections, and waits for what serves them.
func (a *acceptor) close() error {
	var err error
	a.mu.Lock()
	if !a.closed {
		close(a.stop)
		if a.listener != nil {
			err = a.listener.Close()
		}
	}
	a.closed = true
	for conn := range a.conns {
		conn.Close()
	}
	a.mu.Unlock()
	a.running.Wait()
	return err
}

// dropOf is the reason under which a connection is counted that ended with err
// before or after its hello; ok is false where it is none: the other end left.
func dropOf(err error) (transport.Drop, bool) {
	switch {
	case errors.Is(err, errFrame):
		return transport.DropFrame, true
	case errors.Is(err, ErrRefused):
		return transport.DropPeer, true
	}
	return 0, false
}

// ErrRefused is what Admit wraps for who may not be at the other end.
var ErrRefused = errors.New("peer may not connect")

// tooLarge is the error for a payload.
func tooLarge(n, max int) error {
	return fmt.Errorf("%d bytes, at most %d are allowed: %w", n, max, transport.ErrTooLarge)
}
