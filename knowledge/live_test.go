package knowledge_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/udp"
)

// join attaches a new base to an Event and closes both when the test ends.
func join(t testing.TB, e transport.Event, err error, id string, s *knowledge.Sharing) *knowledge.Base {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	kb := knowledge.New(knowledge.WithID(id))
	if _, err := kb.Attach(e, s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		kb.Close()
		e.Close()
	})
	return kb
}

func await(t testing.TB, kb *knowledge.Base, src string) {
	t.Helper()
	if _, err := kb.Wait(t.Context(), src, &knowledge.WaitSettings{Timeout: 20 * time.Second}); err != nil {
		t.Fatalf("%s waits for %s: %v", kb.ID(), src, err)
	}
}

// TestUnicastLive lets two bases talk over loopback, the second one with
// fragments.
func TestUnicastLive(t *testing.T) {
	la, err := udp.Unicast("127.0.0.1:0", nil, nil)
	a := join(t, la, err, "a", nil)
	lb, err := udp.Unicast("127.0.0.1:0", []string{la.LocalAddr().String()}, nil)
	b := join(t, lb, err, "b", nil)
	if err := la.SetPeers([]netip.AddrPort{lb.LocalAddr()}); err != nil {
		t.Fatal(err)
	}
	eval(t, a, "x = [1, 2, 3]")
	await(t, b, "x[2] == 3")
	b.Set("map", karl.File(karl.KindJPEG, make([]byte, 300_000)))
	eval(t, b, "sent = 1")
	await(t, a, "sent && #size(map) == 300000")
	for range 1000 {
		eval(t, a, "++n")
	}
	await(t, b, "n == 1000")
}

// TestMulticastLive lets five bases in one group reach the same knowledge.
func TestMulticastLive(t *testing.T) {
	conn, err := net.ListenUDP("udp4", nil)
	if err != nil {
		t.Fatal(err)
	}
	port := conn.LocalAddr().(*net.UDPAddr).Port
	conn.Close()
	group := fmt.Sprint("239.255.41.8:", port)
	var bases []*knowledge.Base
	for i := range 5 {
		l, err := udp.Multicast(group, nil)
		kb := join(t, l, err, fmt.Sprint("agent", i), nil)
		eval(t, kb, fmt.Sprintf("agent.%d = %d", i, i+1))
		bases = append(bases, kb)
	}
	for _, kb := range bases {
		await(t, kb, "agent.0 == 1 && agent.1 == 2 && agent.2 == 3 && agent.3 == 4 && agent.4 == 5")
	}
}

// TestDeadPeer: publishing to nobody does not block, and an attached base that
// idles does nothing.
func TestDeadPeer(t *testing.T) {
	l, err := udp.Unicast("127.0.0.1:0", []string{"127.0.0.1:9", "192.0.2.1:9"}, nil)
	kb := join(t, l, err, "a", nil)
	began := time.Now()
	for range 1000 {
		eval(t, kb, "++n")
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("1,000 sends took %v", took)
	}
}

// TestAttachRounds attaches, talks and detaches under traffic, also from two
// goroutines at the same time.
func TestAttachRounds(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 30
	}
	la, err := udp.Unicast("127.0.0.1:0", nil, nil)
	a := join(t, la, err, "a", nil)
	lb, err := udp.Unicast("127.0.0.1:0", []string{la.LocalAddr().String()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer lb.Close()
	if err := la.SetPeers([]netip.AddrPort{lb.LocalAddr()}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var traffic sync.WaitGroup
	traffic.Go(func() {
		for ctx.Err() == nil {
			a.Evaluate("++n", nil)
		}
	})
	for i := range rounds {
		kb := knowledge.New(knowledge.WithID(fmt.Sprint("b", i)))
		at, err := kb.Attach(lb, &knowledge.Sharing{OnData: "++.got"})
		if err != nil {
			t.Fatal(err)
		}
		kb.Evaluate("x = 1", nil)
		var closers sync.WaitGroup
		closers.Go(func() { at.Detach() })
		closers.Go(func() { kb.Close() })
		closers.Wait()
	}
	cancel()
	traffic.Wait()
}

// FuzzReceive delivers any bytes to an attached base: it stays usable and
// within its limits.
func FuzzReceive(f *testing.F) {
	files, _ := filepath.Glob("../transport/testdata/wire/*.bin")
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, true)
		f.Add(b, false)
	}
	f.Fuzz(func(t *testing.T, b []byte, compat bool) {
		e := &tap{}
		kb := knowledge.New(knowledge.WithLimits(knowledge.Limits{Variables: 50}))
		defer kb.Close()
		a, err := kb.Attach(e, &knowledge.Sharing{Compat: compat, ParticipantTTL: 5, OnData: "++.n", TTL: 2})
		if err != nil {
			t.Fatal(err)
		}
		e.deliver(b)
		e.deliver(b)
		kb.Evaluate("still = 1", nil)
		if n := len(strings.Split(dump(kb), "\n")); n > 60 {
			t.Errorf("%d lines of knowledge", n)
		}
		if s := a.Stats(); s.Received != 2 {
			t.Errorf("stats %v", s)
		}
	})
}
