package main

import (
	"context"
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
		metrics.Read(heap)
		if heap[0].Value.Uint64() < maxMemory {
			continue
		}
		if cancel := m.cancel.Swap(nil); cancel != nil {
			(*cancel)(errMemory)
		}
	}
}
