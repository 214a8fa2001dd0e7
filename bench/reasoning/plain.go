package main

import (
	"sync"
	"sync/atomic"

	"github.com/petermattis/goid"

	"github.com/madara-go/madara/knowledge"
)

// mutexRow is the row whose cost is the unit of all others.
const mutexRow = "Go: Mutex Increments"

// plainRows are the same operations in Go, to compare with. The optimized ones
// are what the compiler makes of a plain loop. Go has no volatile: those rows
// reach the variable through a call that is not inlined.
func plainRows() []row {
	return []row{
		{name: "Go: Optimized Assignments", per: 1, open: plain(func(p *int64, n int) { *p = assignOptimized(*p, n) })},
		{name: "Go: Optimized Increments", per: 1, open: plain(func(p *int64, n int) { *p = incrementOptimized(*p, n) })},
		{name: "Go: Optimized Ternary Increments", per: 1, open: plain(func(p *int64, n int) { *p = ternaryOptimized(*p, n, p != nil) })},
		{name: "Go: Virtual Increments", per: 1, open: virtual},
		{name: "Go: Volatile Assignments", per: 1, open: plain(func(p *int64, n int) {
			last := *p + int64(n)
			for i := *p; i < last; i++ {
				assign(p, i+1)
			}
		})},
		{name: "Go: Volatile Increments", per: 1, open: plain(func(p *int64, n int) {
			for range n {
				increment(p)
			}
		})},
		{name: "Go: Volatile Ternary Increments", per: 1, open: plain(func(p *int64, n int) {
			for range n {
				incrementIf(p, p != nil)
			}
		})},
		{name: "Go: Atomic Increments", per: 1, open: atomically},
		{name: "Go: Recursive Increments", per: 1, open: recursively},
		{name: mutexRow, per: 1, open: withMutex},
		{name: "Go: RWMutex Increments", per: 1, open: withRWMutex},
	}
}

// plain is a row that counts in memory; count adds n to the counter, one at a time.
func plain(count func(counter *int64, n int)) func(...knowledge.Option) (*work, error) {
	return func(...knowledge.Option) (*work, error) {
		counter := new(int64)
		return &work{
			run:   func(units int) error { count(counter, units); return nil },
			check: func(n int64) error { return want("the counter", *counter, n) },
		}, nil
	}
}

//go:noinline
func assignOptimized(x int64, n int) int64 {
	from := x
	for i := range n {
		x = from + int64(i) + 1
	}
	return x
}

//go:noinline
func incrementOptimized(x int64, n int) int64 {
	for range n {
		x++
	}
	return x
}

//go:noinline
func ternaryOptimized(x int64, n int, condition bool) int64 {
	for range n {
		if condition {
			x++
		}
	}
	return x
}

//go:noinline
func assign(p *int64, x int64) { *p = x }

//go:noinline
func increment(p *int64) { *p++ }

//go:noinline
func incrementIf(p *int64, condition bool) {
	if condition {
		*p++
	}
}

// incrementer is called without the compiler knowing what implements it.
type incrementer interface{ increment() }

type plainCounter struct{ n int64 }

//go:noinline
func (c *plainCounter) increment() { c.n++ }

func virtual(...knowledge.Option) (*work, error) {
	c := &plainCounter{}
	return &work{
		run:   func(units int) error { callVirtual(c, units); return nil },
		check: func(n int64) error { return want("the counter", c.n, n) },
	}, nil
}

//go:noinline
func callVirtual(c incrementer, n int) {
	for range n {
		c.increment()
	}
}

func atomically(...knowledge.Option) (*work, error) {
	var c atomic.Int64
	return &work{
		run: func(units int) error {
			for range units {
				c.Add(1)
			}
			return nil
		},
		check: func(n int64) error { return want("the counter", c.Load(), n) },
	}, nil
}

// lockedCounter is a counter under a sync.Mutex, taken for each increment.
type lockedCounter struct {
	mu sync.Mutex
	n  int64
}

//go:noinline
func (c *lockedCounter) count(n int) {
	for range n {
		c.mu.Lock()
		c.n++
		c.mu.Unlock()
	}
}

func withMutex(...knowledge.Option) (*work, error) {
	c := &lockedCounter{}
	return &work{
		run:   func(units int) error { c.count(units); return nil },
		check: func(n int64) error { return want("the counter", c.n, n) },
	}, nil
}

func withRWMutex(...knowledge.Option) (*work, error) {
	var mu sync.RWMutex
	var c int64
	return &work{
		run: func(units int) error {
			for range units {
				mu.Lock()
				c++
				mu.Unlock()
			}
			return nil
		},
		check: func(n int64) error { return want("the counter", c, n) },
	}, nil
}

// recursiveMutex may be locked again by the goroutine that holds it. It is what
// the reference's lock would be in Go, for comparison: the library has no such
// lock.
type recursiveMutex struct {
	mu    sync.Mutex
	owner atomic.Int64
	depth int
}

func (m *recursiveMutex) lock() {
	id := goid.Get()
	if m.owner.Load() == id {
		m.depth++
		return
	}
	m.mu.Lock()
	m.owner.Store(id)
	m.depth = 1
}

func (m *recursiveMutex) unlock() {
	if m.depth--; m.depth == 0 {
		m.owner.Store(0)
		m.mu.Unlock()
	}
}

func recursively(...knowledge.Option) (*work, error) {
	var mu recursiveMutex
	var c int64
	return &work{
		run: func(units int) error {
			for range units {
				mu.lock()
				c++
				mu.unlock()
			}
			return nil
		},
		check: func(n int64) error { return want("the counter", c, n) },
	}, nil
}
