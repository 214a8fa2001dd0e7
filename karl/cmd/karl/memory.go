package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

const (
	maxMemory  = 512 << 20 // of the objects in the heap, in bytes
	softMemory = 256 << 20 // from where on the collector works harder
	memoryPoll = 10 * time.Millisecond
)

// memory watches the heap and stops what is being evaluated when it is too large.
// Programs look at their context every so many steps only, so the heap can grow
// beyond the limit; the limits of strings and arrays bound by how much.
type memory struct {
	stop   chan struct{}
	done   chan struct{}
	cancel atomic.Pointer[context.CancelCauseFunc]
	before int64 // the soft limit that was set
}

func watchMemory() *memory {
	m := &memory{stop: make(chan struct{}), done: make(chan struct{}), before: debug.SetMemoryLimit(-1)}
	if m.before > softMemory {
		debug.SetMemoryLimit(softMemory)
	}
	go m.watch()
	return m
}

func (m *memory) close() {
	close(m.stop)
	<-m.done
	debug.SetMemoryLimit(m.before)
}

// guard names what to stop, until the function it returns is called.
func (m *memory) guard(cancel context.CancelCauseFunc) func() {
	m.cancel.Store(&cancel)
	return func() { m.cancel.Store(nil) }
}

func (m *memory) watch() {
	defer close(m.done)
	tick := time.NewTicker(memoryPoll)
	defer tick.Stop()
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	for {
		select {
		case <-m.stop:
			return
		case <-tick.C:
		}
		cancel := m.cancel.Load()
		if cancel == nil || used(heap) < maxMemory {
			continue
		}
		runtime.GC() // what an earlier line left is not this one's
		if used(heap) >= maxMemory && m.cancel.CompareAndSwap(cancel, nil) {
			(*cancel)(errMemory)
		}
	}
}

func used(heap []metrics.Sample) uint64 {
	metrics.Read(heap)
	return heap[0].Value.Uint64()
}
