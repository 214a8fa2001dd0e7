package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

// What counts as grown: the heap after a collection, under load at the end, may
// be larger than after the warm-up by a tenth and so much. A run of ten minutes
// makes some ten million values, texts, waits and watches, so a single word left
// behind by one in a hundred would show.
const (
	growth     = 1.10
	growthMore = 4 << 20

	// What may stay when all is closed, over what there was before: pools of the
	// runtime and of packages used.
	leftMore = 2 << 20
)

// monitor prints lines until the load ends, and returns what to compare with.
func (s *soak) monitor() *marks {
	m := &marks{}
	start := time.Now()
	warm, stop := time.After(s.warmUp()), time.After(s.length)
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	var before [kinds]int64
	last, shook := start, int64(0)
	line := func() {
		elapsed := time.Since(last).Seconds()
		last = time.Now()
		var b strings.Builder
		fmt.Fprintf(&b, "%6.1fs  per second:", time.Since(start).Seconds())
		for k, name := range kindNames {
			n := s.counts[k].Load()
			fmt.Fprintf(&b, " %s %s", name, rate(float64(n-before[k])/elapsed))
			before[k] = n
		}
		n := s.handshakes.Load()
		fmt.Fprintf(&b, " hand-shakes %s | %d hand-shakes, heap %s, %d goroutines", rate(float64(n-shook)/elapsed), n, mebibytes(heap()), runtime.NumGoroutine())
		shook = n
		fmt.Fprintln(s.out, b.String())
	}
	for {
		select {
		case <-tick.C:
			line()
		case <-warm:
			m.warm = leastHeap()
			fmt.Fprintf(s.out, "%6.1fs  warm: heap %s\n", time.Since(start).Seconds(), mebibytes(m.warm))
		case <-stop:
			m.loaded = leastHeap()
			line()
			s.stopLoad()
			return m
		case <-s.load.Done():
			return m
		}
	}
}

// marks are heaps to compare.
type marks struct{ warm, loaded int64 }

// grown says what is wrong with the heap or the goroutines, "" if nothing is.
func (m *marks) grown(closed, empty int64, goroutines, before int) string {
	switch {
	case float64(m.loaded) > float64(m.warm)*growth+growthMore:
		return fmt.Sprintf("memory grew: heap %s after the warm-up, %s at the end", mebibytes(m.warm), mebibytes(m.loaded))
	case goroutines > before:
		return fmt.Sprintf("%d goroutines are left, there were %d", goroutines, before)
	case closed > empty+leftMore:
		return fmt.Sprintf("memory is left: heap %s with all closed, %s before", mebibytes(closed), mebibytes(empty))
	}
	return ""
}

// end compares when all is closed. It lets go of the base.
func (m *marks) end(s *soak, before int, empty int64) {
	s.kb = nil
	goroutines := runtime.NumGoroutine()
	for until := time.Now().Add(5 * time.Second); goroutines > before && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond) // those that end just now
		goroutines = runtime.NumGoroutine()
	}
	closed := leastHeap()
	var total int64
	for k := range s.counts {
		total += s.counts[k].Load()
	}
	fmt.Fprintf(s.out, "%d operations, %d hand-shakes, %d updates sent; heap %s before, %s warm, %s at the end, %s closed; %d goroutines before, %d closed\n",
		total, s.handshakes.Load(), s.sunk.Load(), mebibytes(empty), mebibytes(m.warm), mebibytes(m.loaded), mebibytes(closed), before, goroutines)
	if what := m.grown(closed, empty, goroutines, before); what != "" {
		s.fail("%s", what)
		if goroutines > before {
			s.fail("%s", stacks())
		}
	}
}

// leastHeap returns the least of some looks: under load a collection does not
// see what became garbage while it ran.
func leastHeap() int64 {
	least := heap()
	for range 4 {
		time.Sleep(20 * time.Millisecond)
		least = min(least, heap())
	}
	return least
}

// heap returns the bytes in use after a collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// rate prints a number per second in short.
func rate(x float64) string {
	if x >= 10_000 {
		return fmt.Sprintf("%.0fk", x/1_000)
	}
	return fmt.Sprintf("%.0f", x)
}
