//go:build unix

package transport_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/inproc"
	"github.com/madara-go/madara/transport/tcp"
	"github.com/madara-go/madara/transport/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// pair opens two Events of a kind of link that hear each other.
type pair struct {
	name string
	open func(t testing.TB, s transport.Settings) (a, b transport.Event)
}

func pairs() []pair {
	return []pair{
		{"inproc", func(t testing.TB, s transport.Settings) (a, b transport.Event) {
			n := inproc.New()
			return must(n.Open(&s)), must(n.Open(&s))
		}},
		{"unix", func(t testing.TB, s transport.Settings) (a, b transport.Event) {
			path := filepath.Join(t.TempDir(), "s")
			return must(unix.NewEvent(path, nil, &unix.Settings{Settings: s})), must(unix.NewEvent("", []string{path}, &unix.Settings{Settings: s}))
		}},
		{"tcp", func(t testing.TB, s transport.Settings) (a, b transport.Event) {
			l := must(tcp.NewEvent("127.0.0.1:0", nil, &tcp.Settings{Settings: s}))
			return l, must(tcp.NewEvent("", []string{l.LocalAddr().String()}, &tcp.Settings{Settings: s}))
		}},
		{"tls", func(t testing.TB, s transport.Settings) (a, b transport.Event) {
			config := certificates(t)
			l := must(tcp.NewEvent("127.0.0.1:0", nil, &tcp.Settings{Settings: s, TLS: config}))
			return l, must(tcp.NewEvent("", []string{l.LocalAddr().String()}, &tcp.Settings{Settings: s, TLS: config}))
		}},
	}
}

// eachPair runs a test for every kind of link, in both directions.
func eachPair(t *testing.T, s transport.Settings, test func(t *testing.T, from, to transport.Event)) {
	for _, p := range pairs() {
		for _, back := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/back=%t", p.name, back), func(t *testing.T) {
				a, b := p.open(t, s)
				t.Cleanup(func() { a.Close(); b.Close() })
				if back {
					a, b = b, a
				}
				test(t, a, b)
			})
		}
	}
}

