package main

import (
	"fmt"
	"runtime"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

const (
	crowdSize   = 1_000_000
	crowdPrefix = 1_000 // variables whose names begin alike
)

// scaleRows are about a base of a million integers, made anew in each round and
// used by all of these rows.
func scaleRows() []row {
	c := &crowd{}
	use := func(f func(size) (*reading, error)) func(size) (*reading, error) {
		return func(s size) (*reading, error) {
			if c.kb == nil {
				if err := c.make(s.of(crowdSize)); err != nil {
					return nil, err
				}
			}
			return f(s)
		}
	}
	drop := func() { *c = crowd{} }
	return []row{
		{name: "KaRL million: Create", per: 1, allocates: true, fresh: use(func(size) (*reading, error) { return &c.created, nil })},
		{name: "KaRL million: Memory per Variable", unit: unitBytes, per: 1, allocates: true, fresh: use(func(size) (*reading, error) { return &c.memory, nil })},
		{name: "KaRL million: First ordered Listing", per: 1, allocates: true, fresh: use(func(size) (*reading, error) { return &c.sorted, nil })},
		{name: "KaRL million: Ordered Listing", per: 1, allocates: true, fresh: use(func(s size) (*reading, error) { return c.list(s, "", c.n) })},
		{name: "KaRL million: Prefix with 1,000 Matches", per: 1, allocates: true, end: drop, fresh: use(func(s size) (*reading, error) {
			return c.list(s, crowdName(c.n / 2)[:len("agent.000.")], min(crowdPrefix, c.n))
		})},
	}
}

// crowd is the base, and what was measured when it was made.
type crowd struct {
	kb                      *knowledge.Base
	n                       int
	created, memory, sorted reading
}

// crowdName is a name as robots have them, 23 bytes.
func crowdName(i int) string {
	return fmt.Sprintf("agent.%03d.sensor%03d.val", i/crowdPrefix, i%crowdPrefix)
}

// make sets the variables, in no order. The memory is what the collector leaves,
// names included.
func (c *crowd) make(n int) error {
	before := heap()
	names := make([]string, n)
	for i := range names {
		names[i] = crowdName(int(int64(i) * 7919 % int64(n))) // n and 7919 have no common factor
	}
	kb := knowledge.New(knowledge.WithLimits(knowledge.Limits{Variables: 2 * n}))
	counted, began := count(), now()
	for i, name := range names {
		if err := kb.Set(name, karl.Int(int64(i))); err != nil {
			return err
		}
	}
	took := now() - began
	c.created = *counted.reading(n)
	c.created.ns = float64(took) / float64(n)
	names = nil
	c.memory = reading{operations: int64(n), perVariable: float64(heap()-before) / float64(n)}
	c.kb, c.n = kb, n
	r, err := c.list(size{}, "", n)
	if err == nil {
		c.sorted = *r
	}
	return err
}

// list lists the variables with a prefix, as often as there is time for. An
// operation is one variable told.
func (c *crowd) list(s size, prefix string, matches int) (*reading, error) {
	counted, began := count(), now()
	told := 0
	for told == 0 || now()-began < s.each {
		last, n := "", 0
		for name := range c.kb.All(prefix) {
			if name <= last {
				return nil, fmt.Errorf("%s was told after %s", name, last)
			}
			last = name
			n++
		}
		if n != matches {
			return nil, fmt.Errorf("%d variables start with %q, want %d", n, prefix, matches)
		}
		told += n
	}
	took := now() - began
	r := counted.reading(told)
	r.ns = float64(took) / float64(told)
	return r, nil
}

// heap returns the bytes in use after a collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// counter counts what is allocated from where it was made.
type counter struct{ mallocs, bytes uint64 }

func count() counter {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return counter{m.Mallocs, m.TotalAlloc}
}

// reading returns what was allocated per operation.
func (c counter) reading(operations int) *reading {
	end := count()
	n := float64(operations)
	return &reading{
		operations: int64(operations),
		allocs:     float64(end.mallocs-c.mallocs) / n,
		bytes:      float64(end.bytes-c.bytes) / n,
	}
}
