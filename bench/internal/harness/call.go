package harness

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/madara-go/madara/transport"
)

// CallPlan is what a caller and its gateway do.
type CallPlan struct {
	Reply    int  `json:"reply"`     // bytes of an answer
	InFlight int  `json:"in_flight"` // calls at the same time
	Timeouts int  `json:"timeouts"`  // calls that are to time out: instead of paced ones
	Dies     bool `json:"dies"`      // the gateway is to die while calls wait, and to come back
	Bulk     int  `json:"bulk"`      // streams of bulk calls beside the paced ones
	BulkSize int  `json:"bulk_size"`
	Classes  bool `json:"classes"` // the paced calls are of a higher class than bulk
	Alone    bool `json:"alone"`   // bulk without the paced calls
	Fifo     bool `json:"fifo"`    // bare: one connection for all, answered in order
}

// Bulk is what the bulk streams reached.
type Bulk struct {
	Calls   int64   `json:"calls"`
	MiB     float64 `json:"mib_per_second"` // requests; answers are as much
	Longest float64 `json:"longest_gap_us"` // without an answer
}

// caller calls one gateway.
type caller interface {
	call(ctx context.Context, method string, request []byte, high, low bool) ([]byte, error)
	close() error
}

// The methods of the gateway.
const (
	methodEcho  = "echo"
	methodNever = "never" // no answer before the caller gave up
	methodLate  = "late"  // an answer after the caller gave up
)

type controlPeer struct {
	a       *Assignment
	clock   Clock
	caller  caller
	gateway interface{ close() error }

	mu      sync.Mutex
	handled int64
	begun   []begun
}

// begun is a request whose handling began.
type begun struct {
	at, sent int64
	bulk     bool
}

func openControlPeer(a *Assignment, clock Clock) (*controlPeer, error) {
	c := &controlPeer{a: a, clock: clock}
	var err error
	switch {
	case a.Role == roleServe && a.Endpoint.Bare:
		c.gateway, err = serveBare(&a.Endpoint, c)
	case a.Role == roleServe:
		c.gateway, err = serveLibrary(&a.Endpoint, c)
	case a.Endpoint.Bare:
		c.caller, err = dialBare(&a.Endpoint, a.Call)
	default:
		c.caller, err = dialLibrary(&a.Endpoint)
	}
	if err != nil {
		return nil, err // there is nothing to close
	}
	return c, nil
}

func (c *controlPeer) close() {
	if c.caller != nil {
		c.caller.close()
	}
	if c.gateway != nil {
		c.gateway.close()
	}
}

// handle answers a request of the caller.
func (c *controlPeer) handle(request []byte) []byte {
	if c.a.Call.Bulk > 0 && len(request) >= headerSize {
		at := c.clock()
		stamp := int64(binary.LittleEndian.Uint64(request) & stampMask)
		c.mu.Lock()
		c.handled++
		c.begun = append(c.begun, begun{at, at - (at-stamp)&stampMask, len(request) >= c.a.Call.BulkSize})
		c.mu.Unlock()
	}
	reply := make([]byte, c.replySize(len(request)))
	copy(reply, request)
	return reply
}

func (c *controlPeer) replySize(request int) int {
	if c.a.Call.Bulk > 0 {
		return request
	}
	return c.a.Call.Reply
}

// result counts inversions: bulk requests whose handling began while a high one
// was on its way or waiting.
func (c *controlPeer) result(r *Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Handled = c.handled
	slices.SortFunc(c.begun, func(a, b begun) int { return int(a.at - b.at) })
	for i, high := range c.begun {
		if high.bulk {
			continue
		}
		for j := i - 1; j >= 0 && c.begun[j].at > high.sent; j-- {
			if c.begun[j].bulk {
				r.Inversions++
			}
		}
	}
}

// kindOf names a failure.
func kindOf(err error) string {
	var remote *transport.RemoteError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, transport.ErrUnreachable):
		return "unreachable"
	case errors.Is(err, transport.ErrBusy):
		return "busy"
	case errors.Is(err, transport.ErrClosed):
		return "closed"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.As(err, &remote):
		return "remote"
	}
	return "other"
}

// callAll does a run of calls.
func (c *controlPeer) callAll(ctx context.Context, plan Plan) (*Sent, error) {
	if c.a.Call.Timeouts > 0 {
		return c.timeouts(ctx, plan)
	}
	if err := c.firstCall(ctx); err != nil {
		return nil, err
	}
	if c.a.Call.Dies {
		return c.death(ctx), nil
	}
	var bulk bulkStreams
	if c.a.Call.Bulk > 0 {
		bulk.start(ctx, c)
		time.Sleep(200 * time.Millisecond) // they fill the buffers
		bulk.measure()
		plan.Start = c.clock() + int64(time.Millisecond)
	}
	var s *Sent
	if c.a.Call.Alone {
		s = newSent()
		select {
		case <-time.After(time.Duration(plan.Total() * plan.Period)):
		case <-ctx.Done():
		}
	} else {
		s = c.paced(ctx, plan)
	}
	if c.a.Call.Bulk > 0 {
		s.Bulk = bulk.end()
		if bulk.err != nil {
			return nil, fmt.Errorf("bulk: %w", bulk.err)
		}
	}
	return s, nil
}

