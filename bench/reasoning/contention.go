package main

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// spinners is how many goroutines parallelism runs, and enough what counts as
// two processors.
const (
	spinners = 2
	enough   = 1.5
)

// parallelism returns how many processors two busy goroutines really get: a
// machine with two may have other work, or be allowed to use one.
func parallelism() float64 {
	const long = 10 * time.Millisecond
	began, busyFrom := time.Now(), now()
	var all sync.WaitGroup
	for range spinners {
		all.Go(func() {
			for time.Since(began) < long {
			}
		})
	}
	all.Wait()
	return float64(now()-busyFrom) / float64(time.Since(began))
}

// contentionRows are several goroutines on one base, by the wall clock.
func contentionRows() []row {
	var list []row
	for _, n := range []int{2, 4, 16} {
		list = append(list, row{
			name: fmt.Sprintf("KaRL shared: %d Goroutines Inc", n), per: 1, wall: true, cpus: 2,
			goroutines: n, open: evaluateTogether(n),
		})
	}
	for _, n := range []int{2, 4, 16} {
		list = append(list, row{
			name: fmt.Sprintf("Go shared: %d Goroutines Mutex Inc", n), per: 1, wall: true, cpus: 2,
			goroutines: n, open: lockTogether(n),
		})
	}
	beside := func(name string, read reader) {
		list = append(list, row{name: "KaRL beside writer: " + name, per: 1, wall: true, cpus: 2, goroutines: 1, open: besideWriter(read)})
	}
	beside("Peek", func(_ *knowledge.Base, v *knowledge.Var[int64], n int) (last int64, ordered bool) {
		ordered = true
		for range n {
			x := v.Peek()
			ordered = ordered && x >= last
			last = x
		}
		return last, ordered
	})
	beside("Get by Handle", func(_ *knowledge.Base, v *knowledge.Var[int64], n int) (last int64, ordered bool) {
		ordered = true
		for range n {
			x := v.Get()
			ordered = ordered && x >= last
			last = x
		}
		return last, ordered
	})
	beside("Get by Name", func(kb *knowledge.Base, _ *knowledge.Var[int64], n int) (last int64, ordered bool) {
		ordered = true
		for range n {
			x := kb.Get(".var1").Int()
			ordered = ordered && x >= last
			last = x
		}
		return last, ordered
	})
	return list
}

// evaluateTogether divides the evaluations of one compiled increment among so
// many goroutines. The time per operation is that of all, by the wall.
func evaluateTogether(goroutines int) func(...knowledge.Option) (*work, error) {
	return func(opts ...knowledge.Option) (*work, error) {
		kb := knowledge.New(opts...)
		e, err := kb.Compile("++.var1")
		if err != nil {
			return nil, err
		}
		return &work{check: variableCounts(".var1")(kb), run: together(goroutines, evaluate(e))}, nil
	}
}

// lockTogether does the same with nothing but a mutex and a counter, the least
// that the row above can cost.
func lockTogether(goroutines int) func(...knowledge.Option) (*work, error) {
	return func(...knowledge.Option) (*work, error) {
		c := &lockedCounter{}
		return &work{
			run:   together(goroutines, func(units int) error { c.count(units); return nil }),
			check: func(n int64) error { return want("the counter", c.n, n) },
		}, nil
	}
}

// together divides units among goroutines.
func together(goroutines int, do func(units int) error) func(int) error {
	failed := make([]error, goroutines)
	return func(units int) error {
		var all sync.WaitGroup
		for i := range goroutines {
			share := units / goroutines
			if i < units%goroutines {
				share++
			}
			all.Go(func() { failed[i] = do(share) })
		}
		all.Wait()
		return errors.Join(failed...)
	}
}

// reader reads so many times and returns what it read last, and whether no value
// was older than the one before.
type reader func(*knowledge.Base, *knowledge.Var[int64], int) (last int64, ordered bool)

// besideWriter reads a variable while another goroutine evaluates an increment
// of it all the time.
func besideWriter(read reader) func(...knowledge.Option) (*work, error) {
	return func(opts ...knowledge.Option) (*work, error) {
		kb := knowledge.New(opts...)
		v := knowledge.NewVar[int64](kb, ".var1")
		if err := kb.Set(".var1", karl.Int(0)); err != nil {
			return nil, err
		}
		e, err := kb.Compile("++.var1")
		if err != nil {
			return nil, err
		}
		var written, reads atomic.Int64
		return &work{
			run: func(units int) error {
				write := evaluate(e)
				var stop atomic.Bool
				var failed error
				running := make(chan struct{})
				var writer sync.WaitGroup
				writer.Go(func() {
					failed = write(1)
					close(running)
					n := int64(1)
					for ; failed == nil && !stop.Load(); n += 16 {
						failed = write(16)
					}
					written.Add(n)
				})
				<-running
				last, ordered := read(kb, v, units)
				stop.Store(true)
				writer.Wait()
				reads.Add(int64(units))
				if total := written.Load(); failed == nil && (!ordered || last < 0 || last > total) {
					return fmt.Errorf("read %d last, in order: %t, after %d increments", last, ordered, total)
				}
				return failed
			},
			check: func(n int64) error {
				if err := want(".var1", kb.Get(".var1").Int(), written.Load()); err != nil {
					return err
				}
				return want("the number of reads", reads.Load(), n)
			},
		}, nil
	}
}
