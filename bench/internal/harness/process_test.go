package harness

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

// TestTaken has the run again where a port was taken, and not for ever.
func TestTaken(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, bare := range []bool{false, true} {
		for _, p := range []place{{}, {inside: true}} {
			tries := 0
			_, err := elsewhere(func() (*Run, error) {
				tries++
				var all crew
				defer func() { all.close() }()
				gateway, err := all.add(func(error) {}, p, "gateway", &Assignment{Role: roleServe, Clock: Monotonic, Endpoint: Endpoint{Kind: "tcp", Bare: bare, Address: l.Addr().String(), Payload: 8}})
				if err != nil {
					return nil, err
				}
				return nil, gateway.expect(context.Background(), "ready", patience, nil)
			})
			if !errors.Is(err, errTaken) || !strings.Contains(err.Error(), "gateway: ") || tries != 5 {
				t.Errorf("bare %t, %+v: %v after %d tries", bare, p, err, tries)
			}
		}
	}
	for _, want := range []error{nil, errSlow} {
		tries := 0
		if _, err := elsewhere(func() (*Run, error) {
			if tries++; tries == 1 {
				return nil, errTaken
			}
			return nil, want
		}); err != want || tries != 2 {
			t.Errorf("%v after %d tries", err, tries)
		}
	}
}

// TestSilentPeer is not waited for longer than it may take.
func TestSilentPeer(t *testing.T) {
	p, err := startProcess(place{inside: true}, "peer", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if err := p.expect(context.Background(), "ready", 10*time.Millisecond, nil); !errors.Is(err, errSlow) {
		t.Errorf("%v", err)
	}
}
