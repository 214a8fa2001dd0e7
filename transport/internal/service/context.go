package service

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// jobContext is the context of a handler. It is one allocation and no timer.
type jobContext struct {
	deadline time.Time // zero: none
	at       time.Time // the deadline, or a time that does not come
	index    int       // in the heap, from 1; 0 for not there; guarded by deadlines.mu

	mu   sync.Mutex
	done chan struct{} // made when asked for
	err  error
}

// Deadline is context.Context.Deadline.
func (c *jobContext) Deadline() (time.Time, bool) { return c.deadline, !c.deadline.IsZero() }

// Value is context.Context.Value.
func (c *jobContext) Value(any) any { return nil }

// Err is context.Context.Err.
func (c *jobContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Done is context.Context.Done.
func (c *jobContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		}
	}
	return c.done
}

// end ends the context unless it has ended.
func (c *jobContext) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	if c.done != nil {
		close(c.done)
	}
}

// deadlines ends contexts when their time is over, with one timer for all.
type deadlines struct {
	mu     sync.Mutex
	heap   contexts
	timer  *time.Timer
	at     time.Time // when the timer fires; zero: it does not
	closed bool
}

const never = 100 * 365 * 24 * time.Hour

// add makes c end at its deadline, and by end.
func (d *deadlines) add(c *jobContext) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.at = c.deadline; c.at.IsZero() {
		c.at = time.Now().Add(never)
	}
	heap.Push(&d.heap, c)
	d.set()
}

// remove forgets c.
func (d *deadlines) remove(c *jobContext) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.index > 0 {
		heap.Remove(&d.heap, c.index-1)
	}
}

// set sets the timer to the first deadline if that is earlier. It is not set
// later: it then fires for nothing, which costs less than setting it each time.
func (d *deadlines) set() {
	if len(d.heap) == 0 || d.closed {
		return
	}
	first := d.heap[0].at
	if !d.at.IsZero() && !first.Before(d.at) {
		return
	}
	d.at = first
	if wait := time.Until(first); d.timer == nil {
		d.timer = time.AfterFunc(wait, d.fire)
	} else {
		d.timer.Reset(wait)
	}
}

func (d *deadlines) fire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for len(d.heap) > 0 && !d.heap[0].at.After(now) {
		heap.Pop(&d.heap).(*jobContext).end(context.DeadlineExceeded)
	}
	d.at = time.Time{}
	d.set()
}

// end ends all contexts.
func (d *deadlines) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.heap) > 0 {
		heap.Pop(&d.heap).(*jobContext).end(context.Canceled)
	}
}

func (d *deadlines) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.timer != nil {
		d.timer.Stop()
	}
}

// contexts is a heap by deadline.
type contexts []*jobContext

func (h contexts) Len() int           { return len(h) }
func (h contexts) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h contexts) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

func (h *contexts) Push(x any) {
	c := x.(*jobContext)
	*h = append(*h, c)
	c.index = len(*h)
}

func (h *contexts) Pop() any {
	old := *h
	c := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	c.index = 0
	return c
}
