package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Topologies.
const (
	TopologyProcess   = "process"
	TopologySameHost  = "same-host"
	TopologyNetns     = "netns"
	TopologyCrossHost = "cross-host"
)

// Workload is what is sent.
type Workload struct {
	Payload     int           `json:"payload_size"`
	Reply       int           `json:"reply_size,omitempty"`
	Period      time.Duration `json:"-"`
	Count       int64         `json:"count"`
	Warmup      int64         `json:"warmup"`
	Subscribers int           `json:"subscribers,omitempty"`
	Processes   int           `json:"processes,omitempty"`
	Depth       int           `json:"queue_depth,omitempty"`
	Policy      string        `json:"queue_policy,omitempty"`
	Timeout     time.Duration `json:"-"`
	Call        CallPlan      `json:"-"`

	samples *sampleSink // nil unless they are wanted
}

// MaxCount is the largest number of messages.
const MaxCount = 10_000_000

// MaxSkew bounds the memory for when each message came to each subscriber.
const MaxSkew = 2_000_000

// Lab is where runs take place.
type Lab struct {
	Kind     string
	Topology string
	clock    string
	places   [2]place  // of the publisher and caller, of the subscribers and gateway
	hosts    [2]string // their addresses
	faces    [2]string
	spaces   *namespaces
	dir      string
	there    *facts // of the other host, nil if there is none
	mu       sync.Mutex
	number   int
}

