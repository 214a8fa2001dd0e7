package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/udp"
	"github.com/madara-go/madara/transport/wire"
)

// pair is two bases over UDP on loopback.
type pair struct {
	a, b   *knowledge.Base
	share  *knowledge.Attachment // of b
	la, lb udp.UnicastLink
}

func newPair() (*pair, error) {
	p := &pair{}
	var err error
	if p.lb, err = udp.Unicast("127.0.0.1:0", nil, nil); err != nil {
		return nil, err
	}
	if p.la, err = udp.Unicast("127.0.0.1:0", []string{p.lb.LocalAddr().String()}, nil); err != nil {
		return nil, err
	}
	p.a, p.b = knowledge.New(knowledge.WithID("a")), knowledge.New(knowledge.WithID("b"))
	if _, err = p.a.Attach(p.la, nil); err != nil {
		return nil, err
	}
	p.share, err = p.b.Attach(p.lb, &knowledge.Sharing{Depth: 4096})
	return p, err
}

func (p *pair) close() {
	p.a.Close()
	p.b.Close()
	p.la.Close()
	p.lb.Close()
}

// sockets is two bare UDP sockets on loopback.
type sockets struct {
	a, b *net.UDPConn
	to   netip.AddrPort
}

func newSockets() (*sockets, error) {
	local := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}
	a, err := net.ListenUDP("udp4", local)
	if err != nil {
		return nil, err
	}
	b, err := net.ListenUDP("udp4", local)
	if err != nil {
		return nil, err
	}
	b.SetReadBuffer(transport.DefaultBuffer)
	return &sockets{a, b, b.LocalAddr().(*net.UDPAddr).AddrPort()}, nil
}

func (s *sockets) close() {
	s.a.Close()
	s.b.Close()
}

