package stream

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/internal/service"
)

// caller is a connection that calls are made over.
type caller struct {
	*writer
	control *Control
	window  int // calls that may wait at the same time

	responses

	mu      sync.Mutex
	id      uint64
	pending map[uint64]*call
	lost    error
	turn    turn
	broken  error         // what a caller met that read; guarded by mu
	timer   *time.Timer   // runs keep
	wanted  chan struct{} // the keeper is to read; capacity 1
}

func newCaller(c *Control, conn net.Conn, window int) *caller {
	to := &caller{
		writer: newWriter(conn, queued, piece), control: c, window: window, pending: map[uint64]*call{},
		responses: responses{r: bufio.NewReaderSize(conn, ahead)}, turn: keeping, wanted: make(chan struct{}, 1),
	}
	to.stalled = c.stalled
	return to
}

// call is a call that waits for its response.
type call struct {
	done     chan struct{} // capacity 1
	response []byte
	size     int // of the response, announced
	status   byte
	err      error
}

var calls = sync.Pool{New: func() any { return &call{done: make(chan struct{}, 1)} }}

// heads is room for a frame without its part.
var heads = sync.Pool{New: func() any {
	b := make([]byte, 0, frameHead+requestHead+transport.MaxMethod)
	return &b
}}

// The statuses of a response.
const (
	statusOK       = 0
	statusError    = 1 // the payload is the message
	statusBusy     = 2
	statusMethod   = 3 // not served
	statusExpired  = 4
	statusTooLarge = 5
	statusClosed   = 6
)

// call makes one call.
func (c *caller) call(ctx context.Context, method string, request []byte) ([]byte, error) {
	k := calls.Get().(*call)
	c.mu.Lock()
	switch {
	case c.lost != nil:
		c.mu.Unlock()
		return nil, c.lost
	case len(c.pending) >= c.window:
		c.mu.Unlock()
		c.control.counters.Drop(transport.DropBusy, 1)
		return nil, transport.ErrBusy
	}
	c.id++
	id := c.id
	c.pending[id] = k
	c.mu.Unlock()

	stop := ctx.Done()
	if !c.request(ctx, k, id, method, request) {
		// The time is over, the connection is lost, or the response is there.
		select {
		case <-stop:
			return c.leave(ctx, k, id)
		case <-k.done:
			return c.finish(ctx, k)
		}
	}
	c.lead(ctx, k)
	select {
	case <-k.done:
		return c.finish(ctx, k)
	case <-stop:
		return c.leave(ctx, k, id)
	}
}

// request sends the request, part after part. It returns false if it could not,
// or need not.
func (c *caller) request(ctx context.Context, k *call, id uint64, method string, request []byte) bool {
	buf := heads.Get().(*[]byte)
	defer heads.Put(buf)
	left := uint64(0)
	if deadline, ok := ctx.Deadline(); ok {
		left = uint64(max(time.Until(deadline).Microseconds(), 1))
	}
	part := request[:min(len(request), chunk)]
	f := beginFrame((*buf)[:0], kindRequest, requestHead+len(method)+len(part))
	f = binary.BigEndian.AppendUint64(f, id)
	f = binary.BigEndian.AppendUint64(f, left)
	f = binary.BigEndian.AppendUint32(f, uint32(len(request)))
	f = append(f, byte(len(method)))
	f = append(f, method...)
	if !c.sendWait(f, part, ctx.Done()) {
		return false
	}
	c.control.counters.Sent(len(request))
	if len(request) > stage {
		c.keep() // as a refusal may come meanwhile
	}
	for request = request[len(part):]; len(request) > 0; request = request[len(part):] {
		if len(k.done) > 0 { // refused
			return false
		}
		part = request[:min(len(request), chunk)]
		if !c.sendWait(appendContinue((*buf)[:0], id, part), part, ctx.Done()) {
			return false
		}
	}
	return true
}

// appendContinue appends the head of a frame for a part.
func appendContinue(f []byte, id uint64, part []byte) []byte {
	return binary.BigEndian.AppendUint64(beginFrame(f, kindContinue, idSize+len(part)), id)
}

// leave gives a call up, unless its response has come.
func (c *caller) leave(ctx context.Context, k *call, id uint64) ([]byte, error) {
	c.mu.Lock()
	_, waits := c.pending[id]
	delete(c.pending, id)
	c.mu.Unlock()
	if !waits {
		<-k.done
		return c.finish(ctx, k)
	}
	var b [frameHead + idSize]byte
	c.send(binary.BigEndian.AppendUint64(beginFrame(b[:0], kindCancel, idSize), id), nil, true)
	return nil, service.ContextError(ctx) // k stays out of the pool: the reader may be at it
}

// finish returns what came.
func (c *caller) finish(ctx context.Context, k *call) ([]byte, error) {
	response, err := k.response, k.err
	if err == nil {
		switch k.status {
		case statusOK:
		case statusBusy:
			err = transport.ErrBusy
		case statusMethod:
			err = transport.ErrMethod
		case statusExpired:
			err = service.Expired(ctx)
		case statusTooLarge:
			err = transport.ErrTooLarge
		case statusClosed:
			err = fmt.Errorf("%w: it is being closed", transport.ErrUnreachable)
		default:
			err = &transport.RemoteError{Message: string(response)}
		}
	}
	*k = call{done: k.done}
	calls.Put(k)
	if err != nil {
		return nil, err
	}
	return response, nil
}

// lose ends all calls of a connection that broke.
func (c *caller) lose(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.control.stop.Err() != nil {
		c.lost = transport.ErrClosed
	} else {
		if errors.Is(err, io.EOF) {
			err = errors.New("the connection was closed")
		}
		c.lost = fmt.Errorf("%w: %w", transport.ErrUnreachable, err)
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	for id, k := range c.pending {
		delete(c.pending, id)
		k.err = c.lost
		k.done <- struct{}{}
	}
}

// receive appends a part of so many bytes to dst, as room has it.
func receive(r io.Reader, dst []byte, part, size int) ([]byte, error) {
	dst, err := room(dst, part, size)
	if err != nil {
		return dst, err
	}
	from := len(dst)
	dst = dst[:from+part]
	_, err = io.ReadFull(r, dst[from:])
	return dst, err
}

// room makes room in dst for a part of so many bytes. It grows to size once a
// stage of it has come.
func room(dst []byte, part, size int) ([]byte, error) {
	if len(dst)+part > size {
		return dst, malformed("%d bytes more than announced", len(dst)+part-size)
	}
	if cap(dst) < len(dst)+part {
		dst = append(make([]byte, 0, size), dst...)
	}
	return dst, nil
}