// NewLab prepares a topology. remote is the address of an agent for cross-host.
func NewLab(kind, topology, remote string) (*Lab, error) {
	l := &Lab{Kind: kind, Topology: topology, clock: Monotonic, hosts: [2]string{"127.0.0.1", "127.0.0.1"}}
	var err error
	switch topology {
	case TopologyProcess:
		l.places = [2]place{{inside: true}, {inside: true}}
	case TopologyNetns:
		if l.spaces, err = newNamespaces(); err != nil {
			return nil, err
		}
		l.hosts, l.faces = l.spaces.addresses, l.spaces.faces
		l.places = [2]place{{namespace: l.spaces.names[0]}, {namespace: l.spaces.names[1]}}
	case TopologyCrossHost:
		l.clock = Realtime
		l.places[1].remote = remote
		conn, err := net.DialTimeout("tcp", remote, 5*time.Second)
		if err != nil {
			return nil, fmt.Errorf("--connect %s: %w: %w", remote, ErrCannotRun, err)
		}
		l.hosts[0], _, _ = net.SplitHostPort(conn.LocalAddr().String())
		l.hosts[1], _, _ = net.SplitHostPort(conn.RemoteAddr().String())
		conn.Close()
		if l.there, err = l.askHost(); err != nil {
			return nil, err
		}
	}
	if l.dir, err = os.MkdirTemp("", "mb"); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Close removes what NewLab made.
func (l *Lab) Close() {
	if l.spaces != nil {
		l.spaces.close()
	}
	if l.dir != "" {
		os.RemoveAll(l.dir)
	}
}

// Clock is the name of the clock that both ends read.
func (l *Lab) Clock() string { return l.clock }

// firstPort is where ports begin that nobody can be asked for.
const firstPort = 47_900

// address returns a new address for a listener at a side.
func (l *Lab) address(side int) (string, error) {
	l.mu.Lock()
	l.number++
	number := l.number
	l.mu.Unlock()
	switch {
	case l.Kind == "inproc":
		return fmt.Sprint("bench", number), nil
	case l.Kind == "unix":
		return filepath.Join(l.dir, fmt.Sprint("s", number)), nil
	case l.Topology == TopologyNetns || l.Topology == TopologyCrossHost:
		return net.JoinHostPort(l.hosts[side], fmt.Sprint(firstPort+number%10_000)), nil
	}
	port, err := freePort()
	return net.JoinHostPort(l.hosts[side], port), err
}

// endpoints returns the endpoints of a publisher and of processes of subscribers.
func (l *Lab) endpoints(w *Workload, bare, trip bool, processes int) (publisher Endpoint, subscribers []Endpoint, err error) {
	e := Endpoint{
		Kind: l.Kind, Bare: bare, Payload: w.Payload, Depth: w.Depth, Policy: w.Policy, Trip: trip,
		Plain: l.Topology == TopologyNetns || l.Topology == TopologyCrossHost,
	}
	if e.Address, err = l.address(0); err != nil {
		return e, nil, err
	}
	if l.Kind == "multicast" {
		_, port, _ := net.SplitHostPort(e.Address)
		e.Address = net.JoinHostPort("239.255.0.77", port)
		if trip {
			var reply string
			if reply, err = l.address(0); err != nil {
				return e, nil, err
			}
			_, port, _ = net.SplitHostPort(reply)
			e.Reply = net.JoinHostPort("239.255.0.78", port)
		}
	}
	for range processes {
		s := e
		s.Interface = l.faces[1]
		if l.Kind == "udp" {
			if s.Listen, err = l.address(1); err != nil {
				return e, nil, err
			}
			e.Peers = append(e.Peers, s.Listen)
		}
		subscribers = append(subscribers, s)
	}
	e.Interface = l.faces[0]
	return e, subscribers, nil
}

// Run is what one run gave.
type Run struct {
	Sent      *Sent
	Received  []Received
	Drops     map[string]uint64
	Publisher Resources
	Others    Resources
	Skew      *Distribution
	Ready     time.Duration
	Gateway   *Result
	Sync      *TimeSync
	Peaks     peaks
}

// elsewhere runs again with other addresses if one was taken meanwhile.
func elsewhere(run func() (*Run, error)) (r *Run, err error) {
	for range 5 {
		if r, err = run(); !errors.Is(err, errTaken) {
			break
		}
	}
	return r, err
}

// crew is the processes of one run.
type crew []*process

// add starts a peer; lost is told if it ends before it may.
func (c *crew) add(lost func(error), p place, name string, a *Assignment) (*process, error) {
	r, err := startProcess(p, name, lost)
	if err != nil {
		return nil, err
	}
	r.role = a.Role
	*c = append(*c, r)
	return r, r.say("open", a)
}

func (c crew) close() {
	var tasks sync.WaitGroup
	for _, p := range c {
		tasks.Go(p.close) // may have been closed before
	}
	tasks.Wait()
}

// each lets all say a word and waits for the answers.
func (c crew) each(ctx context.Context, word string, v any, answer string, within time.Duration) error {
	for _, p := range c {
		if err := p.say(word, v); err != nil {
			return err
		}
	}
	if answer == "" {
		return nil
	}
	deadline := time.Now().Add(within)
	for _, p := range c {
		if err := p.expect(ctx, answer, time.Until(deadline), nil); err != nil {
			return err
		}
	}
	return nil
}

// lead is the time between the word go and the first message.
const lead = 20 * time.Millisecond

// routePatience is how long the first messages may take to come to all
// subscribers.
const routePatience = 15 * time.Second

// ErrRoute is that messages did not come to all subscribers before the run.
var ErrRoute = errors.New("the route was not ready")

// Event runs one publisher and its subscribers.
func (l *Lab) Event(ctx context.Context, w Workload, bare bool) (*Run, error) {
	return elsewhere(func() (*Run, error) { return l.event(ctx, w, bare) })
}

func (l *Lab) event(ctx context.Context, w Workload, bare bool) (*Run, error) {
	ctx, lost := context.WithCancelCause(ctx) // by a peer that ends
	defer lost(nil)
	processes := min(w.Processes, w.Subscribers)
	publisher, endpoints, err := l.endpoints(&w, bare, false, processes)
	if err != nil {
		return nil, err
	}
	var all, subscribers crew
	defer func() { all.close() }()
	began := time.Now()
	openPublisher := func() error {
		p, err := all.add(lost, l.places[0], "publisher", &Assignment{Role: rolePublish, Clock: l.clock, Endpoint: publisher, Subscribers: w.Subscribers})
		if err != nil {
			return err
		}
		return p.expect(ctx, "ready", patience, nil)
	}
	listens := l.Kind != "udp" // subscribers need the publisher's address; over udp it needs theirs
	if listens {
		if err := openPublisher(); err != nil {
			return nil, err
		}
	}
	first := 0
	var seats []int
	for i, e := range endpoints {
		n := (w.Subscribers - first) / (processes - i)
		p, err := all.add(lost, l.places[1], fmt.Sprint("subscribers from ", first), &Assignment{Role: roleSubscribe, Clock: l.clock, Endpoint: e, Subscribers: n, First: first})
		if err != nil {
			return nil, err
		}
		subscribers = append(subscribers, p)
		seats = append(seats, n)
		first += n
	}
	for _, p := range subscribers {
		if err := p.expect(ctx, "ready", patience, nil); err != nil {
			return nil, err
		}
	}
	if !listens {
		if err := openPublisher(); err != nil {
			return nil, err
		}
	}
	p := all[0]
	if !listens {
		p = all[len(all)-1]
	}
	run := &Run{Drops: map[string]uint64{}}
	if l.clock == Realtime {
		if run.Sync, err = l.synchronise(ctx, subscribers[0]); err != nil {
			return nil, err
		}
	}
	if err := p.say("probe", nil); err != nil {
		return nil, err
	}
	if err := subscribers.each(ctx, "probe", nil, "routed", routePatience); err != nil {
		if errors.Is(err, errSlow) {
			return nil, fmt.Errorf("%w: %w", ErrRoute, err)
		}
		return nil, err
	}
	run.Ready = time.Since(began)
	clock := ClockNamed(l.clock)
	plan := Plan{
		Period: w.Period.Nanoseconds(), Warmup: w.Warmup, Count: w.Count,
		WantSkew:    w.Subscribers > 1 && int64(w.Subscribers)*w.Count <= MaxSkew,
		WantSamples: w.samples != nil,
	}
	if run.Sync != nil {
		plan.Offset = run.Sync.Offset
	}
	// Subscribers must know the start before the first message, and some may take
	// long to answer.
	plan.Start = clock() + int64(lead) + int64(len(subscribers))*int64(5*time.Millisecond)
	if err := subscribers.each(ctx, "arm", &plan, "armed", patience); err != nil {
		return nil, err
	}
	if clock() > plan.Start-int64(5*time.Millisecond) {
		plan.Start = clock() + int64(lead)
		if err := subscribers.each(ctx, "arm", &plan, "armed", patience); err != nil {
			return nil, err
		}
	}
	if err := p.say("go", &plan); err != nil {
		return nil, err
	}
	length := time.Duration(plan.Total()) * w.Period
	run.Sent = newSent()
	if err := p.expect(ctx, "done", 3*length+patience, run.Sent); err != nil {
		return nil, err
	}
	drain := max(time.Second, 10*w.Period)
	if err := subscribers.each(ctx, "drain", nil, "complete", drain); err != nil && !errors.Is(err, errSlow) {
		return nil, err
	}
	if run.Sync != nil {
		after, err := l.synchronise(ctx, subscribers[0])
		if err != nil {
			return nil, err
		}
		run.Sync.Drift = after.Offset - run.Sync.Offset
	}
	if w.samples != nil {
		if err := w.samples.gather(ctx, &plan, p, subscribers, seats); err != nil {
			return nil, err
		}
	}
	firsts, lasts := make([]int64, plan.Count), make([]int64, plan.Count)
	for _, s := range append(crew{p}, subscribers...) {
		if err := s.say("stop", nil); err != nil {
			return nil, err
		}
		var r Result
		if err := s.expect(ctx, "result", patience, &r); err != nil {
			return nil, err
		}
		for name, n := range r.Drops {
			run.Drops[name] += n
		}
		if s == p {
			run.Publisher = r.Resources
			continue
		}
		run.Others.add(r.Resources)
		run.Received = append(run.Received, r.Subscribers...)
		run.Peaks.merge(r.Peaks)
		last := unpacked(r.Last)
		for i, t := range unpacked(r.First) {
			if t != 0 && i < len(firsts) && i < len(last) {
				if firsts[i] == 0 || t < firsts[i] {
					firsts[i] = t
				}
				lasts[i] = max(lasts[i], last[i])
			}
		}
	}
	if plan.WantSkew {
		run.Skew = NewDistribution()
		for i, t := range firsts {
			if t != 0 {
				run.Skew.Add(lasts[i] - t)
			}
		}
	}
	return run, nil
}

// Trip runs messages that come back from one echo.
func (l *Lab) Trip(ctx context.Context, w Workload, bare bool) (*Run, error) {
	return elsewhere(func() (*Run, error) { return l.trip(ctx, w, bare) })
}

func (l *Lab) trip(ctx context.Context, w Workload, bare bool) (*Run, error) {
	ctx, lost := context.WithCancelCause(ctx) // by a peer that ends
	defer lost(nil)
	ping, echoes, err := l.endpoints(&w, bare, true, 1)
	if err != nil {
		return nil, err
	}
	var all crew
	defer func() { all.close() }()
	roles := []struct {
		name, role string
		place      place
		endpoint   Endpoint
	}{{"pinger", rolePing, l.places[0], ping}, {"echo", roleEcho, l.places[1], echoes[0]}}
	if l.Kind == "udp" {
		roles[0], roles[1] = roles[1], roles[0]
	}
	var pinger *process
	for _, r := range roles {
		p, err := all.add(lost, r.place, r.name, &Assignment{Role: r.role, Clock: Monotonic, Endpoint: r.endpoint, Subscribers: 1, Timeout: w.Timeout})
		if err != nil {
			return nil, err
		}
		if err := p.expect(ctx, "ready", patience, nil); err != nil {
			return nil, err
		}
		if r.role == rolePing {
			pinger = p
		}
	}
	return l.sender(ctx, w, all, pinger)
}

// Call runs calls of a gateway.
func (l *Lab) Call(ctx context.Context, w Workload, bare bool) (*Run, error) {
	return elsewhere(func() (*Run, error) { return l.call(ctx, w, bare) })
}

func (l *Lab) call(ctx context.Context, w Workload, bare bool) (*Run, error) {
	ctx, lost := context.WithCancelCause(ctx) // by a peer that ends
	defer lost(nil)
	address, err := l.address(1)
	if err != nil {
		return nil, err
	}
	e := Endpoint{Kind: l.Kind, Bare: bare, Address: address, Payload: w.Payload, Plain: l.Topology == TopologyNetns || l.Topology == TopologyCrossHost}
	w.Call.Reply = w.Reply
	var all crew
	defer func() { all.close() }()
	for i, end := range []struct{ role, name string }{{roleServe, "gateway"}, {roleCall, "caller"}} {
		p, err := all.add(lost, l.places[1-i], end.name, &Assignment{Role: end.role, Clock: Monotonic, Endpoint: e, Timeout: w.Timeout, Call: w.Call})
		if err != nil {
			return nil, err
		}
		if err := p.expect(ctx, "ready", patience, nil); err != nil {
			return nil, err
		}
	}
	if !w.Call.Dies {
		return l.sender(ctx, w, all, all[1])
	}
	task := make(chan error, 1)
	again := crew{}
	defer func() { again.close() }()
	go func() {
		time.Sleep(dying) // the calls wait by then
		if all[0].kill != nil {
			all[0].kill()
		}
		all[0].close()
		p, err := again.add(lost, l.places[1], "gateway", &Assignment{Role: roleServe, Clock: Monotonic, Endpoint: e, Timeout: w.Timeout, Call: w.Call})
		if err == nil {
			err = p.expect(ctx, "ready", patience, nil)
		}
		task <- err
	}()
	run, err := l.sender(ctx, w, all[1:], all[1])
	if e := <-task; err == nil {
		err = e
	}
	return run, err
}

// dying is how long calls wait before their gateway dies.
const dying = 500 * time.Millisecond

// sender lets one peer send a run and collects the results.
func (l *Lab) sender(ctx context.Context, w Workload, all crew, p *process) (*Run, error) {
	plan := Plan{Period: w.Period.Nanoseconds(), Warmup: w.Warmup, Count: w.Count, Start: now() + int64(lead), WantSamples: w.samples != nil}
	if err := p.say("go", &plan); err != nil {
		return nil, err
	}
	length := time.Duration(plan.Total())*(w.Period+w.Timeout) + time.Duration(2*w.Call.Timeouts/together+1)*2*w.Timeout
	run := &Run{Sent: newSent(), Drops: map[string]uint64{}}
	if err := p.expect(ctx, "done", length+3*patience, run.Sent); err != nil {
		return nil, err
	}
	run.Peaks = run.Sent.Peaks
	if w.samples != nil {
		var err error
		if p.role == roleCall {
			err = w.samples.gatherCalls(ctx, &plan, p)
		} else {
			err = w.samples.gather(ctx, &plan, p, nil, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, s := range all {
		if err := s.say("stop", nil); err != nil {
			return nil, err
		}
		r := &Result{}
		if err := s.expect(ctx, "result", patience, r); err != nil {
			return nil, err
		}
		for name, n := range r.Drops {
			run.Drops[name] += n
		}
		if s == p {
			run.Publisher = r.Resources
			continue
		}
		run.Others.add(r.Resources)
		run.Gateway = r
	}
	return run, nil
}