// wakeRound measures from just before a write until the peer's waiter runs, and
// as baseline a datagram between two sockets and a goroutine that its reader
// wakes.
func wakeRound(length time.Duration) (sample, error) {
	p, err := newPair()
	if err != nil {
		return sample{}, err
	}
	defer p.close()
	write, err := p.a.Compile("++x")
	if err != nil {
		return sample{}, err
	}
	due, err := p.b.Compile("x > seen")
	if err != nil {
		return sample{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ready, woke := make(chan bool), make(chan time.Time)
	failed := make(chan error, 1)
	go func() {
		defer close(woke)
		for range ready {
			if _, err := due.Wait(ctx, nil); err != nil {
				failed <- err
				return
			}
			at := time.Now()
			p.b.Evaluate("seen = x", nil)
			woke <- at
		}
	}()
	var total time.Duration
	n := 0
	for end := time.Now().Add(length); time.Now().Before(end); n++ {
		ready <- true
		settle() // the waiter sleeps by now
		began := time.Now()
		write.Evaluate(nil)
		at, ok := <-woke
		if !ok {
			return sample{}, <-failed
		}
		total += at.Sub(began)
	}
	close(ready)
	figure := float64(total.Nanoseconds()) / float64(n) / 1000

	s, err := newSockets()
	if err != nil {
		return sample{}, err
	}
	defer s.close()
	hand, woke := make(chan bool, 1), make(chan time.Time)
	go func() {
		buffer := make([]byte, 2048)
		for {
			if _, _, err := s.b.ReadFromUDPAddrPort(buffer); err != nil {
				close(hand)
				return
			}
			hand <- true
		}
	}()
	go func() {
		for range hand {
			woke <- time.Now()
		}
	}()
	message := make([]byte, 171)
	total, n = 0, 0
	for end := time.Now().Add(length); time.Now().Before(end); n++ {
		settle()
		began := time.Now()
		if _, err := s.a.WriteToUDPAddrPort(message, s.to); err != nil {
			return sample{}, err
		}
		total += (<-woke).Sub(began)
	}
	return sample{figure: figure, baseline: float64(total.Nanoseconds()) / float64(n) / 1000}, nil
}

// settle lets the goroutines that wait go to sleep, without going to sleep
// itself: after a pause of a millisecond both sides would measure how long a
// processor takes to fill its caches again.
func settle() {
	for end := time.Now().Add(50 * time.Microsecond); time.Now().Before(end); {
		runtime.Gosched()
	}
}

// codecRound measures encoding and decoding, which has no baseline.
func codecRound(length time.Duration) (sample, error) {
	h := wire.Header{Domain: []byte("KaRL"), Originator: []byte("agent"), Type: wire.MultiAssign, Updates: 10}
	names := make([]string, 10)
	for i := range names {
		names[i] = fmt.Sprint("agent.1.sensor.", i)
	}
	var buffer []byte
	encode := func(n int64) {
		buffer = h.Append(buffer[:0])
		for i, name := range names {
			buffer = wire.AppendRecord(buffer, name, karl.Int(n+int64(i)), uint64(n))
		}
	}
	encode(0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for n := range int64(1000) {
		encode(n)
	}
	runtime.ReadMemStats(&after)
	n, sum := int64(0), int64(0)
	began := time.Now()
	for ; time.Since(began) < length; n++ {
		encode(n)
		got, err := wire.ParseHeader(buffer)
		if err != nil {
			return sample{}, err
		}
		updates := wire.ReadUpdates(buffer[got.Len():], got.Updates)
		var r wire.Record
		for updates.Next(&r) {
			sum += r.Value.Int()
		}
	}
	took := time.Since(began)
	if want := 10*n*(n-1)/2 + 45*n; sum != want {
		return sample{}, fmt.Errorf("decoded to the sum %d, want %d", sum, want)
	}
	return sample{
		figure: float64(took.Nanoseconds()) / float64(n) / 1000,
		allocs: float64((after.Mallocs - before.Mallocs) / 1000),
	}, nil
}

// receiveRound measures how many datagrams of one variable a base applies while
// they come as fast as a socket sends, and as baseline how many a bare loop
// reads. What was sent and not applied must have been counted.
func receiveRound(length time.Duration) (sample, error) {
	p, err := newPair()
	if err != nil {
		return sample{}, err
	}
	defer p.close()
	s, err := newSockets()
	if err != nil {
		return sample{}, err
	}
	defer s.close()
	h := wire.Header{Domain: []byte("KaRL"), Originator: []byte("c"), Type: wire.Assign, Updates: 1}
	message := wire.AppendRecord(h.Append(nil), "x", karl.Int(1), 0)
	h.Size = uint64(len(message))
	h.Append(message[:0])

	to := p.lb.LocalAddr()
	sent := uint64(0)
	began := time.Now()
	for ; time.Since(began) < length; sent++ {
		if _, err := s.a.WriteToUDPAddrPort(message, to); err != nil {
			return sample{}, err
		}
	}
	figure := float64(p.share.Stats().Received) / time.Since(began).Seconds()
	time.Sleep(20 * time.Millisecond)
	s.a.WriteToUDPAddrPort(message, to) // the count of what the system dropped comes with a datagram
	sent++
	var link, share transport.Stats
	for range 100 {
		time.Sleep(10 * time.Millisecond)
		link, share = p.lb.Stats(), p.share.Stats()
		if share.Received+link.Drops[transport.DropInbox]+link.Drops[transport.DropKernel] == sent {
			break
		}
	}
	counted := share.Received + link.Drops[transport.DropInbox] + link.Drops[transport.DropKernel]
	note := fmt.Sprintf("%d lost, all counted", sent-share.Received)
	if runtime.GOOS == "linux" && counted != sent {
		return sample{}, fmt.Errorf("%d sent, %d received or counted as lost", sent, counted)
	}

	var read atomic.Uint64
	go func() {
		buffer := make([]byte, 2048)
		for {
			if _, _, err := s.b.ReadFromUDPAddrPort(buffer); err != nil {
				return
			}
			read.Add(1)
		}
	}()
	began = time.Now()
	for time.Since(began) < length {
		if _, err := s.a.WriteToUDPAddrPort(message, s.to); err != nil {
			return sample{}, err
		}
	}
	return sample{figure: figure, baseline: float64(read.Load()) / time.Since(began).Seconds(), note: note}, nil
}

// sendRound measures how many variables a base sets and sends a second, one a
// message, and as baseline how many datagrams a socket sends.
func sendRound(length time.Duration) (sample, error) {
	s, err := newSockets()
	if err != nil {
		return sample{}, err
	}
	defer s.close()
	link, err := udp.Unicast("127.0.0.1:0", []string{s.to.String()}, nil)
	if err != nil {
		return sample{}, err
	}
	defer link.Close()
	kb := knowledge.New(knowledge.WithID("a"))
	defer kb.Close()
	share, err := kb.Attach(link, &knowledge.Sharing{NoReceiving: true})
	if err != nil {
		return sample{}, err
	}
	e, err := kb.Compile("++x")
	if err != nil {
		return sample{}, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := 0
	began := time.Now()
	for ; time.Since(began) < length; n++ {
		if _, err := e.Evaluate(nil); err != nil {
			return sample{}, err
		}
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	if got := share.Stats().Sent; got != uint64(n) {
		return sample{}, fmt.Errorf("%d messages of %d evaluations", got, n)
	}
	message := make([]byte, 171)
	m := 0
	began = time.Now()
	for ; time.Since(began) < length; m++ {
		if _, err := s.a.WriteToUDPAddrPort(message, s.to); err != nil && !errors.Is(err, net.ErrClosed) {
			return sample{}, err
		}
	}
	return sample{
		figure: float64(n) / took.Seconds(), baseline: float64(m) / time.Since(began).Seconds(),
		allocs: float64(after.Mallocs-before.Mallocs) / float64(n),
	}, nil
}
