package knowledge

import (
	"context"
	"sync/atomic"

	"github.com/madara-go/madara/knowledge/internal/store"
)

// sender makes one goroutine at a time the one that sends, so that order holds,
// without anybody waiting for it under the base's lock.
type sender struct {
	sinks  []Sink
	active bool // evaluations and waits send, and there is somewhere to send to

	// state is idle, or the number of the goroutine that sends, shifted, and
	// whether somebody left marks for it. It leaves idle under the base's lock only.
	state atomic.Int64

	// What the next round of a running sender takes, under the base's lock.
	againAll  bool
	againOnly []string

	// Closed at the end of the rounds that whoever waits for them needs.
	waiting []chan struct{}

	// Of the running sender alone.
	records []*store.Record
	updates []Update
}

const (
	idle    int64 = 0
	sending int64 = 1
	again   int64 = 2
	owner         = 2 // bits that the goroutine's number is shifted by
)

func sendingState() int64 { return goroutine()<<owner | sending }

func (s *sender) isMine() bool { return s.state.Load()&^again == sendingState() }

// sendAndUnlock sends what is marked, or only the names given. It is called with
// the lock held and gives it back before anything leaves.
func (b *Base) sendAndUnlock(only []string) {
	if !b.startSending(only) {
		b.unlock()
		return
	}
	b.runSender(only)
}

// startSending makes the caller the sender. If another goroutine is, that one
// takes the marks in its next round.
func (b *Base) startSending(only []string) bool {
	s := &b.sender
	if s.state.CompareAndSwap(idle, sendingState()) {
		return true
	}
	if len(only) == 0 {
		s.againAll = true
	} else {
		s.againOnly = append(s.againOnly, only...)
	}
	for {
		now := s.state.Load()
		if now == idle { // the sender stopped just now: the caller is next
			return s.state.CompareAndSwap(idle, sendingState())
		}
		if s.state.CompareAndSwap(now, now|again) {
			return false
		}
	}
}

// runSender sends until nobody asked for more. It is called with the lock held
// and returns without it.
func (b *Base) runSender(only []string) {
	s := &b.sender
	mine := sendingState()
	for {
		if s.againAll {
			only = nil
		} else if len(only) > 0 {
			only = append(only[:len(only):len(only)], s.againOnly...)
		}
		s.againAll, s.againOnly = false, nil
		waiting := s.waiting
		s.waiting = nil
		var clock uint64
		s.records, clock = b.store.TakeMarks(s.records[:0], only)
		for _, r := range s.records {
			s.updates = append(s.updates, Update{Name: r.Name(), Record: newRecord(r.Copy())})
		}
		b.unlock()
		if len(s.updates) > 0 {
			for _, sink := range s.sinks {
				b.deliver(sink, clock)
			}
			clear(s.updates)
			clear(s.records)
			s.updates = s.updates[:0]
		}
		for _, done := range waiting {
			close(done)
		}
		if s.state.CompareAndSwap(mine, idle) {
			return
		}
		b.lock("the sender")
		s.state.Store(mine)
		only = s.againOnly
	}
}

// deliver hands the updates to a sink. What it panics with is logged, so that
// one bad sink does not stop the base from sending.
func (b *Base) deliver(sink Sink, clock uint64) {
	returned := false
	defer func() {
		if r := recover(); r != nil {
			b.log.Error("a sink panicked", "panic", r)
		} else if !returned { // the goroutine is ending; another may send
			b.sender.state.Store(idle)
		}
	}()
	sink(clock, b.sender.updates)
	returned = true
}

// Send sends what is marked and returns once it has left, whoever sends it. It
// returns ctx's cause if that ends first; the sending goes on. Called by a sink,
// or by a function that runs under the lock, it panics.
func (b *Base) Send(ctx context.Context) error {
	b.lock("Base.Send")
	s := &b.sender
	if b.closed {
		b.unlock()
		return ErrClosed
	}
	if s.isMine() {
		b.unlock()
		misuse("Base.Send called by a sink of the base")
	}
	if len(s.sinks) == 0 || (b.store.Marked() == 0 && s.state.Load() == idle) {
		b.unlock()
		return nil
	}
	if b.startSending(nil) {
		b.runSender(nil)
		return nil
	}
	done := make(chan struct{})
	s.waiting = append(s.waiting, done)
	b.unlock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waitSender returns once no goroutine sends.
func (b *Base) waitSender() {
	b.lock("Base.Close")
	s := &b.sender
	if s.state.Load() == idle {
		b.unlock()
		return
	}
	done := make(chan struct{})
	s.waiting = append(s.waiting, done)
	if b.startSending(nil) {
		b.runSender(nil)
		return
	}
	b.unlock()
	<-done
}
