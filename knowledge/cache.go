package knowledge

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sync/singleflight"
)

// textCache remembers compiled texts, a bounded number of a bounded size. Its
// lock is held for look-ups only.
type textCache struct {
	parsing singleflight.Group

	// last is the text that was looked up last: programs evaluate the same one
	// again and again, and comparing it is cheaper than looking it up.
	last atomic.Pointer[cachedText]

	mu       sync.Mutex
	entries  map[string]*cachedText
	ring     []*cachedText // for the clock hand, which spares what was used since it last passed
	hand     int
	bytes    int
	maxTexts int
	maxBytes int
}

type cachedText struct {
	src  string
	e    *Expression
	used bool // since the clock hand passed; guarded by mu
}

func (c *textCache) init(texts, bytes int) {
	c.maxTexts, c.maxBytes = texts, bytes
	c.entries = map[string]*cachedText{}
}

// get returns the expression of a text, nil if it is not remembered.
func (c *textCache) get(src string) *Expression {
	if l := c.last.Load(); l != nil && l.src == src {
		return l.e
	}
	return c.find(src)
}

func (c *textCache) find(src string) *Expression {
	c.mu.Lock()
	t := c.entries[src]
	if t == nil {
		c.mu.Unlock()
		return nil
	}
	t.used = true
	c.mu.Unlock()
	c.last.Store(t)
	return t.e
}

// nodeBytes is about what a node of a program's tree and what it was compiled to
// take. Measured: 78 for `++x;`, 60 to 90 for mixed statements.
const nodeBytes = 80

func costOf(src string, e *Expression) int { return len(src) + nodeBytes*e.prog.Size }

// put remembers an expression under its text, and forgets others to make room.
func (c *textCache) put(src string, e *Expression) {
	cost := costOf(src, e)
	if cost > c.maxBytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[src] != nil {
		return
	}
	for len(c.ring) > 0 && (len(c.ring) >= c.maxTexts || c.bytes+cost > c.maxBytes) {
		c.evict()
	}
	t := &cachedText{src: src, e: e}
	c.entries[src] = t
	c.ring = append(c.ring, t)
	c.bytes += cost
}

func (c *textCache) evict() {
	for {
		if c.hand >= len(c.ring) {
			c.hand = 0
		}
		t := c.ring[c.hand]
		if t.used {
			t.used = false
			c.hand++
			continue
		}
		last := len(c.ring) - 1
		c.ring[c.hand] = c.ring[last]
		c.ring[last] = nil
		c.ring = c.ring[:last]
		delete(c.entries, t.src)
		c.bytes -= costOf(t.src, t.e)
		return
	}
}

func (c *textCache) size() (texts, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ring), c.bytes
}
