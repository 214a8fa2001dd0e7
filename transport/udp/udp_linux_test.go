package udp_test

import (
	"testing"
	"time"

	"github.com/madara-go/madara/transport"
)

// TestKernelDrops fills the socket's queue while nobody reads it fast enough.
func TestKernelDrops(t *testing.T) {
	b := unicast(t, "127.0.0.1:0", nil, nil)
	a := unicast(t, "127.0.0.1:0", []string{b.LocalAddr().String()}, nil)
	got := make(chan bool)
	b.Subscribe("", &transport.SubscribeOptions{Depth: 4}, func(*transport.Message) { <-got })
	const sent = 20_000
	payload := make([]byte, 1000)
	for range sent {
		a.Publish("", payload)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		a.Publish("", payload) // the count of lost ones comes with a datagram
		s := b.Stats()
		if s.Received+s.Drops[transport.DropKernel] >= a.Stats().Sent-1 && s.Drops[transport.DropInbox] > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("sent %v, received %v", a.Stats(), s)
		}
		time.Sleep(time.Millisecond)
	}
	close(got)
}