func subscribe(t testing.TB, e transport.Event, topic string, o *transport.SubscribeOptions, handle func(*transport.Message)) transport.Subscription {
	t.Helper()
	s, err := e.Subscribe(topic, o, handle)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEventDelivers(t *testing.T) {
	eachPair(t, transport.Settings{}, func(t *testing.T, from, to transport.Event) {
		if !from.Topics() {
			t.Fatal("no topics")
		}
		type got struct {
			topic    string
			size     int
			sequence uint64
			session  uint64
		}
		arrived := make(chan got, 100)
		handle := func(m *transport.Message) {
			for i, b := range m.Payload {
				if b != byte(i) {
					t.Errorf("byte %d of %d is %d", i, len(m.Payload), b)
					break
				}
			}
			if m.Source == "" {
				t.Error("no source")
			}
			arrived <- got{m.Topic, len(m.Payload), m.Sequence, m.Session}
		}
		subscribe(t, to, "pose", nil, handle)
		subscribe(t, to, "arm/*/angle", nil, handle)
		for topic, n := range map[string]int{"pose": 1, "arm/left/angle": 1, "": 0} {
			if err := from.Ready(deadline(t), topic, n); err != nil {
				t.Fatal(err)
			}
		}
		payload := make([]byte, 3<<20)
		for i := range payload {
			payload[i] = byte(i)
		}
		var session uint64
		for i, c := range []struct {
			topic string
			size  int
			heard bool
		}{
			{"pose", 0, true}, {"pose", 1, true}, {"other", 5, false}, {"arm/left/angle", 64, true}, {"arm/left/speed", 64, false},
			{"pose", 70_000, true}, {"", 5, false}, {"pose", 3 << 20, true}, {"arm//angle", 9, true},
		} {
			sequence, err := from.Publish(c.topic, payload[:c.size])
			if err != nil || sequence != uint64(i+1) {
				t.Fatalf("publish %d: sequence %d, %v", i, sequence, err)
			}
			if !c.heard {
				continue
			}
			select {
			case g := <-arrived:
				if session == 0 {
					session = g.session
				}
				if want := (got{c.topic, c.size, sequence, session}); g != want || session == 0 {
					t.Fatalf("got %+v, want %+v", g, want)
				}
			case <-deadline(t).Done():
				t.Fatalf("message %d did not arrive: %v, %v", i, from.Stats(), to.Stats())
			}
		}
		if s := to.Stats(); s.Gaps+s.Reordered+s.Duplicates+s.Dropped() != 0 {
			t.Errorf("lost something: %v", s)
		}
	})
}

func TestEventHearsItself(t *testing.T) {
	eachPair(t, transport.Settings{}, func(t *testing.T, from, to transport.Event) {
		heard := make(chan string, 10)
		subscribe(t, from, "x*", nil, func(m *transport.Message) { heard <- string(m.Payload) })
		from.Publish("xy", []byte("self"))
		if got := <-heard; got != "self" {
			t.Errorf("heard %q", got)
		}
	})
}

func TestEventRefuses(t *testing.T) {
	eachPair(t, transport.Settings{}, func(t *testing.T, from, to transport.Event) {
		if _, err := from.Publish("", make([]byte, from.MaxPayload()+1)); !errors.Is(err, transport.ErrTooLarge) {
			t.Errorf("too large: %v", err)
		}
		long := string(make([]byte, 256))
		for _, topic := range []string{"a*", long} {
			if _, err := from.Publish(topic, nil); !errors.Is(err, transport.ErrTopic) {
				t.Errorf("topic %.10q: %v", topic, err)
			}
		}
		if _, err := from.Subscribe(long, nil, nil); !errors.Is(err, transport.ErrTopic) {
			t.Errorf("subscribing to a long topic: %v", err)
		}
		if _, err := from.Subscribe("", &transport.SubscribeOptions{Depth: -1}, nil); !errors.Is(err, transport.ErrSettings) {
			t.Errorf("depth: %v", err)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(io.ErrNoProgress)
		if err := from.Ready(ctx, "nobody", 1); !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("ready: %v", err)
		}
		from.Close()
		from.Close()
		if _, err := from.Publish("", nil); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
		if _, err := from.Subscribe("", nil, nil); !errors.Is(err, transport.ErrSettings) {
			t.Errorf("no handler: %v", err)
		}
		if _, err := from.Subscribe("", nil, func(*transport.Message) {}); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
		if err := from.Ready(deadline(t), "nobody", 1); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

func TestTooManyTopics(t *testing.T) {
	for _, p := range pairs()[1:3] {
		t.Run(p.name, func(t *testing.T) {
			from, to := p.open(t, transport.Settings{})
			defer from.Close()
			defer to.Close()
			heard := make(chan struct{}, 1)
			handle := func(*transport.Message) { heard <- struct{}{} }
			for i := range 4096 {
				subscribe(t, to, fmt.Sprint("topic ", i), nil, handle)
			}
			if _, err := to.Subscribe("another", nil, handle); !errors.Is(err, transport.ErrTopic) {
				t.Errorf("one topic more: %v", err)
			}
			subscribe(t, to, "topic 4095", nil, func(*transport.Message) {}) // once more
			if err := from.Ready(deadline(t), "topic 4095", 2); err != nil {
				t.Fatal(err)
			}
			from.Publish("topic 4095", nil)
			<-heard
		})
	}
}

func TestSubscriptionEnds(t *testing.T) {
	eachPair(t, transport.Settings{}, func(t *testing.T, from, to transport.Event) {
		a := subscribe(t, to, "t", nil, func(*transport.Message) {})
		b := subscribe(t, to, "t", nil, func(*transport.Message) {})
		if err := from.Ready(deadline(t), "t", 2); err != nil {
			t.Fatal(err)
		}
		a.Close()
		a.Close()
		b.Close()
		eventually(t, "no subscriber is left", func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			defer cancel()
			return from.Ready(ctx, "t", 1) != nil
		})
		sent := from.Stats().Sent
		from.Publish("t", []byte("x"))
		if now := from.Stats().Sent; now != sent && from.Stats().Peers > 0 {
			t.Errorf("%d messages were sent to nobody", now-sent)
		}
	})
}

func TestSlowHandlerLosesOnlyItsOwn(t *testing.T) {
	eachPair(t, transport.Settings{}, func(t *testing.T, from, to transport.Event) {
		block := make(chan struct{})
		defer close(block)
		entered := make(chan struct{}, 100)
		slow := subscribe(t, to, "t", &transport.SubscribeOptions{Depth: 8}, func(*transport.Message) { entered <- struct{}{}; <-block })
		var mu sync.Mutex
		var got []uint64
		fast := subscribe(t, to, "t", &transport.SubscribeOptions{Depth: 1000}, func(m *transport.Message) {
			mu.Lock()
			got = append(got, m.Sequence)
			mu.Unlock()
		})
		if err := from.Ready(deadline(t), "t", 2); err != nil {
			t.Fatal(err)
		}
		from.Publish("t", []byte("x"))
		<-entered
		for range 99 {
			from.Publish("t", []byte("x"))
		}
		eventually(t, "the fast handler has all", func() bool { return fast.Stats().Delivered == 100 })
		mu.Lock()
		if !slices.IsSorted(got) {
			t.Error("out of order")
		}
		mu.Unlock()
		eventually(t, "the slow handler lost 91", func() bool { return slow.Stats().Dropped == 91 })
		if n := to.Stats().Drops[transport.DropInbox]; n != 91 {
			t.Errorf("%d counted at the inbox", n)
		}
	})
}

func TestBlockedHandlerHoldsNobodyUp(t *testing.T) {
	eachPair(t, transport.Settings{}, func(t *testing.T, from, to transport.Event) {
		block := make(chan struct{})
		var running, together atomic.Int64
		entered := make(chan struct{}, 100)
		blocked := subscribe(t, to, "blocked", nil, func(*transport.Message) {
			if running.Add(1) > 1 {
				together.Add(1)
			}
			entered <- struct{}{}
			<-block
			running.Add(-1)
		})
		heard := make(chan uint64, 100)
		subscribe(t, to, "free", nil, func(m *transport.Message) { heard <- m.Sequence })
		for _, topic := range []string{"blocked", "free"} {
			if err := from.Ready(deadline(t), topic, 1); err != nil {
				t.Fatal(err)
			}
		}
		from.Publish("blocked", nil)
		<-entered
		for range 3 { // what comes later waits in the ring
			from.Publish("blocked", nil)
		}
		for range 5 {
			sequence, _ := from.Publish("free", nil)
			select {
			case got := <-heard:
				if got != sequence {
					t.Fatalf("heard %d, published %d", got, sequence)
				}
			case <-time.After(patience):
				t.Fatal("a blocked handler holds up another subscription")
			}
		}
		close(block)
		eventually(t, "the blocked handler gets the rest", func() bool { return blocked.Stats().Delivered == 4 })
		if together.Load() > 0 {
			t.Error("the handler ran twice at the same time")
		}
	})
}

// TestHandlerOrder lets a handler be quick and slow in turns, so that messages
// reach it in both ways.
func TestHandlerOrder(t *testing.T) {
	eachPair(t, transport.Settings{}, func(t *testing.T, from, to transport.Event) {
		var last, running atomic.Uint64
		s := subscribe(t, to, "t", &transport.SubscribeOptions{Depth: 4096}, func(m *transport.Message) {
			if running.Add(1) != 1 {
				t.Error("the handler ran twice at the same time")
			}
			if before := last.Swap(m.Sequence); m.Sequence != before+1 {
				t.Errorf("%d came after %d", m.Sequence, before)
			}
			if m.Sequence%250 == 0 {
				time.Sleep(time.Duration(m.Sequence/250) * 10 * time.Millisecond)
			}
			running.Add(^uint64(0))
		})
		if err := from.Ready(deadline(t), "t", 1); err != nil {
			t.Fatal(err)
		}
		for i := range 2000 {
			from.Publish("t", nil)
			if i%100 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		eventually(t, "all are delivered", func() bool { return s.Stats().Delivered == 2000 })
	})
}

func TestHandlerEndsItsGoroutine(t *testing.T) {
	eachPair(t, transport.Settings{}, func(t *testing.T, from, to transport.Event) {
		var got atomic.Int64
		subscribe(t, to, "t", nil, func(*transport.Message) {
			if got.Add(1)%2 == 1 {
				runtime.Goexit()
			}
		})
		if err := from.Ready(deadline(t), "t", 1); err != nil {
			t.Fatal(err)
		}
		var peers int
		for i := range int64(10) {
			from.Publish("t", nil)
			eventually(t, "the handler runs again", func() bool { return got.Load() == i+1 })
			if i == 0 {
				peers = to.Stats().Peers
			}
		}
		if now := to.Stats().Peers; now != peers {
			t.Errorf("%d peers, %d before", now, peers)
		}
	})
}

func TestCloseWaitsForTheHandler(t *testing.T) {
	eachPair(t, transport.Settings{}, func(t *testing.T, from, to transport.Event) {
		for _, event := range []bool{false, true} {
			entered, block := make(chan struct{}), make(chan struct{})
			var left atomic.Bool
			s := subscribe(t, to, "t", nil, func(*transport.Message) {
				close(entered)
				<-block
				left.Store(true)
			})
			if err := from.Ready(deadline(t), "t", 1); err != nil {
				t.Fatal(err)
			}
			from.Publish("t", nil)
			<-entered
			time.AfterFunc(30*time.Millisecond, func() { close(block) })
			if event {
				to.Close()
			} else {
				s.Close()
			}
			if !left.Load() {
				t.Errorf("Close returned while the handler ran, of the Event: %t", event)
			}
		}
	})
}

func TestPublishDoesNotWaitForAStalledPeer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	e := must(unix.NewEvent(path, nil, nil))
	defer e.Close()
	conn := must(net.Dial("unix", path))
	defer conn.Close()
	hello := append([]byte("MADARA-E"), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7)
	conn.Write(hello)
	conn.Write([]byte{0, 0, 0, 2, 1, 't'}) // subscribes, and reads nothing
	if err := e.Ready(deadline(t), "t", 1); err != nil {
		t.Fatal(err)
	}
	heard := make(chan bool, 10_000)
	subscribe(t, e, "t", &transport.SubscribeOptions{Depth: 10_000}, func(*transport.Message) { heard <- true })
	const size = 64 << 10
	for i := range 200 {
		if _, err := e.Publish("t", make([]byte, size)); err != nil {
			t.Fatal(i, err)
		}
	}
	for range 200 {
		<-heard
	}
	s := e.Stats()
	if s.Drops[transport.DropSendBuffer] == 0 || s.Sent+s.Drops[transport.DropSendBuffer] != 200 {
		t.Errorf("sent and dropped: %v", s)
	}
	// What was not dropped arrives whole once it reads.
	count := uint64(0)
	frame := make([]byte, 4)
	io.ReadFull(conn, make([]byte, len(hello)))
	io.ReadFull(conn, make([]byte, 6)) // the subscription above
	for count < s.Sent {
		if _, err := io.ReadFull(conn, frame); err != nil {
			t.Fatal(count, err)
		}
		n := binary.BigEndian.Uint32(frame)
		if n != 1+8+8+1+1+size {
			t.Fatalf("a frame of %d bytes", n)
		}
		if _, err := io.CopyN(io.Discard, conn, int64(n)); err != nil {
			t.Fatal(err)
		}
		count++
	}
}

func TestEventReconnectsAndCountsGaps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	b := must(unix.NewEvent("", []string{path}, nil))
	defer b.Close()
	heard := make(chan uint64, 100)
	subscribe(t, b, "t", nil, func(m *transport.Message) { heard <- m.Sequence })
	for range 3 {
		a := must(unix.NewEvent(path, nil, nil))
		if err := a.Ready(deadline(t), "t", 1); err != nil {
			t.Fatal(err)
		}
		a.Publish("t", []byte("x"))
		if s := <-heard; s != 1 {
			t.Errorf("sequence %d", s)
		}
		a.Close()
	}
	if s := b.Stats(); s.Gaps != 0 || s.Drops[transport.DropFrame] != 0 {
		t.Errorf("%v", s)
	}
}

func TestTwoConnectionsDeliverOnce(t *testing.T) {
	dir := t.TempDir()
	pa, pb := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	a := must(unix.NewEvent(pa, []string{pb, pb}, nil))
	defer a.Close()
	b := must(unix.NewEvent(pb, []string{pa}, nil))
	defer b.Close()
	eventually(t, "three connections", func() bool { return a.Stats().Peers == 3 && b.Stats().Peers == 3 })
	heard := make(chan uint64, 100)
	subscribe(t, b, "t", nil, func(m *transport.Message) { heard <- m.Sequence })
	if err := a.Ready(deadline(t), "t", 1); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		a.Publish("t", []byte("x"))
	}
	for want := uint64(1); want <= 50; want++ {
		if got := <-heard; got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	}
	if s := b.Stats(); s.Received != 50 || s.Duplicates != 0 {
		t.Errorf("%v", s)
	}
}

// sealer turns every byte round, and refuses what does not end with its mark.
type sealer byte

func (s sealer) Overhead() int { return 1 }
func (s sealer) Seal(dst, d []byte) ([]byte, error) {
	for _, b := range d {
		dst = append(dst, ^b)
	}
	return append(dst, byte(s)), nil
}
func (s sealer) Open(dst, d []byte) ([]byte, error) {
	if len(d) == 0 || d[len(d)-1] != byte(s) {
		return nil, errors.New("not sealed")
	}
	for _, b := range d[:len(d)-1] {
		dst = append(dst, ^b)
	}
	return dst, nil
}

func TestEventSeals(t *testing.T) {
	eachPair(t, transport.Settings{Sealer: sealer(7)}, func(t *testing.T, from, to transport.Event) {
		heard := make(chan *transport.Message, 1)
		subscribe(t, to, "t", nil, func(m *transport.Message) {
			c := *m
			c.Payload = bytes.Clone(m.Payload)
			heard <- &c
		})
		from.Ready(deadline(t), "t", 1)
		from.Publish("t", []byte("secret"))
		if m := <-heard; !m.Sealed || string(m.Payload) != "secret" {
			t.Errorf("%+v", m)
		}
		if _, err := from.Publish("t", make([]byte, from.MaxPayload()+1)); !errors.Is(err, transport.ErrTooLarge) {
			t.Error(err)
		}
	})
}

// TestEventGarbage sends what is no frame: the connection is closed and counted,
// and others go on.
func TestEventGarbage(t *testing.T) {
	good := append([]byte("MADARA-E"), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7)
	with := func(more ...byte) []byte { return append(bytes.Clone(good), more...) }
	for name, bytes := range map[string][]byte{
		"http":             []byte("GET / HTTP/1.1\r\nHost: robot\r\n\r\n"),
		"another surface":  append([]byte("MADARA-C"), good[8:]...),
		"version":          append([]byte("MADARA-E\x02"), good[9:]...),
		"session 0":        append(good[:len(good)-1:len(good)-1], 0),
		"huge frame":       with(255, 255, 255, 255, 3),
		"frame of nothing": with(0, 0, 0, 0, 0),
		"kind":             with(0, 0, 0, 1, 99),
		"long topic":       with(0, 0, 2, 0, 1),
		"short message":    with(0, 0, 0, 2, 3, 0),
		"topic beyond":     with(append([]byte{0, 0, 0, 18, 3}, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 200)...),
		"sequence 0":       with(append([]byte{0, 0, 0, 18, 3}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)...),
		"not subscribed":   with(0, 0, 0, 2, 2, 't'),
	} {
		t.Run(name, func(t *testing.T) {
			e := must(tcp.NewEvent("127.0.0.1:0", nil, nil))
			defer e.Close()
			conn := must(net.Dial("tcp", e.LocalAddr().String()))
			defer conn.Close()
			conn.Write(bytes)
			conn.SetReadDeadline(time.Now().Add(patience))
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, context.DeadlineExceeded) {
				t.Error("the connection was not closed")
			}
			eventually(t, "it is counted", func() bool { return e.Stats().Drops[transport.DropFrame] == 1 })
		})
	}
}

func TestEventAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's pools forget")
	}
	for _, p := range pairs()[:3] {
		t.Run(p.name, func(t *testing.T) {
			a, b := p.open(t, transport.Settings{})
			defer a.Close()
			defer b.Close()
			heard := make(chan struct{}, 1)
			subscribe(t, b, "t", nil, func(*transport.Message) { heard <- struct{}{} })
			if err := a.Ready(deadline(t), "t", 1); err != nil {
				t.Fatal(err)
			}
			payload := make([]byte, 64)
			if n := testing.AllocsPerRun(1000, func() { a.Publish("t", payload); <-heard }); n > 0 {
				t.Errorf("%v allocations to publish, receive and dispatch", n)
			}
		})
	}
}

func TestOwnPeersOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	asked := make(chan unix.Credentials, 10)
	e := must(unix.NewEvent(path, nil, &unix.Settings{Allow: func(c unix.Credentials) bool { asked <- c; return false }}))
	defer e.Close()
	b := must(unix.NewEvent("", []string{path}, nil))
	defer b.Close()
	c := <-asked
	if c.PID == 0 {
		t.Errorf("credentials %+v", c)
	}
	eventually(t, "it is counted", func() bool { return e.Stats().Drops[transport.DropPeer] > 0 })
	if e.Stats().Peers != 0 {
		t.Error("let in")
	}
}

func TestAddresses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s")
	first := must(unix.NewEvent(file, nil, nil))
	for _, err := range []error{
		second(tcp.NewEvent("10.1.2.3:4", nil, nil)),
		second(tcp.NewEvent(":4", nil, nil)),
		second(tcp.NewEvent("", []string{"example.org:4"}, nil)),
		second(tcp.NewEvent("nonsense", nil, nil)),
		second(unix.NewEvent("", []string{""}, nil)),
		second(unix.NewEvent(string(make([]byte, 200)), nil, nil)),
	} {
		if !errors.Is(err, transport.ErrSettings) {
			t.Errorf("got %v", err)
		}
	}
	if err := second(unix.NewEvent(file, nil, nil)); err == nil {
		t.Error("two Events at one path")
	}
	first.Close()
	// A socket that a dead process left behind is replaced.
	l := must(net.Listen("unix", file))
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	again, err := unix.NewEvent(file, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

func second[T any](_ T, err error) error { return err }
