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
	draining bool
}

// printHold is how many bytes are kept while the lock is held.
const printHold = 1 << 20

func (p *printer) init(out io.Writer, log *slog.Logger) { p.out, p.log = out, log }

// print queues a text, under the lock.
func (b *Base) print(_ int, text string) {
	p := &b.printer
	p.mu.Lock()
	p.queue = append(p.queue, text)
	p.bytes += len(text)
	full := p.bytes > printHold
	p.pending.Store(true)
	p.mu.Unlock()
	if full {
		b.lend("the writer of WithOutput")
		p.drain()
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
	for len(p.queue) > 0 {
		queue := p.queue
		p.queue, p.bytes = nil, 0
		p.pending.Store(false)
		p.mu.Unlock()
		p.write(queue)
		p.mu.Lock()
	}
	p.draining = false
	p.mu.Unlock()
}

// write hands the texts to the user's writer. What that panics with is logged:
// the caller may be in the middle of a program, with the lock held.
func (p *printer) write(queue []string) {
	defer func() {
		if r := recover(); r != nil && p.out != nil {
			p.log.Error("the writer of WithOutput panicked", "panic", r)
		}
	}()
	for _, text := range queue {
		if p.out != nil {
			io.WriteString(p.out, text)
		} else {
			p.log.Info(strings.TrimSuffix(text, "\n"))
		}
	}
}
