package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"time"
)

// A peer is a process, or a goroutine where the link is within a process, that is
// one end of what is measured. The runner talks to it by lines on its standard
// input and output, "word {json}":
//
//	runner            peer
//	open Assignment   ready
//	probe             routed, when a subscriber's route is there
//	arm Plan          armed
//	go Plan           done Sent, when a publisher has sent everything
//	drain             complete, when subscribers have everything
//	samples {"column"}  samples {"values"}, a part of them
//	host              host {"host", "release"}, before open too
//	clock {"address"}   clock, and then the time for each eight bytes on a connection to there
//	stop              result Result; the peer ends
//
// A peer that cannot go on says failed {"message", "taken"}, the latter if its
// address was. The lines are all there is,
// so that an end may be written in any language.

// peerVariable tells a process that it is a peer.
const peerVariable = "MADARA_BENCH_PEER"

// Roles.
const (
	rolePublish   = "publish"
	roleSubscribe = "subscribe"
	rolePing      = "ping"
	roleEcho      = "echo"
	roleServe     = "serve"
	roleCall      = "call"
)

// Assignment is what a peer is to be.
type Assignment struct {
	Role        string        `json:"role"`
	Clock       string        `json:"clock"`
	Endpoint    Endpoint      `json:"endpoint"`
	Subscribers int           `json:"subscribers"` // of this process, for a publisher of all
	First       int           `json:"first"`       // the number of the first subscriber
	Timeout     time.Duration `json:"timeout"`     // of an answer
	Call        CallPlan      `json:"call"`
}

// Sent is what a publisher or caller counted.
type Sent struct {
	Sent        int64            `json:"sent"`
	Errors      int64            `json:"errors"`
	FirstError  string           `json:"first_error,omitempty"`
	Cost        *Distribution    `json:"cost"`      // t2-t1
	Lag         *Distribution    `json:"lag"`       // t1-t0
	Latency     *Distribution    `json:"latency"`   // round trips from t1
	Schedule    *Distribution    `json:"schedule"`  // round trips from t0
	Penalised   *Distribution    `json:"penalised"` // the same, failures at the time-out
	Failures    int64            `json:"failures"`
	Kinds       map[string]int64 `json:"kinds,omitempty"` // failures by kind
	LateReplies int64            `json:"late_replies"`
	Delayed     int64            `json:"delayed"` // sent late because the one before was not answered
	Allocs      float64          `json:"allocs"`  // of the process, per measured message
	Seconds     float64          `json:"seconds"`
	Bulk        *Bulk            `json:"bulk,omitempty"`
	Cases       []TimeoutCase    `json:"cases,omitempty"`
	Peaks       peaks            `json:"peaks,omitempty"` // of round trips

	times sentTimes
}

// Result is what a peer says at its end.
type Result struct {
	Subscribers []Received        `json:"subscribers,omitempty"`
	Drops       map[string]uint64 `json:"drops,omitempty"`
	Resources   Resources         `json:"resources"`
	First       string            `json:"first,omitempty"` // by measured sequence, when it first came
	Last        string            `json:"last,omitempty"`
	Peaks       peaks             `json:"peaks,omitempty"`      // of all subscribers of the process
	Handled     int64             `json:"handled,omitempty"`    // requests
	Inversions  int64             `json:"inversions,omitempty"` // bulk requests begun while a high one waited
}

// PeerMain runs the process as a peer and does not return, if it was started as
// one. It is the first thing that a benchmark calls.
func PeerMain() {
	if os.Getenv(peerVariable) == "" {
		return
	}
	// An interruption is the runner's to handle: it closes standard input.
	signal.Ignore(endings()...)
	RunPeer(os.Stdin, os.Stdout)
	os.Exit(0)
}

type peer struct {
	clocks     func(name string) Clock
	assignment *Assignment
	clock      Clock
	out        *bufio.Writer
	mu         sync.Mutex // of out and times
	times      sentTimes
	end        end
	seats      []*seat
	stopProbes func()
	stopped    context.Context
	stop       context.CancelFunc
	tasks      sync.WaitGroup
	before     Resources
	control    *controlPeer
}

