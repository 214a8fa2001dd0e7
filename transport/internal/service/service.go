// Package service runs the handlers of a Control: which request is next, on
// which goroutine, and until when.
package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/petermattis/goid"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/internal/hub"
)

// Classes is how many priorities there are. A class is a priority from 0.
const Classes = 4

// Class returns the class of a priority.
func Class(p transport.Priority) int {
	return min(max(int(p-transport.Background), 0), Classes-1)
}

// age is after how long a class that is held back by higher ones gets a turn.
const age = 100 * time.Millisecond

// Job is a request and what becomes of it. Whoever submits it may use it again
// after Reply.
type Job struct {
	transport.Request
	Deadline time.Time // zero: none
	// Reply is called once, on the handler's goroutine or, for a job that did not
	// reach a handler, on any.
	Reply func(j *Job, response []byte, err error)
	Owner any // what Reply needs to know

	ctx     *jobContext
	arrived time.Time
	next    *Job
}

// Leave tells the handler that the caller has left.
func (j *Job) Leave() { j.ctx.end(context.Canceled) }

// queue is a list of jobs, the oldest first.
type queue struct {
	first, last *Job
	n           int
}

func (q *queue) push(j *Job) {
	j.next = nil
	if q.last == nil {
		q.first = j
	} else {
		q.last.next = j
	}
	q.last = j
	q.n++
}

func (q *queue) pop() *Job {
	j := q.first
	q.first, j.next = j.next, nil
	if q.first == nil {
		q.last = nil
	}
	q.n--
	return j
}

// Table is the services of a Control by their methods.
type Table struct {
	Counters *hub.Counters

	mu        sync.RWMutex
	services  map[string]*service
	closed    bool
	deadlines deadlines
}

// service is one method.
type service struct {
	table          *Table
	method         string
	workers, depth int
	handle         transport.Handler

	mu      sync.Mutex
	waiting [Classes]queue
	running [Classes]int
	moved   [Classes]time.Time // when a job of the class last began
	idle    int                // goroutines that wait in jobs
	jobs    chan *Job
	timer   *time.Timer // for classes that are held back
	closed  bool
	all     sync.WaitGroup
	inside  sync.Map // goroutine numbers of running handlers
	readers []int64  // and of those that run where their requests were read
	pace    [Classes]hub.Pace
}

// Serve adds a service.
func (t *Table) Serve(method string, o *transport.ServeOptions, handle transport.Handler) (transport.Service, error) {
	s := &service{table: t, method: method, workers: transport.DefaultWorkers, depth: transport.DefaultQueue, handle: handle}
	if o != nil {
		if o.Workers < 0 || o.Workers > transport.MaxWorkers {
			return nil, fmt.Errorf("ServeOptions.Workers is %d, allowed is 0 to %d: %w", o.Workers, transport.MaxWorkers, transport.ErrSettings)
		}
		if o.Queue < 0 || o.Queue > transport.MaxQueue {
			return nil, fmt.Errorf("ServeOptions.Queue is %d, allowed is 0 to %d: %w", o.Queue, transport.MaxQueue, transport.ErrSettings)
		}
		if o.Workers > 0 {
			s.workers = o.Workers
		}
		if o.Queue > 0 {
			s.depth = o.Queue
		}
	}
	if err := CheckMethod(method); err != nil {
		return nil, err
	}
	if handle == nil {
		return nil, fmt.Errorf("serving method %q without a handler: %w", method, transport.ErrSettings)
	}
	s.jobs = make(chan *Job, s.workers*Classes)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return nil, transport.ErrClosed
	case t.services[method] != nil:
		return nil, fmt.Errorf("method %q is served already: %w", method, transport.ErrMethod)
	case t.services == nil:
		t.services = map[string]*service{}
	}
	t.services[method] = s
	return s, nil
}

// CheckMethod returns why a method cannot be used.
func CheckMethod(method string) error {
	if method == "" || len(method) > transport.MaxMethod {
		return fmt.Errorf("method %.40q has %d bytes, allowed are 1 to %d: %w", method, len(method), transport.MaxMethod, transport.ErrMethod)
	}
	return nil
}

// Method returns the name under which a method is served, "" if it is not. It
// saves making a string of what came.
func (t *Table) Method(name []byte) string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if s := t.services[string(name)]; s != nil {
		return s.method
	}
	return ""
}

