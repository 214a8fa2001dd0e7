package harness

import (
	"context"
	"encoding/binary"
	"fmt"
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
const together = 64

// timeouts calls a gateway that never answers and one that answers late, and a
// usual method in between, whose answers must be their own.
func (c *controlPeer) timeouts(ctx context.Context, plan Plan) (*Sent, error) {
	if err := c.firstCall(ctx); err != nil {
		return nil, err
	}
	s := newSent()
	began := c.clock()
	for _, method := range []string{methodNever, methodLate} {
		c.timeoutCase(ctx, method, 8*together) // all workers of the gateway begin, which may be of this process
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
				t1 := c.clock() // before the time-out begins
				within, cancel := context.WithTimeout(ctx, c.a.Timeout)
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

// patient is how long calls wait for a gateway that is to die, and how often
// there must be an answer once it is back.
const patient = 8

// death waits for a gateway that dies, and then until it is back.
func (c *controlPeer) death(ctx context.Context) *Sent {
	s := newSent()
	timeout := max(c.a.Timeout, 2*time.Second)
	dies := TimeoutCase{Case: "dies", Calls: patient, Kinds: map[string]int64{}}
	told := NewDistribution()
	goroutines, _ := settled(0)
	var mu sync.Mutex
	var tasks sync.WaitGroup
	for range patient {
		tasks.Go(func() {
			within, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			t1 := c.clock()
			_, err := c.caller.call(within, methodNever, make([]byte, c.a.Endpoint.Payload), false, false)
			took := c.clock() - t1
			mu.Lock()
			defer mu.Unlock()
			told.Add(took)
			if took > int64(timeout+allowance(timeout)) {
				dies.Outside++
			}
			if err == nil {
				dies.Wrong++
				return
			}
			dies.Kinds[kindOf(err)]++
		})
	}
	tasks.Wait()
	dies.Told = told.Summary()
	after, _ := settled(goroutines)
	dies.Left = max(after-goroutines, 0)

	back := TimeoutCase{Case: "restarts", Calls: patient, Kinds: map[string]int64{}}
	told = NewDistribution()
	for end := c.clock() + int64(routePatience); back.Kinds["answered"] < patient && c.clock() < end && ctx.Err() == nil; {
		within, cancel := context.WithTimeout(ctx, timeout)
		t1 := c.clock()
		_, err := c.caller.call(within, methodEcho, make([]byte, c.a.Endpoint.Payload), false, false)
		cancel()
		told.Add(c.clock() - t1)
		if err == nil {
			back.Kinds["answered"]++
			continue
		}
		back.Kinds[kindOf(err)]++
		time.Sleep(10 * time.Millisecond)
	}
	back.Told = told.Summary()
	s.Cases = []TimeoutCase{dies, back}
	return s
}

// fault says what was not as it must be, "" if nothing.
func (t *TimeoutCase) fault() string {
	switch {
	case t.Wrong > 0:
		return fmt.Sprintf("%d answers that should not have been", t.Wrong)
	case t.Outside > 0:
		return fmt.Sprintf("%d of %d callers were not told in time", t.Outside, t.Calls)
	case t.Left > 0:
		return fmt.Sprintf("%d goroutines are left", t.Left)
	case t.Case == "restarts" && t.Kinds["answered"] < t.Calls:
		return "no answers after the gateway was back"
	case (t.Case == methodNever || t.Case == methodLate) && t.Kinds["timeout"] != t.Calls:
		return fmt.Sprintf("%d of %d calls timed out", t.Kinds["timeout"], t.Calls)
	}
	return ""
}
