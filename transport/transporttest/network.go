// Package transporttest is a network for tests that loses, delays, doubles and
// reorders messages as it is told, from a seed, and can be cut into parts. It
// works under testing/synctest, where delays take no time.
//
//	network := transporttest.New(1, transporttest.Conditions{Loss: 0.3, Delay: 2 * time.Millisecond})
//	a, b := network.Open("a"), network.Open("b")
package transporttest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/internal/hub"
)

// Conditions is what a network does to messages. The zero value delivers each
// once, in order, at once. Probabilities are 0 to 1 and are drawn for each
// message and receiver.
type Conditions struct {
	Loss      float64
	Duplicate float64
	Delay     time.Duration // of each message
	Jitter    time.Duration // at most so much more, drawn anew: messages overtake each other
	MaxSize   int           // bytes of a message; 0 is 65,507, as on UDP
}

// Network connects the Events that it opens. What one publishes, all get that
// are in the same part of the network, itself too; its own messages are neither
// lost nor delayed. It may be used by many goroutines.
type Network struct {
	mu         sync.Mutex
	random     *rand.Rand
	conditions Conditions
	links      []*link
	part       map[string]int // by name; absent is 0
	start      time.Time
}

// New returns a network. The same seed gives the same draws for the same
// messages in the same order.
func New(seed uint64, c Conditions) *Network {
	return &Network{random: rand.New(rand.NewPCG(seed, seed)), conditions: c, start: time.Now()}
}

// Set changes the conditions for messages published from now on.
func (n *Network) Set(c Conditions) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conditions = c
}

// Partition cuts the network: Events whose names are in different groups do not
// hear each other. Names in no group make up one more. Messages that are under
// way arrive. Without groups the network is whole again.
func (n *Network) Partition(groups ...[]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.part = map[string]int{}
	for i, group := range groups {
		for _, name := range group {
			n.part[name] = i + 1
		}
	}
}

// Open returns an Event, which messages name as their Source.
func (n *Network) Open(name string) transport.Event {
	l, _ := n.OpenWith(name, nil) // the defaults are in their ranges
	return l
}

// OpenWith is Open with settings, of which Sealer, NoSending and
// NoReceiving count here. s may be nil.
func (n *Network) OpenWith(name string, s *transport.Settings) (transport.Event, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	l := &link{network: n, name: name, settings: s.WithDefaults()}
	n.mu.Lock()
	n.links = append(n.links, l)
	n.mu.Unlock()
	return l, nil
}

type link struct {
	hub      hub.Hub
	network  *Network
	name     string
	settings transport.Settings
	closed   atomic.Bool

	mu     sync.Mutex
	timers map[*time.Timer]bool // of messages under way to this link
	flying sync.WaitGroup
}

func (l *link) MaxPayload() int {
	l.network.mu.Lock()
	limit := l.network.conditions.MaxSize
	l.network.mu.Unlock()
	if limit == 0 {
		limit = transport.MaxDatagramSize
	}
	if s := l.settings.Sealer; s != nil {
		limit -= s.Overhead()
	}
	return limit
}

func (l *link) Publish(topic string, payload []byte) (uint64, error) {
	switch limit := l.MaxPayload(); {
	case topic != "":
		return 0, fmt.Errorf("topic %q on a network without topics: %w", topic, transport.ErrTopic)
	case len(payload) > limit:
		return 0, fmt.Errorf("%d bytes, at most %d are allowed: %w", len(payload), limit, transport.ErrTooLarge)
	case l.closed.Load():
		return 0, transport.ErrClosed
	case l.settings.NoSending:
		l.hub.Drop(transport.DropNoSending, 1)
		return 0, nil
	}
	if s := l.settings.Sealer; s != nil {
		var err error
		if payload, err = hub.Seal(s, nil, payload); err != nil {
			l.hub.Drop(transport.DropSeal, 1)
			return 0, nil
		}
	} else {
		payload = append([]byte(nil), payload...)
	}
	l.hub.Sent(len(payload))
	type delivery struct {
		to    *link
		delay time.Duration
	}
	var deliveries []delivery
	n := l.network
	n.mu.Lock()
	for _, to := range n.links {
		if to == l {
			deliveries = append(deliveries, delivery{to: to})
			continue
		}
		if n.part[to.name] != n.part[l.name] {
			continue
		}
		c := n.conditions
		copies := 1
		if n.random.Float64() < c.Duplicate {
			copies = 2
		}
		for range copies {
			lost := n.random.Float64() < c.Loss
			delay := c.Delay
			if c.Jitter > 0 {
				delay += time.Duration(n.random.Int64N(int64(c.Jitter) + 1))
			}
			if !lost {
				deliveries = append(deliveries, delivery{to, delay})
			}
		}
	}
	n.mu.Unlock()
	for _, d := range deliveries {
		if d.delay == 0 {
			d.to.arrive(l.name, payload)
		} else {
			d.to.arriveLater(l.name, payload, d.delay)
		}
	}
	return 0, nil
}

func (l *link) arriveLater(from string, payload []byte, delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Load() {
		return
	}
	if l.timers == nil {
		l.timers = map[*time.Timer]bool{}
	}
	l.flying.Add(1)
	var t *time.Timer
	t = time.AfterFunc(delay, func() {
		defer l.flying.Done()
		l.mu.Lock()
		delete(l.timers, t)
		l.mu.Unlock()
		l.arrive(from, payload)
	})
	l.timers[t] = true
}

func (l *link) arrive(from string, payload []byte) {
	if l.closed.Load() || l.settings.NoReceiving {
		return
	}
	l.hub.Received(len(payload))
	b := l.hub.Get(len(payload))
	if s := l.settings.Sealer; s != nil {
		opened, err := hub.Open(s, b.Data()[:0], payload)
		if err != nil {
			l.hub.Refused(from, err)
			b.Release()
			return
		}
		b.Message.Payload, b.Message.Sealed = opened, true
	} else {
		b.Message.Payload = b.Data()[:copy(b.Data(), payload)]
	}
	b.Message.Source = from
	b.Message.Arrived = time.Since(l.network.start)
	l.hub.Dispatch(b, nil)
}

func (l *link) Subscribe(topic string, o *transport.SubscribeOptions, handle func(*transport.Message)) (transport.Subscription, error) {
	if topic != "" {
		return nil, fmt.Errorf("topic %q on a network without topics: %w", topic, transport.ErrTopic)
	}
	return l.hub.Subscribe(topic, o, handle)
}

func (l *link) Ready(context.Context, string, int) error { return nil }
func (l *link) Topics() bool                             { return false }
func (l *link) Stats() transport.Stats                   { return l.hub.Stats() }

func (l *link) Close() error {
	l.hub.Inside("Event.Close")
	l.closed.Store(true)
	n := l.network
	n.mu.Lock()
	for i, x := range n.links {
		if x == l {
			n.links = append(n.links[:i:i], n.links[i+1:]...)
			break
		}
	}
	n.mu.Unlock()
	l.mu.Lock()
	for t := range l.timers {
		if t.Stop() {
			l.flying.Done()
		}
		delete(l.timers, t)
	}
	l.mu.Unlock()
	l.flying.Wait()
	l.hub.Close()
	return nil
}
