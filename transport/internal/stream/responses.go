package stream

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"time"

	"github.com/madara-go/madara/transport"
)

// turn is who reads the responses that come over a connection.
//
// A goroutine of the connection, the keeper, would do; but then each response
// wakes two goroutines, the keeper and who called, and mostly two threads: a call
// at 1 kHz over a unix socket takes 1.5 times as long as over a bare one. So who
// calls reads himself if nobody does, for a short while, and hands responses of
// others to them. The keeper reads when that while is over, when others still
// wait, while a very long request is sent, and when nobody has called for some time,
// to see the end of the connection.
type turn uint8

const (
	nobody  turn = iota
	leading      // one of those who call
	keeping      // the keeper
)

const (
	// leadFor is how long a caller reads at most, and double of how long he may at
	// least. He does not hear of a cancellation meanwhile.
	leadFor = 20 * time.Millisecond
	// rest is after how long without calls the keeper reads.
	rest = 50 * time.Millisecond
)

// responses is where reading stands. It belongs to whose turn it is, and allows
// to be interrupted anywhere.
type responses struct {
	r     *bufio.Reader
	until time.Time // the connection's read deadline, zero for none
	left  int       // bytes of a part that is being read
	part  *call     // where it belongs, nil if nobody waits for it
	owner uint64    // the call that part is of
}

// lead reads until the response for k is there, if it is the caller's turn.
func (c *caller) lead(ctx context.Context, k *call) {
	c.mu.Lock()
	mine := c.turn == nobody
	if mine {
		c.turn = leading
	}
	c.mu.Unlock()
	if !mine {
		return
	}
	now := time.Now()
	end := now.Add(leadFor)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(end) {
		end = deadline
	}
	if c.until.After(end) || c.until.Sub(now) < end.Sub(now)/2 { // as seldom as may be
		c.until = end
		c.conn.SetReadDeadline(end)
	}
	var err error
	for err == nil && len(k.done) == 0 {
		err = c.frame()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn = nobody
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.broken = err
	}
	if err != nil || len(c.pending) > 0 {
		c.wake()
	} else {
		c.tick()
	}
}

// keep lets the keeper read, unless somebody does.
func (c *caller) keep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turn == nobody {
		c.wake()
	}
}

// wake lets the keeper read, with mu held.
func (c *caller) wake() {
	c.turn = keeping
	select {
	case c.wanted <- struct{}{}:
	default:
	}
}

// tick lets the keeper read after a while without calls, with mu held.
func (c *caller) tick() {
	switch {
	case c.lost != nil:
	case c.timer == nil:
		c.timer = time.AfterFunc(rest, c.keep)
	default:
		c.timer.Reset(rest)
	}
}

// read is the keeper. It returns when the connection ends.
func (c *caller) read() error {
	for {
		c.until = time.Time{}
		c.conn.SetReadDeadline(c.until)
		for done := false; !done; {
			if err := c.frame(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				return err
			}
			c.mu.Lock()
			if done = len(c.pending) == 0; done {
				c.turn = nobody
				c.tick()
			}
			c.mu.Unlock()
		}
		select {
		case <-c.wanted:
		case <-c.done:
			return net.ErrClosed
		}
		c.mu.Lock()
		err := c.broken
		c.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// frame takes a frame, or goes on with one that was begun.
func (c *caller) frame() error {
	if c.left == 0 {
		if err := c.head(); err != nil {
			return err
		}
	}
	k := c.part
	if k == nil {
		n, err := c.r.Discard(c.left)
		c.left -= n
		return err
	}
	for c.left > 0 {
		from := len(k.response)
		n, err := c.r.Read(k.response[from : from+c.left])
		k.response = k.response[:from+n]
		c.left -= n
		if err != nil {
			return err
		}
	}
	if len(k.response) == k.size {
		c.complete(k)
	}
	return nil
}

// complete gives a response to who waits for it.
func (c *caller) complete(k *call) {
	c.mu.Lock()
	_, waits := c.pending[c.owner]
	delete(c.pending, c.owner)
	c.mu.Unlock()
	if !waits {
		c.control.counters.Drop(transport.DropLate, 1)
		return
	}
	c.control.counters.Received(k.size)
	k.done <- struct{}{}
}

// head takes the beginning of a frame, so that left and part say what follows.
func (c *caller) head() error {
	b, err := c.r.Peek(frameHead + idSize)
	if err != nil {
		return err
	}
	kind, body, err := parseHead(b, responseHead+chunk)
	if err != nil {
		return err
	}
	want := idSize
	if kind == kindResponse {
		want = responseHead
	}
	if kind != kindResponse && kind != kindContinue || body < want {
		return malformed("a frame of kind %d with %d bytes", kind, body)
	}
	if b, err = c.r.Peek(frameHead + want); err != nil {
		return err
	}
	b = b[frameHead:]
	part := body - want
	c.owner = binary.BigEndian.Uint64(b)
	c.mu.Lock()
	k := c.pending[c.owner]
	c.mu.Unlock()
	switch {
	case k == nil:
		if kind == kindResponse {
			c.control.counters.Drop(transport.DropLate, 1)
		}
	case kind == kindContinue && k.response == nil:
		return malformed("a response without its beginning")
	case kind == kindResponse:
		if k.response != nil {
			return malformed("a second response")
		}
		size := binary.BigEndian.Uint32(b[idSize+1:])
		if uint64(size) > uint64(c.control.max) { // the other end has another limit
			k.status = statusTooLarge
			c.complete(k)
			k = nil
			break
		}
		k.status, k.size = b[idSize], int(size)
		k.response = make([]byte, 0, min(k.size, stage))
	}
	if k != nil {
		if k.response, err = room(k.response, part, k.size); err != nil {
			return err
		}
	}
	c.left, c.part = part, k
	_, err = c.r.Discard(frameHead + want)
	return err
}
