// Package inproc is a link within one process: what is published on one Event of
// a [Network] reaches the subscriptions of all of them, its own too, in order.
// Topics are told apart, and messages carry session and sequence.
//
//	network := inproc.New()
//	a, err := network.Open(nil)
//	b, err := network.Open(nil)
package inproc

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

// MaxPayload is the longest payload, in bytes.
const MaxPayload = 64 << 20

// Network connects the Events that it opens. It may be used by many goroutines.
type Network struct {
	mu       sync.RWMutex
	links    []*link
	opened   int
	controls map[string]*control // by name
	changed  chan struct{}       // closed when a subscription comes
}

// New returns a network without Events.
func New() *Network { return &Network{changed: make(chan struct{})} }

type link struct {
	hub      hub.Hub
	network  *Network
	settings transport.Settings
	max      int
	source   string
	session  uint64
	sequence atomic.Uint64
	start    time.Time
	closed   atomic.Bool
}

// Open returns an Event of the network. Of the settings, which may be nil, it
// uses the Sealer, NoSending and NoReceiving.
func (n *Network) Open(s *transport.Settings) (transport.Event, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	l := &link{network: n, settings: s.WithDefaults(), max: MaxPayload, session: rand.Uint64() | 1, start: time.Now()}
	if l.settings.Sealer != nil {
		l.max -= l.settings.Sealer.Overhead()
	}
	n.mu.Lock()
	n.opened++
	l.source = fmt.Sprint("inproc:", n.opened)
	n.links = append(n.links, l)
	n.mu.Unlock()
	return l, nil
}

func (l *link) Publish(topic string, payload []byte) (uint64, error) {
	if len(payload) > l.max {
		return 0, fmt.Errorf("%d bytes, at most %d are allowed: %w", len(payload), l.max, transport.ErrTooLarge)
	}
	if l.closed.Load() {
		return 0, transport.ErrClosed
	}
	if err := hub.CheckPublish(topic); err != nil {
		return 0, err
	}
	sequence := l.sequence.Add(1)
	if l.settings.NoSending {
		l.hub.Drop(transport.DropNoSending, 1)
		return sequence, nil
	}
	datagram := payload
	if s := l.settings.Sealer; s != nil {
		var err error
		if datagram, err = hub.Seal(s, nil, payload); err != nil {
			l.hub.Drop(transport.DropSeal, 1)
			return sequence, nil
		}
	}
	l.hub.Sent(len(datagram))
	n := l.network
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, to := range n.links {
		to.arrive(l, topic, datagram, sequence)
	}
	return sequence, nil
}

// arrive is a datagram of another link, or of this one.
func (l *link) arrive(from *link, topic string, datagram []byte, sequence uint64) {
	if l.settings.NoReceiving {
		return
	}
	l.hub.Received(len(datagram))
	b := l.hub.Get(len(datagram))
	m := &b.Message
	if s := l.settings.Sealer; s != nil {
		opened, err := hub.Open(s, b.Data()[:0], datagram)
		if err != nil {
			l.hub.Refused(from.source, err)
			b.Release()
			return
		}
		m.Payload, m.Sealed = opened, true
	} else {
		m.Payload = b.Data()[:copy(b.Data(), datagram)]
	}
	m.Topic, m.Source, m.Session, m.Sequence = topic, from.source, from.session, sequence
	m.Arrived = time.Since(l.start)
	l.hub.Dispatch(b, nil)
}

func (l *link) Subscribe(topic string, o *transport.SubscribeOptions, handle func(*transport.Message)) (transport.Subscription, error) {
	if err := hub.CheckSubscribe(topic); err != nil {
		return nil, err
	}
	s, err := l.hub.Subscribe(topic, o, handle)
	if err == nil {
		n := l.network
		n.mu.Lock()
		close(n.changed)
		n.changed = make(chan struct{})
		n.mu.Unlock()
	}
	return s, err
}

func (l *link) Ready(ctx context.Context, topic string, subscribers int) error {
	for {
		l.network.mu.RLock()
		count := 0
		for _, to := range l.network.links {
			count += to.hub.Subscribers(topic)
		}
		changed := l.network.changed
		l.network.mu.RUnlock()
		if count >= subscribers {
			return nil
		}
		if l.closed.Load() {
			return transport.ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d subscribers: %w", count, subscribers, context.Cause(ctx))
		}
	}
}

func (l *link) Topics() bool           { return true }
func (l *link) MaxPayload() int        { return l.max }
func (l *link) Stats() transport.Stats { return l.hub.Stats() }

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
	close(n.changed)
	n.changed = make(chan struct{})
	n.mu.Unlock()
	l.hub.Close()
	return nil
}
