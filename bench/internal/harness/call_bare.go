package harness

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/madara-go/madara/transport"
)

// frameHeader is the length before a request or an answer on a bare connection.
const frameHeader = 4

func writeFrame(conn net.Conn, buffer, payload []byte) ([]byte, error) {
	buffer = append(binary.LittleEndian.AppendUint32(buffer[:0], uint32(len(payload))), payload...)
	_, err := conn.Write(buffer)
	return buffer, err
}

func readFrame(r io.Reader, buffer []byte) ([]byte, error) {
	var head [frameHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int(binary.LittleEndian.Uint32(head[:]))
	if n > MaxPayload {
		return nil, transport.ErrTooLarge
	}
	if cap(buffer) < n {
		buffer = make([]byte, n)
	}
	_, err := io.ReadFull(r, buffer[:n])
	return buffer[:n], err
}

// bareGateway answers requests of each connection in order. Within a process
// the connection is two channels.
type bareGateway struct {
	listener net.Listener
	requests chan []byte
	answers  chan []byte
	stop     chan struct{}
	mu       sync.Mutex
	list     []net.Conn
	closed   bool
	tasks    sync.WaitGroup
}

// gateways are the bare gateways within this process by address.
var gateways sync.Map

func serveBare(e *Endpoint, c *controlPeer) (*bareGateway, error) {
	g := &bareGateway{stop: make(chan struct{})}
	if e.Kind == "inproc" {
		g.requests, g.answers = make(chan []byte), make(chan []byte)
		gateways.Store(e.Address, g)
		g.tasks.Go(func() {
			for {
				select {
				case r := <-g.requests:
					select {
					case g.answers <- c.handle(r):
					case <-g.stop:
						return
					}
				case <-g.stop:
					return
				}
			}
		})
		return g, nil
	}
	if e.Kind == "unix" {
		os.Remove(e.Address) // of a run that was killed
	}
	var err error
	if g.listener, err = net.Listen(networkOf(e.Kind), e.Address); err != nil {
		return nil, err
	}
	g.tasks.Go(func() {
		for {
			conn, err := g.listener.Accept()
			if err != nil {
				return
			}
			g.mu.Lock()
			if g.closed {
				g.mu.Unlock()
				conn.Close()
				return
			}
			g.list = append(g.list, conn)
			g.mu.Unlock()
			g.tasks.Go(func() { answer(conn, c) })
		}
	})
	return g, nil
}

// answer reads requests and writes the answers, with one read for a small
// request, as a program without a library would.
func answer(conn net.Conn, c *controlPeer) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	var request, buffer []byte
	for {
		var err error
		if request, err = readFrame(r, request); err != nil {
			return
		}
		if buffer, err = writeFrame(conn, buffer, c.handle(request)); err != nil {
			return
		}
	}
}

func (g *bareGateway) close() error {
	close(g.stop)
	if g.listener != nil {
		g.listener.Close()
	}
	g.mu.Lock()
	g.closed = true
	for _, conn := range g.list {
		conn.Close()
	}
	g.mu.Unlock()
	g.tasks.Wait()
	return nil
}

// bareCaller writes a request and reads the answer, on the caller's goroutine.
type bareCaller struct {
	mu     sync.Mutex
	conn   net.Conn
	r      *bufio.Reader
	g      *bareGateway
	out    []byte
	answer []byte
	reuse  bool // of answer, for the next one
}

func dialBare(e *Endpoint, plan CallPlan) (caller, error) {
	if e.Kind == "inproc" {
		g, ok := gateways.Load(e.Address)
		if !ok {
			return nil, transport.ErrUnreachable
		}
		return &bareCaller{g: g.(*bareGateway)}, nil
	}
	conn, err := net.DialTimeout(networkOf(e.Kind), e.Address, 10*time.Second)
	if err != nil {
		return nil, err
	}
	if plan.Fifo {
		return newFifoCaller(conn), nil
	}
	return &bareCaller{conn: conn, r: bufio.NewReader(conn), reuse: plan.InFlight <= 1}, nil
}

func (b *bareCaller) call(ctx context.Context, _ string, request []byte, _, _ bool) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.g != nil {
		select {
		case b.g.requests <- append([]byte(nil), request...):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		select {
		case r := <-b.g.answers:
			return r, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	out, err := writeFrame(b.conn, b.out, request)
	if b.out = out; err != nil {
		return nil, err
	}
	answer, err := readFrame(b.r, b.answer)
	if b.reuse {
		b.answer = answer
	}
	return answer, err
}

func (b *bareCaller) close() error {
	if b.conn == nil {
		return nil
	}
	return b.conn.Close()
}

// fifoCaller is many calls over one connection, answered in their order: the
// arrangement that priorities are to be better than.
type fifoCaller struct {
	conn    net.Conn
	mu      sync.Mutex
	out     []byte
	waiting chan chan []byte
	done    chan struct{}
}

func newFifoCaller(conn net.Conn) *fifoCaller {
	f := &fifoCaller{conn: conn, waiting: make(chan chan []byte, 1024), done: make(chan struct{})}
	go func() {
		defer close(f.done)
		r := bufio.NewReader(conn)
		for {
			answer, err := readFrame(r, nil)
			if err != nil {
				return
			}
			(<-f.waiting) <- answer
		}
	}()
	return f
}

func (f *fifoCaller) call(ctx context.Context, _ string, request []byte, _, _ bool) ([]byte, error) {
	mine := make(chan []byte, 1)
	f.mu.Lock()
	f.waiting <- mine
	var err error
	f.out, err = writeFrame(f.conn, f.out, request)
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case answer := <-mine:
		return answer, nil
	case <-f.done:
		return nil, errors.New("the connection ended")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *fifoCaller) close() error {
	err := f.conn.Close()
	<-f.done
	return err
}
