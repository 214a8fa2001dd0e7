package filter_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/madara-go/madara/knowledge"
	"github.com/madara-go/madara/knowledge/filter"
	"github.com/madara-go/madara/transport"
	transportfilter "github.com/madara-go/madara/transport/filter"
	"github.com/madara-go/madara/transport/udp"
	"github.com/madara-go/madara/transport/wire"
)

var quick = &filter.RegistrySettings{Every: 20 * time.Millisecond, Heartbeat: 300 * time.Millisecond}

func open(t *testing.T, listen string) udp.UnicastLink {
	t.Helper()
	link, err := udp.Unicast(listen, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { link.Close() })
	return link
}

// client is an agent that finds others by a registry.
func client(t *testing.T, id, server string) (kb *knowledge.Base, link udp.UnicastLink, leave func()) {
	t.Helper()
	link = open(t, "127.0.0.1:0")
	kb = knowledge.New(knowledge.WithID(id))
	r, err := filter.JoinRegistry(kb, link, []string{server}, knowledge.Sharing{}, quick)
	if err != nil {
		t.Fatal(err)
	}
	leave = func() { r.Close(); kb.Close(); link.Close() }
	t.Cleanup(leave)
	return kb, link, leave
}

func registry(t *testing.T, at string) (stop func()) {
	t.Helper()
	link := open(t, at)
	kb := knowledge.New(knowledge.WithID("registry"))
	r, err := filter.ServeRegistry(kb, link, quick)
	if err != nil {
		t.Fatal(err)
	}
	stop = func() { r.Close(); kb.Close(); link.Close() }
	t.Cleanup(stop)
	return stop
}

func until(t *testing.T, kb *knowledge.Base, what string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if _, err := kb.Wait(ctx, what, nil); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// TestRegistry starts agents before their registry, restarts it, and lets one leave.
func TestRegistry(t *testing.T) {
	probe, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	server := probe.LocalAddr().String()
	probe.Close()
	a, la, _ := client(t, "a", server)
	b, lb, leave := client(t, "b", server)
	a.Evaluate("from_a = 1", nil)
	time.Sleep(50 * time.Millisecond)
	stop := registry(t, server)
	known := func(kb *knowledge.Base, link udp.UnicastLink) bool {
		return kb.Get("domain.KaRL.endpoints." + link.LocalAddr().String()).Exists()
	}
	eventually(t, "they know of each other", func() bool { return known(a, lb) && known(b, la) })
	a.Evaluate("now = 1", nil)
	until(t, b, "from_a == 1 && now == 1")
	stop()
	// What they know stays while there is no registry.
	b.Evaluate("meanwhile = 1", nil)
	until(t, a, "meanwhile == 1")
	registry(t, server)
	c, lc, _ := client(t, "c", server)
	eventually(t, "the third is known", func() bool { return known(a, lc) && known(b, lc) && known(c, la) && known(c, lb) })
	c.Evaluate("from_c = 1", nil)
	until(t, a, "from_c == 1")
	until(t, b, "from_c == 1")
	leave()
	eventually(t, "who left is forgotten", func() bool { return !known(a, lb) && !known(c, lb) && known(a, lc) })
}

// TestRegistryFilters has agents whose messages go through filters: they find each
// other where the registry has the same, and nothing goes in the clear.
func TestRegistryFilters(t *testing.T) {
	chain := []transport.Filter{transportfilter.LZ4{}}
	at := open(t, "127.0.0.1:0")
	settings := *quick
	settings.Filters = chain
	kb := knowledge.New()
	r, err := filter.ServeRegistry(kb, at, &settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); kb.Close() })
	var clear atomic.Int64
	if _, err := at.Subscribe("", nil, func(m *transport.Message) {
		if _, err := wire.ParseHeader(m.Payload); err == nil {
			clear.Add(1)
		}
	}); err != nil {
		t.Fatal(err)
	}
	var kbs []*knowledge.Base
	for _, id := range []string{"a", "b"} {
		link := open(t, "127.0.0.1:0")
		kb := knowledge.New(knowledge.WithID(id))
		r, err := filter.JoinRegistry(kb, link, []string{at.LocalAddr().String()}, knowledge.Sharing{Filters: chain}, quick)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); kb.Close() })
		kbs = append(kbs, kb)
	}
	kbs[0].Evaluate("x = 1", nil)
	until(t, kbs[1], "x == 1")
	if n := clear.Load(); n != 0 || r.Stats().Drops[transport.DropDecode] != 0 {
		t.Errorf("%d datagrams went in the clear, %v", n, r.Stats())
	}
}

func TestRegistrySettings(t *testing.T) {
	kb := knowledge.New()
	defer kb.Close()
	link := open(t, "127.0.0.1:0")
	for _, s := range []filter.RegistrySettings{{Every: 1}, {Every: -1}, {Heartbeat: time.Second}, {Peers: -1}, {Peers: 5000}} {
		if _, err := filter.ServeRegistry(kb, link, &s); !errors.Is(err, knowledge.ErrSharing) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	for _, servers := range [][]string{nil, {"nonsense"}, {"127.0.0.1:0"}} {
		if _, err := filter.JoinRegistry(kb, link, servers, knowledge.Sharing{}, nil); !errors.Is(err, knowledge.ErrSharing) {
			t.Errorf("%q: %v", servers, err)
		}
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(fmt.Sprint("not in time: ", what))
		}
	}
}
