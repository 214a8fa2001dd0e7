package knowledge

import (
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
)

// printer carries printed text from under the lock to the user's writer.
type printer struct {
	out     io.Writer
	log     *slog.Logger
	pending atomic.Bool

	mu       sync.Mutex
	queue    []string
	bytes    int
	lost     int // texts that were not kept
	draining bool
}

const (
	// printHold is how many bytes are kept while the lock is held.
	printHold = 1 << 20
	// maxPrinted is how many bytes wait for a writer that another goroutine is in.
	maxPrinted = 8 << 20
)

func (p *printer) init(out io.Writer, log *slog.Logger) { p.out, p.log = out, log }

// print queues a text, under the lock.
func (b *Base) print(_ int, text string) {
	p := &b.printer
	p.mu.Lock()
	if p.draining && p.bytes+len(text) > maxPrinted {
		p.lost++ // the writer does not keep up
		p.mu.Unlock()
		return
	}
	p.queue = append(p.queue, text)
	p.bytes += len(text)
	full := p.bytes > printHold && !p.draining
	p.pending.Store(true)
	p.mu.Unlock()
	if full {
		outer := b.lentTo
		b.lend("the writer of what is printed")
		returned := false
		defer func() {
			if !returned && b.env.Hosts == 0 { // the writer ended the goroutine
				b.goexit()
			}
		}()
		p.drain()
		returned = true
		b.lentTo = outer
	}
}

// drain writes what is queued, unless somebody is at it.
func (p *printer) drain() {
	p.mu.Lock()
	if p.draining {
		p.mu.Unlock()
		return
	}
	p.draining = true
	done := false
	defer func() {
		if !done { // the writer ended the goroutine
			p.mu.Lock()
			p.draining = false
			p.mu.Unlock()
		}
	}()
	for len(p.queue) > 0 {
		queue := p.queue
		p.queue, p.bytes = nil, 0
		p.pending.Store(false)
		p.mu.Unlock()
		p.write(queue)
		p.mu.Lock()
	}
	p.draining = false
	done = true
	lost := p.lost
	p.lost = 0
	p.mu.Unlock()
	if lost > 0 {
		p.log.Warn("printed texts were dropped, because the writer does not keep up", "texts", lost)
	}
}

// write hands the texts to the user's writer. What that panics with is logged:
// the caller may be in the middle of a program, with the lock held.
func (p *printer) write(queue []string) {
	defer func() {
		if r := recover(); r != nil && p.out != nil {
			p.log.Error("the writer of WithOutput panicked", "panic", r)
		} // a log handler that panics has nobody to tell
	}()
	for _, text := range queue {
		if p.out != nil {
			io.WriteString(p.out, text)
		} else {
			p.log.Info(strings.TrimSuffix(text, "\n"))
		}
	}
}