// seat is one subscriber.
type seat struct {
	mu      sync.Mutex
	tracker *Tracker
	probes  int
}

// RunPeer is a peer until it is told to stop or in ends.
func RunPeer(in io.Reader, out io.Writer) { runPeer(in, out, ClockNamed) }

// runPeer is a peer that reads certain clocks.
func runPeer(in io.Reader, out io.Writer, clocks func(name string) Clock) {
	p := &peer{clocks: clocks, out: bufio.NewWriter(out), before: readResources()}
	p.stopped, p.stop = context.WithCancel(context.Background())
	defer p.close()
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		word, arguments, _ := strings.Cut(strings.TrimSpace(line), " ")
		again, err := p.do(word, []byte(arguments))
		if err != nil {
			p.say("failed", failureOf(err))
			return
		}
		if !again {
			return
		}
	}
}

func (p *peer) say(word string, v any) {
	text := []byte("{}")
	if v != nil {
		var err error
		if text, err = json.Marshal(v); err != nil {
			word, text = "failed", []byte(`{"message":"result cannot be written"}`)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "%s %s\n", word, text)
	p.out.Flush() // the runner reads until it has what it wants, or is gone
}

func (p *peer) do(word string, arguments []byte) (again bool, err error) {
	if p.assignment == nil && word != "open" && word != "host" {
		return false, fmt.Errorf("%q came before open", word)
	}
	switch word {
	case "open":
		a := &Assignment{}
		if err := json.Unmarshal(arguments, a); err != nil {
			return false, err
		}
		p.assignment, p.clock = a, p.clocks(a.Clock)
		if err := p.open(); err != nil {
			return false, err
		}
		p.say("ready", nil)
	case "clock":
		ask := clockRequest{}
		if err := json.Unmarshal(arguments, &ask); err != nil {
			return false, err
		}
		if err := p.answerPings(ask); err != nil {
			return false, err
		}
		p.say("clock", nil)
	case "host":
		p.say("host", &facts{thisHost(), thisRelease()})
	case "probe":
		p.probe()
	case "arm", "go":
		plan := Plan{}
		if err := json.Unmarshal(arguments, &plan); err != nil {
			return false, err
		}
		if plan.Count < 1 || plan.Count > MaxCount || plan.Warmup < 0 || plan.Warmup > MaxCount || plan.Period < 0 {
			return false, fmt.Errorf("the plan %+v is out of range", plan)
		}
		if word == "arm" {
			p.arm(plan)
			p.fresh()
			p.say("armed", nil)
			return true, nil
		}
		if p.stopProbes != nil {
			p.stopProbes()
		}
		p.fresh()
		p.tasks.Go(func() { p.run(plan) })
	case "drain":
		p.tasks.Go(p.drain)
	case "samples":
		ask := sampleRequest{}
		if err := json.Unmarshal(arguments, &ask); err != nil {
			return false, err
		}
		values, err := p.samples(ask)
		if err != nil {
			return false, err
		}
		p.say("samples", values)
	case "stop":
		p.say("result", p.result())
		return false, nil
	default:
		return false, fmt.Errorf("%q is not known", word)
	}
	return true, nil
}

func (p *peer) close() {
	p.stop()
	if p.stopProbes != nil {
		p.stopProbes()
	}
	if p.control != nil {
		p.control.close()
	}
	if p.end != nil {
		p.end.close()
	}
	p.tasks.Wait()
}

func (p *peer) open() error {
	a := p.assignment
	if a.Role == roleServe || a.Role == roleCall {
		c, err := openControlPeer(a, p.clock)
		p.control = c
		return err
	}
	publisher := a.Role == rolePublish || a.Role == rolePing
	e, err := openEnd(&a.Endpoint, publisher)
	if err != nil {
		return err
	}
	p.end = e
	switch a.Role {
	case roleSubscribe:
		for range a.Subscribers {
			s := &seat{}
			p.seats = append(p.seats, s)
			if err := e.subscribe(func(payload []byte) { s.receive(p, payload) }); err != nil {
				return err
			}
		}
	case roleEcho:
		return e.subscribe(func(payload []byte) { e.publish(payload) })
	case rolePing:
		p.seats = []*seat{{}}
		return nil // subscribes when it begins
	case rolePublish:
	default:
		return fmt.Errorf("role %q is not known", a.Role)
	}
	return nil
}

func (s *seat) receive(p *peer, payload []byte) {
	at := p.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tracker == nil {
		if isProbe(payload) {
			s.probes++
		}
		return
	}
	s.tracker.Receive(at, payload)
}

// enoughProbes is how many probes must have come before a route is there.
const enoughProbes = 3

// probe lets a publisher send probes until it begins, and a subscriber wait for them.
func (p *peer) probe() {
	ctx, cancel := context.WithCancel(p.stopped)
	done := make(chan struct{})
	p.stopProbes = func() { cancel(); <-done }
	go func() {
		defer close(done)
		if p.assignment.Role == roleSubscribe {
			if p.poll(ctx, func() bool { return p.all(func(s *seat) bool { return s.probes >= enoughProbes }) }) {
				p.say("routed", nil)
			}
			return
		}
		if err := p.end.ready(ctx, p.assignment.Subscribers); err != nil {
			return
		}
		payload := make([]byte, p.assignment.Endpoint.Payload)
		putProbe(payload)
		p.poll(ctx, func() bool { p.end.publish(payload); return false })
	}()
}

// poll asks every few milliseconds until the answer is yes, or ctx ends.
func (p *peer) poll(ctx context.Context, yes func() bool) bool {
	t := time.NewTicker(3 * time.Millisecond)
	defer t.Stop()
	for !yes() {
		select {
		case <-t.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (p *peer) all(yes func(*seat) bool) bool {
	for _, s := range p.seats {
		s.mu.Lock()
		ok := yes(s)
		s.mu.Unlock()
		if !ok {
			return false
		}
	}
	return true
}

func (p *peer) arm(plan Plan) {
	for _, s := range p.seats {
		t := NewTracker(plan)
		if plan.WantSkew {
			t.skew = &skew{make([]int64, plan.Count), make([]int64, plan.Count)}
		}
		s.mu.Lock()
		s.tracker = t
		s.mu.Unlock()
	}
}

func (p *peer) run(plan Plan) {
	switch p.assignment.Role {
	case rolePublish:
		p.done(p.publishAll(plan))
	case rolePing:
		s, err := p.pingAll(plan)
		if err != nil {
			p.say("failed", failureOf(err))
			return
		}
		p.done(s)
	case roleCall:
		s, err := p.control.callAll(p.stopped, plan)
		if err != nil {
			p.say("failed", failureOf(err))
			return
		}
		p.done(s)
	}
}

// done says what was sent, and keeps its samples for who asks.
func (p *peer) done(s *Sent) {
	p.mu.Lock()
	p.times = s.times
	p.mu.Unlock()
	p.say("done", s)
}

// fresh counts resources from here, without the garbage of what came before.
func (p *peer) fresh() {
	runtime.GC()
	p.before = readResources()
}

// drain waits until the subscribers have everything; the runner decides how long.
func (p *peer) drain() {
	p.all(func(s *seat) bool { s.tracker.Drain(); return true })
	if p.poll(p.stopped, func() bool { return p.all(func(s *seat) bool { return s.tracker.Complete() }) }) {
		p.say("complete", nil)
	}
}

func (p *peer) result() *Result {
	r := &Result{Resources: readResources().since(p.before)}
	if p.end != nil {
		r.Drops = p.end.drops()
	}
	if p.control != nil {
		p.control.result(r)
	}
	if p.assignment.Role != roleSubscribe {
		return r
	}
	var all *skew
	for i, s := range p.seats {
		s.mu.Lock()
		received := s.tracker.Result()
		received.Subscriber = p.assignment.First + i
		r.Subscribers = append(r.Subscribers, received)
		r.Peaks.merge(s.tracker.peaks)
		if k := s.tracker.skew; k != nil {
			if all == nil {
				all = &skew{make([]int64, len(k.first)), make([]int64, len(k.last))}
			}
			for j, t := range k.first {
				if t != 0 {
					all.add(int64(j), t)
				}
			}
		}
		s.mu.Unlock()
	}
	if all != nil {
		r.First, r.Last = packed(all.first), packed(all.last)
	}
	return r
}
