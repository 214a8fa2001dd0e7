package stream

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// writer sends frames over a connection. Whoever sends a frame hands it to the
// system himself, without waiting; what the system has no room for, and frames
// that come meanwhile, a goroutine writes together.
type writer struct {
	conn  net.Conn
	try   *tryWriter // nil where only the goroutine can write
	limit int        // of next, in bytes
	piece int        // how much the goroutine writes at once; 0: all

	stalled time.Duration // how long the other end may take no piece; 0: for ever

	mu     sync.Mutex
	busy   bool   // the goroutine has something to write, or somebody tries
	next   []byte // what the goroutine writes next
	spare  []byte
	whole  []byte // a frame and its part, of who made it busy
	failed bool

	wake   chan struct{} // there is something for the goroutine
	room   chan struct{} // next was taken; capacity 1, a hint for one waiter
	done   chan struct{} // closed by close
	closed atomic.Bool
}

func newWriter(conn net.Conn, limit, piece int) *writer {
	return &writer{
		conn: conn, try: newTryWriter(conn), limit: limit, piece: piece,
		wake: make(chan struct{}, 1), room: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// send takes a frame over, of which part is the end, by copying it or writing it.
// It returns false if there is no room, or the connection broke. always takes it
// even if there is no room.
func (w *writer) send(frame, part []byte, always bool) bool {
	w.mu.Lock()
	if w.failed {
		w.mu.Unlock()
		return false
	}
	if w.busy {
		if !always && len(w.next) > 0 && len(w.next)+len(frame)+len(part) > w.limit {
			w.mu.Unlock()
			return false
		}
		if len(w.next) > 4*w.limit+MaxMessage { // of a peer that reads nothing, although always
			w.fail()
			w.mu.Unlock()
			return false
		}
		w.next = append(append(w.next, frame...), part...)
		w.mu.Unlock()
		return true
	}
	w.busy = true
	w.mu.Unlock()

	if len(part) > 0 {
		w.whole = append(append(w.whole[:0], frame...), part...)
		frame = w.whole
	}
	n, ok := 0, true
	if w.try != nil {
		n, ok = w.try.write(frame)
	}
	w.mu.Lock()
	if !ok {
		w.fail()
		w.mu.Unlock()
		return false
	}
	if n < len(frame) {
		w.spare = append(w.spare[:0], frame[n:]...)
		w.spare = append(w.spare, w.next...)
		w.next, w.spare = w.spare, w.next[:0]
	}
	if len(w.next) == 0 {
		w.busy = false
		w.mu.Unlock()
		return true
	}
	w.mu.Unlock()
	w.wake <- struct{}{} // empty, as only who made it busy sends
	return true
}

// sendWait is send, but waits for room until stop is closed. It reports whether
// the frame was taken.
func (w *writer) sendWait(frame, part []byte, stop <-chan struct{}) bool {
	for waited := false; ; waited = true {
		if w.send(frame, part, false) {
			if waited {
				w.more() // somebody else may wait as well
			}
			return true
		}
		w.mu.Lock()
		failed := w.failed
		w.mu.Unlock()
		if failed {
			w.more()
			return false
		}
		select {
		case <-w.room:
		case <-stop:
			w.more()
			return false
		case <-w.done:
			return false
		}
	}
}

// more tells one of those who wait that there may be room.
func (w *writer) more() {
	select {
	case w.room <- struct{}{}:
	default:
	}
}

// fail is called with the lock held.
func (w *writer) fail() {
	w.failed, w.next, w.spare = true, nil, nil
	w.more()
	w.conn.Close() // which ends the reader, and that all the rest
}

// run writes what send could not, until close.
func (w *writer) run() {
	for {
		select {
		case <-w.wake:
		case <-w.done:
			return
		}
		w.mu.Lock()
		for !w.failed && len(w.next) > 0 {
			buf := w.next
			w.next = w.spare[:0]
			w.mu.Unlock()
			err := w.write(buf)
			w.mu.Lock()
			w.spare = buf[:0]
			if cap(buf) > 4*w.limit { // of one large frame
				w.spare = nil
			}
			if err != nil {
				w.fail()
			}
		}
		w.busy = false
		w.mu.Unlock()
	}
}

func (w *writer) write(buf []byte) error {
	w.more()
	if w.stalled > 0 { // or those who try to write later would be late already
		defer w.conn.SetWriteDeadline(time.Time{})
	}
	for len(buf) > 0 {
		n := len(buf)
		if w.piece > 0 {
			n = min(n, w.piece)
		}
		if w.stalled > 0 {
			w.conn.SetWriteDeadline(time.Now().Add(w.stalled))
		}
		if _, err := w.conn.Write(buf[:n]); err != nil {
			return err
		}
		buf = buf[n:]
	}
	return nil
}

// close ends run and closes the connection.
func (w *writer) close() {
	if !w.closed.Swap(true) {
		close(w.done)
		w.mu.Lock()
		w.fail()
		w.mu.Unlock()
	}
}
