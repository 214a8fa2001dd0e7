package transporttest_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/filter"
	"github.com/madara-go/madara/transport/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ExampleNetwork() {
	network := transporttest.New(1, transporttest.Conditions{Delay: time.Millisecond})
	a, b := network.Open("a"), network.Open("b")
	defer a.Close()
	defer b.Close()
	got := make(chan string)
	b.Subscribe("", nil, func(m *transport.Message) { got <- m.Source + ": " + string(m.Payload) })
	a.Publish("", []byte("hello"))
	fmt.Println(<-got)
	// Output: a: hello
}

// run publishes messages from a to b and returns what arrived.
func run(t *testing.T, seed uint64, c transporttest.Conditions, messages int) []string {
	t.Helper()
	var got []string
	synctest.Test(t, func(t *testing.T) {
		n := transporttest.New(seed, c)
		a, b := n.Open("a"), n.Open("b")
		b.Subscribe("", &transport.SubscribeOptions{Depth: 10_000}, func(m *transport.Message) { got = append(got, string(m.Payload)) })
		for i := range messages {
			a.Publish("", []byte(fmt.Sprint(i)))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Minute)
		a.Close()
		b.Close()
	})
	return got
}

func TestConditions(t *testing.T) {
	const n = 1000
	if got := run(t, 1, transporttest.Conditions{}, n); len(got) != n || got[0] != "0" || got[n-1] != "999" {
		t.Errorf("a good network delivered %d", len(got))
	}
	lossy := transporttest.Conditions{Loss: 0.3}
	got := run(t, 1, lossy, n)
	if len(got) < 650 || len(got) > 750 {
		t.Errorf("with 30 %% loss %d arrived", len(got))
	}
	if again := run(t, 1, lossy, n); strings.Join(again, " ") != strings.Join(got, " ") {
		t.Error("the same seed gave another result")
	}
	if other := run(t, 2, lossy, n); strings.Join(other, " ") == strings.Join(got, " ") {
		t.Error("another seed gave the same result")
	}
	if got := run(t, 1, transporttest.Conditions{Duplicate: 0.5}, n); len(got) < 1400 || len(got) > 1600 {
		t.Errorf("with every other doubled %d arrived", len(got))
	}
	got = run(t, 1, transporttest.Conditions{Delay: time.Millisecond, Jitter: 10 * time.Millisecond}, n)
	swaps := 0
	for i := 1; i < len(got); i++ {
		if len(got[i]) < len(got[i-1]) || len(got[i]) == len(got[i-1]) && got[i] < got[i-1] {
			swaps++
		}
	}
	if len(got) != n || swaps < 100 {
		t.Errorf("with jitter %d arrived, %d overtook", len(got), swaps)
	}
}

func TestSettings(t *testing.T) {
	n := transporttest.New(1, transporttest.Conditions{MaxSize: 1000})
	if _, err := n.OpenWith("bad", &transport.Settings{TTL: -1}); !errors.Is(err, transport.ErrSettings) {
		t.Errorf("got %v", err)
	}
	open := func(name string, s transport.Settings) transport.Event {
		l, err := n.OpenWith(name, &s)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	key := make([]byte, 32)
	sealer := func() transport.Sealer {
		s, err := filter.NewAEAD(1, key)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	sealed, plain := open("sealed", transport.Settings{Sealer: sealer()}), open("plain", transport.Settings{})
	mute, deaf := open("mute", transport.Settings{NoSending: true}), open("deaf", transport.Settings{NoReceiving: true})
	heard, refused := make(chan *transport.Message, 10), make(chan error, 10)
	sealed.Subscribe("", &transport.SubscribeOptions{Refused: func(_ string, err error) { refused <- err }}, func(m *transport.Message) {
		heard <- &transport.Message{Payload: bytes.Clone(m.Payload), Sealed: m.Sealed}
	})
	if max := sealed.MaxPayload(); max != 1000-filter.Overhead {
		t.Errorf("a payload may have %d bytes", max)
	}
	sealed.Publish("", []byte("hello"))
	if m := <-heard; string(m.Payload) != "hello" || !m.Sealed {
		t.Errorf("heard %q, sealed %t", m.Payload, m.Sealed)
	}
	plain.Publish("", []byte("hello"))
	if err := <-refused; !errors.Is(err, transport.ErrUnknownKey) {
		t.Errorf("refused: %v", err)
	}
	mute.Publish("", []byte("hello"))
	if s := sealed.Stats(); s.Received != 2 || s.Drops[transport.DropUnknownKey] != 1 {
		t.Errorf("sealed: %v", s)
	}
	if s := mute.Stats(); s.Sent != 0 || s.Drops[transport.DropNoSending] != 1 {
		t.Errorf("mute: %v", s)
	}
	if s := deaf.Stats(); s.Received != 0 {
		t.Errorf("deaf: %v", s)
	}
}

func TestPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := transporttest.New(1, transporttest.Conditions{})
		var mu sync.Mutex
		counts := map[string]int{}
		var links []transport.Event
		for _, name := range []string{"a", "b", "c"} {
			l := n.Open(name)
			defer l.Close()
			links = append(links, l)
			l.Subscribe("", nil, func(*transport.Message) {
				mu.Lock()
				counts[name]++
				mu.Unlock()
			})
		}
		all := func(want string) {
			t.Helper()
			mu.Lock()
			clear(counts)
			mu.Unlock()
			for _, l := range links {
				l.Publish("", []byte("x"))
				synctest.Wait()
			}
			mu.Lock()
			defer mu.Unlock()
			if got := fmt.Sprint(counts); got != want {
				t.Errorf("received %s, want %s", got, want)
			}
		}
		all("map[a:3 b:3 c:3]")
		n.Partition([]string{"a", "b"}, []string{"c"})
		all("map[a:2 b:2 c:1]")
		n.Partition([]string{"b"})
		all("map[a:2 b:1 c:2]")
		n.Partition()
		all("map[a:3 b:3 c:3]")
	})
}
