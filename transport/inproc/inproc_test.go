package inproc_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/inproc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, n *inproc.Network, s *transport.Settings) transport.Event {
	t.Helper()
	e, err := n.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func Example() {
	network := inproc.New()
	a, _ := network.Open(nil)
	b, _ := network.Open(nil)
	defer a.Close()
	defer b.Close()
	got := make(chan string)
	b.Subscribe("pose", nil, func(m *transport.Message) { got <- fmt.Sprintf("%s %s %d", m.Source, m.Payload, m.Sequence) })
	a.Publish("pose", []byte("1, 2"))
	fmt.Println(<-got)
	// Output: inproc:1 1, 2 1
}

func TestOrderAndPolicies(t *testing.T) {
	n := inproc.New()
	a, b := open(t, n, nil), open(t, n, nil)
	for _, c := range []struct {
		options *transport.SubscribeOptions
		first   byte // of the messages that a stalled handler gets after its first
		dropped uint64
	}{
		{&transport.SubscribeOptions{Depth: 4}, 6, 5},
		{&transport.SubscribeOptions{Depth: 4, Policy: transport.DropNewest}, 1, 5},
		{&transport.SubscribeOptions{Policy: transport.KeepLast}, 9, 8},
		{nil, 1, 0},
	} {
		entered, leave := make(chan bool), make(chan bool)
		var got []byte
		var done sync.WaitGroup
		s, err := b.Subscribe("t", c.options, func(m *transport.Message) {
			got = append(got, m.Payload[0])
			if len(got) == 1 {
				entered <- true
				<-leave
			}
			if m.Payload[0] == 9 || len(got) == 5 {
				defer done.Done()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		done.Add(1)
		a.Publish("t", []byte{0})
		<-entered
		for i := byte(1); i < 10; i++ {
			a.Publish("t", []byte{i})
			a.Publish("other", []byte{100})
		}
		if c.options == nil {
			done.Add(1)
		}
		leave <- true
		done.Wait()
		s.Close()
		if got[0] != 0 || got[1] != c.first {
			t.Errorf("%+v: got %v", c.options, got)
		}
		for i := 2; i < len(got); i++ {
			if got[i] != got[i-1]+1 {
				t.Errorf("%+v: got %v", c.options, got)
			}
		}
		if st := s.Stats(); st.Dropped != c.dropped {
			t.Errorf("%+v: %d dropped, want %d", c.options, st.Dropped, c.dropped)
		}
	}
}

func TestErrors(t *testing.T) {
	n := inproc.New()
	e := open(t, n, nil)
	if _, err := e.Publish("t", make([]byte, inproc.MaxPayload+1)); !errors.Is(err, transport.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	for _, o := range []transport.SubscribeOptions{{Depth: -1}, {Depth: transport.MaxDepth + 1}, {Policy: 3}} {
		if _, err := e.Subscribe("t", &o, func(*transport.Message) {}); !errors.Is(err, transport.ErrSettings) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := n.Open(&transport.Settings{TTL: 256}); !errors.Is(err, transport.ErrSettings) {
		t.Errorf("TTL 256: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Ready(ctx, "t", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Ready: %v", err)
	}
	panics := make(chan any, 2)
	s, _ := e.Subscribe("t", nil, func(*transport.Message) {})
	s.Close()
	var sub transport.Subscription
	ready := make(chan bool)
	sub, _ = e.Subscribe("t", nil, func(*transport.Message) {
		<-ready
		for _, f := range []func() error{func() error { return sub.Close() }, e.Close} {
			func() {
				defer func() { panics <- recover() }()
				f()
			}()
		}
	})
	close(ready)
	e.Publish("t", nil)
	for range 2 {
		if p := <-panics; p == nil {
			t.Error("closing from inside a handler did not panic")
		}
	}
	e.Close()
	e.Close()
	if _, err := e.Publish("t", nil); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("Publish after Close: %v", err)
	}
	if _, err := e.Subscribe("t", nil, func(*transport.Message) {}); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("Subscribe after Close: %v", err)
	}
	if err := e.Ready(t.Context(), "t", 1); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("Ready after Close: %v", err)
	}
}

// TestNothingAfterClose publishes while subscriptions come and go.
func TestNothingAfterClose(t *testing.T) {
	n := inproc.New()
	a, b := open(t, n, nil), open(t, n, nil)
	stop := make(chan bool)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				a.Publish("t", []byte("payload"))
			}
		}
	})
	for range 500 {
		closed := false
		s, err := b.Subscribe("t", &transport.SubscribeOptions{Depth: 2}, func(m *transport.Message) {
			if closed || string(m.Payload) != "payload" {
				t.Errorf("handler ran after Close, or with %q", m.Payload)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		var closers sync.WaitGroup
		closers.Go(func() { s.Close() })
		s.Close()
		closers.Wait()
		closed = true
	}
	close(stop)
	wg.Wait()
}

func TestPublishAllocates(t *testing.T) {
	n := inproc.New()
	a, b := open(t, n, nil), open(t, n, nil)
	got := make(chan bool)
	b.Subscribe("t", nil, func(*transport.Message) { got <- true })
	payload := make([]byte, 64)
	most := 0.1
	if raceEnabled { // the detector lets pools forget
		most = 2
	}
	if avg := testing.AllocsPerRun(1000, func() {
		a.Publish("t", payload)
		<-got
	}); avg > most {
		t.Errorf("%v allocations a message", avg)
	}
}
