package hub

import (
	"sync"
	"time"
)

// patience is for how long a handler may hold up the reading. Its timer costs the
// less the longer it is: 20 ms cost a tenth of the time of a message in sixteen
// processes.
const patience = 50 * time.Millisecond

// atOnce is longer than reading takes if something is there, and shorter than
// waiting for something takes.
const atOnce = 5 * time.Microsecond

// Reader reads from a connection or socket, message after message, and runs the
// handler of a message's only subscription, or of a request, itself. That saves
// waking a goroutine, and with it a thread, for each message: at 1 kHz, with
// sixteen processes on two processors, a message took 1.5 times as long as over a
// bare socket, and takes 1.1 to 1.2 times as long so.
//
// A handler that is not back after patience loses the reading to another
// goroutine and goes on alone, so that it holds up others of the connection no
// longer. One that was not quick, and what comes while more is there to be read,
// is left to goroutines of the subscription for a while.
type Reader struct {
	step  func(*Reader) error
	done  chan error
	timer *time.Timer // runs watch

	mu      sync.Mutex
	turn    int           // the goroutines that read are counted
	running bool          // a handler, on the goroutine that reads
	began   time.Duration // when it began
	ended   time.Duration // when the last one ended
}

// Read calls step, which reads a message and then, as the last thing, dispatches
// it, until it returns an error, and returns that. Calls follow each other, but
// may be on different goroutines.
func Read(step func(*Reader) error) error {
	r := &Reader{step: step, done: make(chan error, 1)}
	go r.run(r.turn)
	err := <-r.done
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn++
	if r.timer != nil {
		r.timer.Stop()
	}
	return err
}

func (r *Reader) run(turn int) {
	for {
		err := r.step(r)
		r.mu.Lock()
		over := r.turn != turn
		r.mu.Unlock()
		if over {
			return
		}
		if err != nil {
			r.done <- err
			return
		}
	}
}

// Rested reports whether the reader waited for what it read. If not, more comes
// than one goroutine may do, and another one shall handle it.
func (r *Reader) Rested() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(epoch)-r.ended > atOnce
}

// handle runs the handler of a subscription, and returns false if it must not.
func (r *Reader) handle(s *subscription, b *Buffer) bool {
	if !r.Rested() || !s.begin() {
		return false
	}
	turn, returned := r.Begin(), false
	defer func() {
		s.left()
		r.End(turn, returned)
	}()
	s.one(b)
	returned = true
	return true
}

// Begin is called before a handler runs on the goroutine that reads, and what it
// returns is for End.
func (r *Reader) Begin() (turn int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running, r.began = true, time.Since(epoch)
	if r.timer == nil {
		r.timer = time.AfterFunc(patience, r.watch)
	} else {
		r.timer.Reset(patience)
	}
	return r.turn
}

// End is called after the handler: by a deferred function, as a handler may end
// the goroutine and not return.
func (r *Reader) End(turn int, returned bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turn != turn {
		return
	}
	r.running, r.ended = false, time.Since(epoch)
	if !returned {
		r.hand()
	}
}

// hand lets another goroutine read, with mu held.
func (r *Reader) hand() {
	r.running = false
	r.turn++
	go r.run(r.turn)
}

// watch looks for a handler that does not come back. Its timer is set to later by
// each handler and seldom fires, as stopping it costs more.
func (r *Reader) watch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running && time.Since(epoch)-r.began >= patience {
		r.hand()
	}
}
