package udp_test

import (
	"errors"
	"net"
	"strconv"
	"testing"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/udp"
)

// TestBroadcast lets two links of a host hear each other and themselves over the
// broadcast address of the loopback network.
func TestBroadcast(t *testing.T) {
	probe, err := net.ListenUDP("udp4", &net.UDPAddr{})
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.255.255.255", strconv.Itoa(probe.LocalAddr().(*net.UDPAddr).Port))
	probe.Close()
	heard := make(chan string, 10)
	open := func(name string) udp.Link {
		l, err := udp.Broadcast(address, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		if _, err := l.Subscribe("", nil, func(m *transport.Message) { heard <- name + " " + string(m.Payload) }); err != nil {
			t.Fatal(err)
		}
		return l
	}
	a, b := open("a"), open("b")
	for _, l := range []udp.Link{a, b} {
		if _, err := l.Publish("", []byte("hello")); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]int{}
	for range 4 {
		got[<-heard]++
	}
	if got["a hello"] != 2 || got["b hello"] != 2 {
		t.Errorf("heard %v", got)
	}
	if s := a.Stats(); s.Sent != 1 || s.Received != 2 {
		t.Errorf("%v", s)
	}
	for _, bad := range []string{"239.255.0.1:4150", "[ff02::1]:4150", "0.0.0.0:1", "127.255.255.255:0", "nonsense"} {
		if _, err := udp.Broadcast(bad, nil); !errors.Is(err, transport.ErrSettings) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
