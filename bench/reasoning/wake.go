package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// wakeRows measure how long it takes from just before a write until the
// goroutine that waits for it runs: the median and the 95th percentile. One
// waiter wakes, the others sleep on. The poll rows are the same waits as a
// program would make them that looks once a millisecond: the library's Poll on
// an expression that counts its looks, because one without effects is never
// polled.
func wakeRows() []row {
	var list []row
	add := func(name string, waiters int, same bool, poll time.Duration) {
		list = append(list, row{
			name: "KaRL wake: " + name, unit: unitMicros, per: 1, wall: true, allocates: true,
			fresh: func(s size) (*reading, error) { return wake(s, s.of(waiters), same, poll) },
		})
	}
	add("1 Waiter", 1, false, 0)
	add("100 Waiters, own Variables", 100, false, 0)
	add("10,000 Waiters, own Variables", 10_000, false, 0)
	add("100 Waiters, one Variable", 100, true, 0)
	add("10,000 Waiters, one Variable", 10_000, true, 0)
	add("1 polling at 1 kHz", 1, false, time.Millisecond)
	add("100 polling at 1 kHz, own Variables", 100, false, time.Millisecond)
	return list
}

const (
	wakePause  = 200 * time.Microsecond // between two events, for the waiter to sleep again
	wakeEvents = 25                     // at least, in each round
	wakeLost   = 10 * time.Second
)

// sleepers are goroutines that wait for their turn again and again.
type sleepers struct {
	kb     *knowledge.Base
	same   bool
	poll   time.Duration
	asleep atomic.Int64 // how many are about to wait
	woke   chan woken
	again  []chan struct{}
	failed chan error
}

type woken struct {
	who int
	at  time.Time
}

func wake(s size, waiters int, same bool, poll time.Duration) (r *reading, err error) {
	sl := &sleepers{
		kb: knowledge.New(), same: same, poll: poll,
		woke: make(chan woken, 1), again: make([]chan struct{}, waiters), failed: make(chan error, waiters),
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	defer func() {
		cancel()
		all.Wait()
		err = errors.Join(err, sl.kb.Close())
	}()
	for i := range waiters {
		sl.again[i] = make(chan struct{}, 1)
		all.Go(func() { sl.sleep(ctx, i) })
	}
	for sl.asleep.Load() < int64(waiters) {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(5 * time.Millisecond)
	return sl.measure(s)
}

// sleep is one waiter.
func (sl *sleepers) sleep(ctx context.Context, i int) {
	name, value := sl.turn(i)
	src := fmt.Sprintf("%s == %d", name, value)
	if sl.poll > 0 {
		src = fmt.Sprintf("++.looks%d && %s", i, src)
	}
	e, err := sl.kb.Compile(src)
	for err == nil {
		sl.asleep.Add(1)
		if _, err = e.Wait(ctx, &knowledge.WaitSettings{Poll: sl.poll}); err != nil {
			break
		}
		at := time.Now()
		select {
		case sl.woke <- woken{i, at}:
		case <-ctx.Done():
			return
		}
		select {
		case <-sl.again[i]:
		case <-ctx.Done():
			return
		}
	}
	if ctx.Err() == nil {
		sl.failed <- err
	}
}

// turn returns the variable that a waiter looks at and the value it waits for.
func (sl *sleepers) turn(i int) (string, int64) {
	if sl.same {
		return "turn", int64(i) + 1
	}
	return fmt.Sprint("turn", i), 1
}

// measure wakes one waiter after the other.
func (sl *sleepers) measure(s size) (*reading, error) {
	random := rand.New(rand.NewPCG(1, uint64(len(sl.again))))
	var times []float64
	var took time.Duration
	c := count()
	for n := 0; n < wakeEvents || took < s.each; n++ {
		i := n * 7919 % len(sl.again) // no waiter is near the one before
		name, value := sl.turn(i)
		began := time.Now()
		if err := sl.kb.Set(name, karl.Int(value)); err != nil {
			return nil, err
		}
		select {
		case w := <-sl.woke:
			if w.who != i {
				return nil, fmt.Errorf("waiter %d woke in place of %d", w.who, i)
			}
			times = append(times, float64(w.at.Sub(began)))
		case err := <-sl.failed:
			return nil, err
		case <-time.After(wakeLost):
			return nil, fmt.Errorf("waiter %d did not wake within %v", i, wakeLost)
		}
		if err := sl.kb.Set(name, karl.Int(0)); err != nil {
			return nil, err
		}
		sl.again[i] <- struct{}{}
		time.Sleep(wakePause)
		// Write at any point of the poll's period. A sleep would end together with
		// those of the waiters, since timers of an idle process fire in groups.
		for until := time.Now().Add(time.Duration(random.Int64N(int64(sl.poll) + 1))); time.Now().Before(until); {
			runtime.Gosched()
		}
		took += time.Since(began)
	}
	r := c.reading(len(times))
	r.ns, r.p95 = median(times), quantile(times, 0.95)
	return r, nil
}
