package hub

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/petermattis/goid"

	"github.com/madara-go/madara/transport"
)

// Pace is how quick a handler is, so that it may run on a Reader: one that took
// longer than quick may not, for at least remain messages.
type Pace struct{ slow int }

const (
	quick  = 200 * time.Microsecond
	remain = 100
)

// Quick reports whether the handler was quick until now.
func (p *Pace) Quick() bool { return p.slow == 0 }

// Took notes how long the handler ran.
func (p *Pace) Took(d time.Duration) {
	if d > quick {
		p.slow = remain
	} else if p.slow > 0 {
		p.slow--
	}
}

// epoch is what handlers are timed against.
var epoch = time.Now()

// subscription is a handler, which runs for one message at a time: on a goroutine
// of the subscription, or on a Reader.
type subscription struct {
	hub    *Hub
	topic  string
	newest bool // a full ring drops the new message
	handle func(*transport.Message)

	refused func(source string, err error) // nil is none

	goroutine          atomic.Int64 // on which the handler runs, 0 for none
	delivered, dropped atomic.Uint64

	mu     sync.Mutex
	ring   []*Buffer
	first  int
	count  int
	busy   bool // the handler runs
	pace   Pace
	closed bool
	wake   chan struct{}
	done   chan struct{}
}

func (s *subscription) put(b *Buffer) {
	var out *Buffer
	s.mu.Lock()
	switch {
	case s.closed:
		out = b
	case s.count < len(s.ring):
		s.ring[(s.first+s.count)%len(s.ring)] = b
		s.count++
	default:
		s.dropped.Add(1)
		s.hub.Drop(transport.DropInbox, 1)
		if s.newest {
			out = b
			break
		}
		out = s.ring[s.first]
		s.ring[s.first] = b
		s.first = (s.first + 1) % len(s.ring)
	}
	s.mu.Unlock()
	if out != nil {
		out.Release()
	}
	s.look()
}

// look lets the subscription's goroutine see what there is to do.
func (s *subscription) look() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// take makes the subscription busy with the oldest message of the ring.
func (s *subscription) take() (b *Buffer, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy || s.closed || s.count == 0 {
		return nil, s.closed && !s.busy
	}
	b = s.ring[s.first]
	s.ring[s.first] = nil
	s.first = (s.first + 1) % len(s.ring)
	s.count--
	s.busy = true
	return b, false
}

// begin makes the subscription busy with a message that was not in the ring, if
// none are before it and the handler was quick.
func (s *subscription) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy || s.closed || s.count > 0 || !s.pace.Quick() {
		return false
	}
	s.busy = true
	return true
}

// left lets the subscription's goroutine see what came while another one was
// busy with the handler.
func (s *subscription) left() {
	s.mu.Lock()
	more := s.count > 0 || s.closed
	s.mu.Unlock()
	if more {
		s.look()
	}
}

// one runs the handler, for who made the subscription busy.
func (s *subscription) one(b *Buffer) {
	s.goroutine.Store(goid.Get())
	began := time.Since(epoch)
	defer func() { // also if the handler ends the goroutine
		s.goroutine.Store(0)
		b.Release()
		took := time.Since(epoch) - began
		s.mu.Lock()
		s.busy = false
		s.pace.Took(took)
		s.mu.Unlock()
	}()
	s.handle(&b.Message)
	s.delivered.Add(1)
}

func (s *subscription) run() {
	ended := false
	defer func() {
		if ended {
			close(s.done)
			return
		}
		go s.run() // a handler ended the goroutine
	}()
	for {
		b, closed := s.take()
		switch {
		case closed:
			ended = true
			return
		case b == nil:
			<-s.wake
		default:
			s.one(b)
		}
	}
}

// Stats is Subscription.Stats.
func (s *subscription) Stats() transport.SubscriptionStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return transport.SubscriptionStats{Delivered: s.delivered.Load(), Dropped: s.dropped.Load(), Waiting: s.count}
}

// Close is Subscription.Close.
func (s *subscription) Close() error {
	if s.goroutine.Load() == goid.Get() {
		panic("transport: Subscription.Close called by its handler, which it would wait for")
	}
	s.mu.Lock()
	waiting := s.ring
	if !s.closed {
		s.closed = true
		s.ring, s.count = nil, 0
	} else {
		waiting = nil
	}
	s.mu.Unlock()
	for _, b := range waiting {
		if b != nil {
			b.Release()
		}
	}
	s.hub.remove(s)
	s.look()
	<-s.done
	return nil
}