// Submit hands a job to its service, which replies. It replies at once if there
// is no such service, or no room. If r is not nil and the handler is quick, it may
// run here; see hub.Reader.
func (t *Table) Submit(j *Job, r *hub.Reader) {
	t.mu.RLock()
	s := t.services[j.Method]
	closed := t.closed
	t.mu.RUnlock()
	now := time.Now()
	j.ctx = &jobContext{deadline: j.Deadline}
	j.arrived = now
	switch {
	case closed:
		j.Reply(j, nil, transport.ErrClosed)
	case s == nil:
		j.Reply(j, nil, transport.ErrMethod)
	case r != nil && r.Rested() && s.here(j, r):
	case !s.put(j):
		t.Counters.Drop(transport.DropBusy, 1)
		j.Reply(j, nil, transport.ErrBusy)
	}
}

func (s *service) put(j *Job) bool {
	c := Class(j.Priority)
	s.mu.Lock()
	if s.closed || s.waiting[c].n >= s.depth && s.running[c] >= s.workers {
		s.mu.Unlock()
		return false
	}
	s.table.deadlines.add(j.ctx)
	s.waiting[c].push(j)
	s.start()
	s.mu.Unlock()
	return true
}

// here runs a job on the goroutine that read its request, if the handler was quick
// and no other job waits.
func (s *service) here(j *Job, r *hub.Reader) bool {
	c := Class(j.Priority)
	s.mu.Lock()
	if s.closed || !s.pace[c].Quick() || s.running[c] >= s.workers || s.anyWaits() {
		s.mu.Unlock()
		return false
	}
	id := goid.Get()
	s.table.deadlines.add(j.ctx)
	s.running[c]++
	s.moved[c] = j.arrived
	s.readers = append(s.readers, id)
	s.all.Add(1)
	s.mu.Unlock()
	turn, returned := r.Begin(), false
	defer func() {
		s.mu.Lock()
		i := slices.Index(s.readers, id)
		s.readers = slices.Delete(s.readers, i, i+1)
		s.start() // what came meanwhile
		s.mu.Unlock()
		s.all.Done()
		r.End(turn, returned)
	}()
	s.run(j, c)
	returned = true
	return true
}

func (s *service) anyWaits() bool {
	for c := range s.waiting {
		if s.waiting[c].n > 0 {
			return true
		}
	}
	return false
}

// start begins what may begin, with mu held.
func (s *service) start() {
	for {
		j := s.choose()
		if j == nil {
			return
		}
		if s.idle > 0 {
			s.idle--
			s.jobs <- j // there is room for as many as there are goroutines
		} else {
			s.all.Add(1)
			go s.work(j)
		}
	}
}

// choose takes the job that is next, nil if there is none or it must wait. The
// highest class goes first. A class of which as many run as may holds back the
// lower ones while more of it wait, but for one job of each in a while.
func (s *service) choose() *Job {
	held := false // by a higher class
	var soonest time.Duration
	for c := Classes - 1; c >= 0; c-- {
		q := &s.waiting[c]
		if q.n == 0 {
			continue
		}
		if s.running[c] >= s.workers {
			held = true
			continue
		}
		if held {
			since := q.first.arrived
			if s.moved[c].After(since) {
				since = s.moved[c]
			}
			if left := age - time.Since(since); left > 0 {
				if soonest == 0 || left < soonest {
					soonest = left
				}
				continue
			}
		}
		s.running[c]++
		s.moved[c] = time.Now()
		return q.pop()
	}
	if soonest > 0 && !s.closed {
		if s.timer == nil {
			s.timer = time.AfterFunc(soonest, s.again)
		} else {
			s.timer.Reset(soonest)
		}
	}
	return nil
}

func (s *service) again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start()
}

// work runs handlers, one after the other. A handler may end the goroutine.
func (s *service) work(j *Job) {
	id := goid.Get()
	ended := false
	defer func() {
		s.inside.Delete(id)
		if !ended {
			s.mu.Lock()
			s.start() // somebody else goes on
			s.mu.Unlock()
		}
		s.all.Done()
	}()
	s.inside.Store(id, true)
	for {
		c := Class(j.Priority)
		s.run(j, c)
		s.mu.Lock()
		if j = s.choose(); j != nil {
			s.mu.Unlock()
			continue
		}
		if s.closed {
			ended = true
			s.mu.Unlock()
			return
		}
		s.idle++
		s.mu.Unlock()
		var ok bool
		if j, ok = <-s.jobs; !ok {
			ended = true
			return
		}
	}
}

