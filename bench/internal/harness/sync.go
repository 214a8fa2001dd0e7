package harness

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// TimeSync is how the clocks of two hosts agree. One-way times between them are
// corrected by the offset: what remains is the bound, because all that the pings
// cannot see is that one way takes longer than the other.
type TimeSync struct {
	Offset     int64 `json:"offset_ns"` // the other clock less this one, before the run; the times are corrected by it
	Bound      int64 `json:"bound_ns"`  // how far off it may be, at most half the shortest round trip
	Drift      int64 `json:"drift_ns"`  // of the offset, through the run
	Daemons    bool  `json:"daemons"`   // those of both hosts say that their clocks are synchronised
	Disagree   bool  `json:"disagree"`  // they say so, and the pings say otherwise
	Accepted   bool  `json:"accepted"`
	Diagnostic bool  `json:"diagnostic"`
}

// Accept decides whether one-way times between the hosts mean something: the
// offset is known well against the smallest latency, stays so, and nothing came
// before it was sent.
func (t *TimeSync) Accept(smallest, negative int64) {
	limit := max(int64(10*time.Microsecond), smallest/10)
	t.Accepted = t.Bound <= limit && abs(t.Drift) <= limit && !t.Disagree && negative == 0
	t.Diagnostic = !t.Accepted
}

func abs(n int64) int64 { return max(n, -n) }

// syncPings is how many round trips estimate the offset; the quicker quarter counts.
const syncPings = 64

// ping is one round trip: the times here, and there in between.
type ping struct{ before, there, after int64 }

// span returns the smallest and the largest offset that one round trip allows.
func (p *ping) span() (low, high int64) { return p.there - p.after, p.there - p.before }

// estimate returns what all pings of the quicker quarter allow.
func estimate(pings []ping) TimeSync {
	slices.SortFunc(pings, func(a, b ping) int { return cmp.Compare(a.after-a.before, b.after-b.before) })
	low, high := pings[0].span()
	least := (high - low) / 2
	for _, p := range pings[:max(len(pings)/4, 1)] {
		l, h := p.span()
		low, high = max(low, l), min(high, h)
	}
	t := TimeSync{Offset: low + (high-low)/2, Bound: (high - low + 1) / 2}
	if low > high { // a clock moved meanwhile
		t.Bound = least
	}
	return t
}

// narrow takes the daemons' word that the clocks differ by no more than a time.
func (t *TimeSync) narrow(most int64) {
	t.Daemons = true
	low, high := max(t.Offset-t.Bound, -most), min(t.Offset+t.Bound, most)
	if low > high {
		t.Disagree = true
		return
	}
	t.Offset, t.Bound = low+(high-low)/2, (high-low+1)/2
}

// synchronise estimates the offset of a peer's clock over a connection of their
// own, by the addresses that the benchmark uses.
func (l *Lab) synchronise(ctx context.Context, p *process) (*TimeSync, error) {
	var listener net.Listener
	var address string
	var err error
	for range 10 { // a port may be taken by chance
		if address, err = l.address(0); err != nil {
			return nil, err
		}
		if listener, err = net.Listen("tcp", address); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	if err := p.say("clock", clockRequest{Realtime, address}); err != nil {
		return nil, err
	}
	if err := p.expect(ctx, "clock", patience, nil); err != nil {
		return nil, err
	}
	listener.(*net.TCPListener).SetDeadline(time.Now().Add(patience))
	conn, err := listener.Accept()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	clock := ClockNamed(Realtime)
	var list []ping
	var b [8]byte
	for range syncPings {
		g := ping{before: clock()}
		if _, err := conn.Write(b[:]); err != nil {
			return nil, fmt.Errorf("%s: its clock: %w", p.name, err)
		}
		if _, err := io.ReadFull(conn, b[:]); err != nil {
			return nil, fmt.Errorf("%s: its clock: %w", p.name, err)
		}
		g.after, g.there = clock(), int64(binary.LittleEndian.Uint64(b[:]))
		list = append(list, g)
	}
	t := estimate(list)
	if l.there != nil {
		if here, there := daemonWord(), l.there.Host.Daemon; here != nil && there != nil && here.Synchronised && there.Synchronised {
			t.narrow(1000 * (here.MaxErrorUS + there.MaxErrorUS))
		}
	}
	return &t, nil
}

// clockRequest asks a peer to answer pings with the time.
type clockRequest struct {
	Name    string `json:"name"`
	Address string `json:"address"`
}

// answerPings dials the runner and answers each eight bytes with the time, until
// the runner closes the connection.
func (p *peer) answerPings(ask clockRequest) error {
	conn, err := net.DialTimeout("tcp", ask.Address, 5*time.Second)
	if err != nil {
		return err
	}
	clock := p.clocks(ask.Name)
	p.tasks.Go(func() {
		defer conn.Close()
		stop := context.AfterFunc(p.stopped, func() { conn.Close() })
		defer stop()
		var b [8]byte
		for {
			if _, err := io.ReadFull(conn, b[:]); err != nil {
				return
			}
			binary.LittleEndian.PutUint64(b[:], uint64(clock()))
			if _, err := conn.Write(b[:]); err != nil {
				return
			}
		}
	})
	return nil
}

// facts are what the other host says about itself.
type facts struct {
	Host    *Host   `json:"host"`
	Release Release `json:"release"`
}

// askHost asks the agent of --connect what its host is.
func (l *Lab) askHost() (*facts, error) {
	p, err := startProcess(l.places[1], "the other host", nil)
	if err != nil {
		return nil, err
	}
	defer p.close()
	f := &facts{}
	if err = p.say("host", nil); err == nil {
		err = p.expect(context.Background(), "host", patience, f)
	}
	if err == nil && f.Host == nil {
		err = fmt.Errorf("%s says nothing about itself", p.name)
	}
	if err != nil {
		return nil, fmt.Errorf("--connect %s: %w: %w", l.places[1].remote, ErrCannotRun, err)
	}
	return f, nil
}
