package harness

import (
	"context"
	"encoding/binary"
	"runtime"
	"sync"
	"time"
)

// TimeoutCase is how callers were told that there is no answer.
type TimeoutCase struct {
	Case     string           `json:"case"`
	Calls    int64            `json:"calls"`
	Kinds    map[string]int64 `json:"kinds"`   // of errors; "answered" where there was none
	Told     Summary          `json:"told"`    // after the call, in microseconds
	Outside  int64            `json:"outside"` // told before the time-out, or too late
	Wrong    int64            `json:"wrong"`   // answers to other requests
	Left     int              `json:"left"`    // goroutines more than before
	LeftHeap int64            `json:"left_heap_bytes"`
}

// allowance is how long after its time-out a caller may be told: 5 ms or 10 %.
func allowance(timeout time.Duration) time.Duration { return max(5*time.Millisecond, timeout/10) }

// together is how many calls wait at the same time while time-outs are counted.
const together = 32

// timeouts calls a gateway that never answers and one that answers late, and a
// usual method in between, whose answers must be their own.
func (c *controlPeer) timeouts(ctx context.Context, plan Plan) (*Sent, error) {
	if err := c.firstCall(ctx); err != nil {
		return nil, err
	}
	s := newSent()
	began := c.clock()
	for _, method := range []string{methodNever, methodLate} {
		s.Cases = append(s.Cases, c.timeoutCase(ctx, method, int64(c.a.Call.Timeouts)))
	}
	after := c.paced(ctx, Plan{Start: c.clock(), Period: plan.Period, Count: plan.Count})
	after.Cases, after.Seconds = s.Cases, float64(c.clock()-began)/1e9
	return after, nil
}

func (c *controlPeer) timeoutCase(ctx context.Context, method string, calls int64) TimeoutCase {
	r := TimeoutCase{Case: method, Calls: calls, Kinds: map[string]int64{}}
	told := NewDistribution()
	goroutines, heap := settled(0)
	next := make(chan int64)
	var mu sync.Mutex
	var tasks sync.WaitGroup
	for range together {
		tasks.Go(func() {
			request := make([]byte, c.a.Endpoint.Payload)
			for i := range next {
				within, cancel := context.WithTimeout(ctx, c.a.Timeout)
				t1 := c.clock()
				putHeader(request, i, t1)
				reply, err := c.caller.call(within, method, request, false, false)
				took := c.clock() - t1
				cancel()
				mu.Lock()
				told.Add(took)
				kind := "answered"
				if err != nil {
					kind = kindOf(err)
				} else if len(reply) < headerSize || binary.LittleEndian.Uint64(reply) != binary.LittleEndian.Uint64(request) {
					r.Wrong++
				}
				r.Kinds[kind]++
				if took < int64(c.a.Timeout) || took > int64(c.a.Timeout+allowance(c.a.Timeout)) {
					r.Outside++
				}
				mu.Unlock()
			}
		})
	}
	for i := range calls {
		next <- i
	}
	close(next)
	tasks.Wait()
	r.Told = told.Summary()
	after, heapAfter := settled(goroutines)
	r.Left, r.LeftHeap = max(after-goroutines, 0), heapAfter-heap
	return r
}

// settled returns goroutines and heap once the goroutines are as few as they
// were, or after a second.
func settled(goroutines int) (int, int64) {
	for range 100 {
		if runtime.NumGoroutine() <= goroutines || goroutines == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), int64(m.HeapAlloc)
}
