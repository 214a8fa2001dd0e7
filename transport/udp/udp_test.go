package udp_test

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/udp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const group = "239.255.41.7:0"

// freeGroup returns a multicast group with a port that nobody uses.
func freeGroup(t testing.TB) string {
	t.Helper()
	conn, err := net.ListenUDP("udp4", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, port, _ := net.SplitHostPort(conn.LocalAddr().String())
	return strings.Replace(group, ":0", ":"+port, 1)
}

func unicast(t testing.TB, listen string, peers []string, s *transport.Settings) udp.UnicastLink {
	t.Helper()
	l, err := udp.Unicast(listen, peers, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func subscribe(t testing.TB, e transport.Event) <-chan string {
	t.Helper()
	got := make(chan string, 1000)
	if _, err := e.Subscribe("", nil, func(m *transport.Message) { got <- m.Source + " " + string(m.Payload) }); err != nil {
		t.Fatal(err)
	}
	return got
}

func receive(t testing.TB, got <-chan string, want string) {
	t.Helper()
	select {
	case m := <-got:
		if _, text, _ := strings.Cut(m, " "); text != want {
			t.Errorf("received %q, want %q", m, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("%q did not arrive", want)
	}
}

func TestUnicast(t *testing.T) {
	for _, c := range []struct{ name, a, b string }{
		{"IPv4", "127.0.0.1:0", "127.0.0.1:0"},
		{"IPv6", "[::1]:0", "[::1]:0"},
		{"both", "[::]:0", "127.0.0.1:0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := unicast(t, c.b, nil, nil)
			a := unicast(t, c.a, []string{b.LocalAddr().String()}, nil)
			got := subscribe(t, b)
			for _, text := range []string{"one", "", strings.Repeat("x", transport.MaxDatagramSize-20)} {
				if _, err := a.Publish("", []byte(text)); err != nil {
					t.Fatal(err)
				}
				receive(t, got, text)
			}
			back := subscribe(t, a)
			at := a.LocalAddr()
			if c.name == "both" {
				at = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), at.Port())
			}
			if err := b.SetPeers([]netip.AddrPort{at}); err != nil {
				t.Fatal(err)
			}
			b.Publish("", []byte("back"))
			receive(t, back, "back")
			if s := b.Stats(); s.Received != 3 || s.Sent != 1 || s.Dropped() != 0 {
				t.Errorf("stats %v", s)
			}
		})
	}
}

func TestHostNames(t *testing.T) {
	b := unicast(t, "localhost:0", nil, nil)
	a := unicast(t, ":0", []string{"localhost:" + portOf(b)}, nil)
	got := subscribe(t, b)
	a.Publish("", []byte("hello"))
	receive(t, got, "hello")
}

func portOf(l udp.UnicastLink) string {
	_, port, _ := net.SplitHostPort(l.LocalAddr().String())
	return port
}

func TestMulticast(t *testing.T) {
	for _, face := range []string{"", "lo"} {
		group := freeGroup(t)
		var links []udp.Link
		var got []<-chan string
		for range 3 {
			l, err := udp.Multicast(group, &transport.Settings{Interface: face})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			links = append(links, l)
			got = append(got, subscribe(t, l))
		}
		for _, l := range links {
			if _, err := l.Publish("", []byte("to all")); err != nil {
				t.Fatalf("interface %q: %v", face, err)
			}
			for i := range links {
				receive(t, got[i], "to all") // its own too
			}
		}
	}
}

// TestLateInterface opens a link on an interface that is not there: it must
// open, and close while it tries to join.
func TestLateInterface(t *testing.T) {
	l, err := udp.Multicast(freeGroup(t), &transport.Settings{Interface: "late0"})
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

func TestBadSettings(t *testing.T) {
	busy := unicast(t, "127.0.0.1:0", nil, nil)
	for name, try := range map[string]func() error{
		"no port":            func() error { _, err := udp.Unicast("127.0.0.1", nil, nil); return err },
		"bad port":           func() error { _, err := udp.Unicast("127.0.0.1:99999", nil, nil); return err },
		"peer without port":  func() error { _, err := udp.Unicast(":0", []string{"127.0.0.1:0"}, nil); return err },
		"peer without host":  func() error { _, err := udp.Unicast(":0", []string{":4000"}, nil); return err },
		"family":             func() error { _, err := udp.Unicast("127.0.0.1:0", []string{"[::1]:4000"}, nil); return err },
		"port in use":        func() error { _, err := udp.Unicast(busy.LocalAddr().String(), nil, nil); return err },
		"no group":           func() error { _, err := udp.Multicast("127.0.0.1:4000", nil); return err },
		"group without port": func() error { _, err := udp.Multicast("239.0.0.1:0", nil); return err },
		"TTL":                func() error { _, err := udp.Multicast("239.0.0.1:1", &transport.Settings{TTL: -1}); return err },
		"datagram":           func() error { _, err := udp.Unicast(":0", nil, &transport.Settings{MaxDatagram: 100}); return err },
		"buffer":             func() error { _, err := udp.Unicast(":0", nil, &transport.Settings{ReadBuffer: 1 << 30}); return err },
		"topic":              func() error { _, err := busy.Publish("t", nil); return err },
		"subscribed topic":   func() error { _, err := busy.Subscribe("t", nil, nil); return err },
		"too large":          func() error { _, err := busy.Publish("", make([]byte, 70_000)); return err },
		"peers of family":    func() error { return busy.SetPeers([]netip.AddrPort{netip.MustParseAddrPort("[::1]:1")}) },
	} {
		if err := try(); err == nil {
			t.Errorf("%s: no error", name)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
}

// TestReopen opens, fills, closes from two goroutines and opens the port again.
func TestReopen(t *testing.T) {
	rounds := 500
	if testing.Short() {
		rounds = 50
	}
	first := unicast(t, "127.0.0.1:0", nil, nil)
	at := first.LocalAddr().String()
	first.Close()
	other := unicast(t, "127.0.0.1:0", []string{at}, nil)
	stop := make(chan bool)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				other.Publish("", []byte("traffic"))
			}
		}
	})
	for range rounds {
		l, err := udp.Unicast(at, []string{other.LocalAddr().String()}, nil)
		if err != nil {
			t.Fatal(err)
		}
		closed := false
		l.Subscribe("", nil, func(m *transport.Message) {
			if closed {
				t.Error("a handler ran after Close")
			}
			l.Publish("", m.Payload)
		})
		var closers sync.WaitGroup
		for range 2 {
			closers.Go(func() {
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		closers.Wait()
		closed = true
		if _, err := l.Publish("", nil); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("Publish after Close: %v", err)
		}
	}
	close(stop)
	wg.Wait()
}

func TestRateAndPacing(t *testing.T) {
	b := unicast(t, "127.0.0.1:0", nil, nil)
	a := unicast(t, "127.0.0.1:0", []string{b.LocalAddr().String()}, &transport.Settings{MaxSendRate: 10})
	for range 50 {
		a.Publish("", []byte("x"))
	}
	if s := a.Stats(); s.Sent < 1 || s.Sent > 10 || s.Sent+s.Drops[transport.DropSendLimit] != 50 {
		t.Errorf("with a rate of 10: %v", s)
	}
	a = unicast(t, "127.0.0.1:0", []string{b.LocalAddr().String()}, &transport.Settings{Pacing: 20 * time.Millisecond})
	began := time.Now()
	for range 4 {
		a.Publish("", []byte("x"))
	}
	if took := time.Since(began); took < 60*time.Millisecond {
		t.Errorf("4 datagrams 20 ms apart took %v", took)
	}
}

func TestPublishAllocates(t *testing.T) {
	b := unicast(t, "127.0.0.1:0", nil, nil)
	a := unicast(t, "127.0.0.1:0", []string{b.LocalAddr().String()}, nil)
	got := make(chan bool)
	b.Subscribe("", nil, func(*transport.Message) { got <- true })
	payload := make([]byte, 64)
	most := 0.1
	if raceEnabled { // the detector lets pools forget
		most = 2
	}
	if avg := testing.AllocsPerRun(1000, func() {
		a.Publish("", payload)
		<-got
	}); avg > most {
		t.Errorf("%v allocations a message", avg)
	}
}