// run handles one job.
func (s *service) run(j *Job, class int) {
	returned := false
	var response []byte
	var err error
	began := time.Now()
	defer func() {
		if !returned {
			if p := recover(); p != nil {
				err = fmt.Errorf("handler panicked: %v", p)
			} else {
				err = errors.New("handler ended its goroutine")
			}
			response = nil
			s.table.Counters.Drop(transport.DropPanic, 1)
		}
		s.mu.Lock()
		s.running[class]--
		s.pace[class].Took(time.Since(began))
		s.mu.Unlock()
		ctx := j.ctx
		j.Reply(j, response, err)
		s.table.deadlines.remove(ctx)
		ctx.end(context.Canceled)
	}()
	if gone := j.ctx.Err(); gone != nil || !j.Deadline.IsZero() && !began.Before(j.Deadline) {
		s.table.Counters.Drop(transport.DropExpired, 1)
		err, returned = context.DeadlineExceeded, true
		return
	}
	response, err = s.handle(j.ctx, &j.Request)
	s.table.Counters.Served.Add(1)
	returned = true
	if j.ctx.Err() == context.DeadlineExceeded {
		response, err = nil, context.DeadlineExceeded
	}
}

// Close is transport.Service.Close.
func (s *service) Close() error {
	if s.contains(goid.Get()) {
		panic("transport: Service.Close called by its handler, which it would wait for")
	}
	t := s.table
	t.mu.Lock()
	if t.services[s.method] == s {
		delete(t.services, s.method)
	}
	t.mu.Unlock()
	s.mu.Lock()
	var left []*Job
	if !s.closed {
		s.closed = true
		for c := range s.waiting {
			for s.waiting[c].n > 0 {
				left = append(left, s.waiting[c].pop())
			}
		}
		if s.timer != nil {
			s.timer.Stop()
		}
		close(s.jobs)
		s.idle = 0
	}
	s.mu.Unlock()
	for _, j := range left {
		ctx := j.ctx
		j.Reply(j, nil, transport.ErrClosed)
		t.deadlines.remove(ctx)
		ctx.end(context.Canceled)
	}
	s.all.Wait()
	return nil
}

// Close closes all services and waits for their handlers.
func (t *Table) Close() {
	t.mu.Lock()
	t.closed = true
	var all []*service
	for _, s := range t.services {
		all = append(all, s)
	}
	t.mu.Unlock()
	for _, s := range all {
		s.Close()
	}
	t.deadlines.close()
}

// End ends the contexts of all handlers, for a Control that is being closed.
func (t *Table) End() { t.deadlines.end() }

// Inside panics if the caller is a handler of one of the services.
func (t *Table) Inside(call string) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	id := goid.Get()
	for _, s := range t.services {
		if s.contains(id) {
			panic("transport: " + call + " called by a handler, which it would wait for")
		}
	}
}

// contains reports whether a goroutine runs a handler.
func (s *service) contains(id int64) bool {
	if _, ok := s.inside.Load(id); ok {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.readers, id)
}

// CheckCall returns why a call cannot be made.
func CheckCall(method string, request []byte, max int, o *transport.CallOptions) error {
	if err := CheckMethod(method); err != nil {
		return err
	}
	if len(request) > max {
		return fmt.Errorf("%d bytes, at most %d are allowed: %w", len(request), max, transport.ErrTooLarge)
	}
	if o.Priority < transport.Background || o.Priority > transport.Urgent {
		return fmt.Errorf("CallOptions.Priority is %d, allowed is %d to %d: %w", o.Priority, transport.Background, transport.Urgent, transport.ErrSettings)
	}
	return nil
}

// Expired is the error of a call whose time is over by the clock of the other
// end. The caller is told when it is over by his own.
func Expired(ctx context.Context) error {
	if _, ok := ctx.Deadline(); !ok {
		return transport.ErrTimeout
	}
	<-ctx.Done()
	return ContextError(ctx)
}

// ContextError is the error of a call whose context is done.
func ContextError(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return transport.ErrTimeout
	}
	return context.Cause(ctx)
}