// firstCall sees that the gateway answers.
func (c *controlPeer) firstCall(ctx context.Context) error {
	request := make([]byte, c.a.Endpoint.Payload)
	var err error
	for range 50 {
		var reply []byte
		each, cancel := context.WithTimeout(ctx, time.Second)
		reply, err = c.caller.call(each, methodEcho, request, false, false)
		cancel()
		if err == nil {
			if len(reply) != c.replySize(len(request)) {
				return fmt.Errorf("the gateway answered %d bytes, want %d", len(reply), c.replySize(len(request)))
			}
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("the gateway does not answer: %w", err)
}

// paced calls at fixed times, as far as calls in flight allow.
func (c *controlPeer) paced(ctx context.Context, plan Plan) *Sent {
	s := newSent()
	s.Peaks = newPeaks(plan.Count)
	s.times = plan.times(columnSend, columnReceive, columnOutcome)
	var mu sync.Mutex
	free := make(chan []byte, c.a.Call.InFlight)
	for range cap(free) {
		free <- make([]byte, c.a.Endpoint.Payload)
	}
	one := func(i, due int64, request []byte) {
		within, cancel := context.WithTimeout(ctx, c.a.Timeout)
		t1 := c.clock()
		putHeader(request, i, t1)
		reply, err := c.caller.call(within, methodEcho, request, c.a.Call.Classes, false)
		t3 := c.clock()
		cancel()
		if err == nil && (len(reply) < headerSize || binary.LittleEndian.Uint64(reply) != binary.LittleEndian.Uint64(request)) {
			err = errWrongReply
		}
		if i < plan.Warmup || ctx.Err() != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		s.Sent++
		if plan.Period > 0 {
			s.Lag.Add(t1 - due)
		}
		s.times.keep(columnSend, i-plan.Warmup, t1-plan.Start)
		s.times.keep(columnReceive, i-plan.Warmup, t3-plan.Start)
		s.times.keep(columnOutcome, i-plan.Warmup, outcomeOf(err))
		if err != nil {
			s.Failures++
			s.Kinds[kindOf(err)]++
			if s.FirstError == "" {
				s.FirstError = err.Error()
			}
			s.Penalised.Add(int64(c.a.Timeout))
			return
		}
		s.Peaks.add(i-plan.Warmup, plan.Count, t3-t1)
		s.Latency.Add(t3 - t1)
		s.Penalised.Add(t3 - t1)
		if plan.Period > 0 {
			s.Schedule.Add(t3 - due)
		}
	}
	pacer := NewPacer(c.clock, false)
	var tasks sync.WaitGroup
	var allocated uint64
	var began int64
	for i := range plan.Total() {
		if ctx.Err() != nil {
			break
		}
		if i == plan.Warmup {
			allocated, began = mallocs(), c.clock()
		}
		due := plan.Start + i*plan.Period
		if plan.Period == 0 {
			due = c.clock()
		} else if i >= plan.Warmup && c.clock() > due+plan.Period/10 {
			mu.Lock()
			s.Delayed++
			mu.Unlock()
		}
		pacer.Until(due)
		request := <-free
		if cap(free) == 1 {
			one(i, due, request)
			free <- request
			continue
		}
		tasks.Go(func() {
			one(i, due, request)
			free <- request
		})
	}
	tasks.Wait()
	s.Allocs = float64(mallocs()-allocated) / float64(plan.Count)
	s.Seconds = float64(c.clock()-began) / 1e9
	return s
}

var errWrongReply = errors.New("the answer is that of another request")

// bulkStreams are calls one after the other, each stream for itself.
type bulkStreams struct {
	cancel  context.CancelFunc
	tasks   sync.WaitGroup
	mu      sync.Mutex
	began   time.Time
	calls   int64
	last    time.Time
	longest time.Duration
	size    int
	err     error
}

func (b *bulkStreams) start(ctx context.Context, c *controlPeer) {
	ctx, b.cancel = context.WithCancel(ctx)
	b.size = c.a.Call.BulkSize
	b.measure()
	for range c.a.Call.Bulk {
		b.tasks.Go(func() {
			request := make([]byte, b.size)
			for i := int64(0); ctx.Err() == nil; i++ {
				putHeader(request, i, c.clock())
				within, cancel := context.WithTimeout(ctx, time.Minute)
				_, err := c.caller.call(within, methodEcho, request, false, c.a.Call.Classes)
				cancel()
				if err != nil {
					b.mu.Lock()
					if ctx.Err() == nil && b.err == nil {
						b.err = err
					}
					b.mu.Unlock()
					return
				}
				b.answered()
			}
		})
	}
}

func (b *bulkStreams) measure() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.began, b.last, b.calls, b.longest = time.Now(), time.Now(), 0, 0
}

func (b *bulkStreams) answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	at := time.Now()
	b.longest = max(b.longest, at.Sub(b.last))
	b.last = at
}

func (b *bulkStreams) end() *Bulk {
	b.mu.Lock()
	took := time.Since(b.began)
	r := &Bulk{
		Calls: b.calls, MiB: float64(b.calls) * float64(b.size) / (1 << 20) / took.Seconds(),
		Longest: float64(max(b.longest, time.Since(b.last)).Nanoseconds()) / 1000,
	}
	b.mu.Unlock()
	b.cancel()
	b.tasks.Wait()
	return r
}
