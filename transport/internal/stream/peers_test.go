package stream

import (
	"context"
	"io"
	"net"
	"testing"
)

// TestDialEndsTwice lets a connection end at the same time as the time for it.
func TestDialEndsTwice(t *testing.T) {
	for range 2000 {
		ours, theirs := net.Pipe()
		network := *anybody
		network.Dial = func(context.Context, string) (net.Conn, error) { return ours, nil }
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			io.ReadFull(theirs, make([]byte, helloSize))
			go cancel()
			theirs.Close()
		}()
		if conn, _, _, err := dial(ctx, &network, "", hello{session: 1}, magicEvent); err == nil || conn != nil {
			t.Fatalf("%v, %v", conn, err)
		}
	}
}
