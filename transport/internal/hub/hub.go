// Package hub is what the links of package transport have in common: counters,
// and the fan-out of messages to subscriptions.
package hub

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/petermattis/goid"

	"github.com/madara-go/madara/transport"
)

// Counters count for a link. They may be used by many goroutines.
type Counters struct {
	sent, sentBytes, received, receivedBytes atomic.Uint64
	drops                                    [transport.Drops]atomic.Uint64

	Gaps, Reordered, Duplicates atomic.Uint64 // messages, where they carry sequences
	Calls, Served               atomic.Uint64
	Peers, Pending              atomic.Int64
}

// Sent counts a datagram that left.
func (c *Counters) Sent(bytes int) {
	c.sent.Add(1)
	c.sentBytes.Add(uint64(bytes))
}

// Received counts a datagram that arrived.
func (c *Counters) Received(bytes int) {
	c.received.Add(1)
	c.receivedBytes.Add(uint64(bytes))
}

// Drop counts n drops.
func (c *Counters) Drop(d transport.Drop, n uint64) { c.drops[d].Add(n) }

// Refused counts a datagram that a Sealer did not open, and tells subscriptions
// that want to know.
func (h *Hub) Refused(source string, err error) {
	c := &h.Counters
	switch {
	case errors.Is(err, transport.ErrUnknownKey):
		c.Drop(transport.DropUnknownKey, 1)
	case errors.Is(err, transport.ErrForged):
		c.Drop(transport.DropForged, 1)
	case errors.Is(err, transport.ErrReplayed):
		c.Drop(transport.DropReplayed, 1)
	default:
		c.Drop(transport.DropOpen, 1)
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, s := range h.refused {
		s.refused(source, err)
	}
}

// Seal seals a datagram. A Sealer that panics has failed.
func Seal(s transport.Sealer, dst, datagram []byte) (sealed []byte, err error) {
	defer survive(&err)
	return s.Seal(dst, datagram)
}

// Open opens a datagram. A Sealer that panics has refused it.
func Open(s transport.Sealer, dst, datagram []byte) (opened []byte, err error) {
	defer survive(&err)
	return s.Open(dst, datagram)
}

func survive(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the sealer panicked: %v", r)
	}
}

// Stats returns a copy.
func (c *Counters) Stats() transport.Stats {
	s := transport.Stats{
		Sent: c.sent.Load(), SentBytes: c.sentBytes.Load(),
		Received: c.received.Load(), ReceivedBytes: c.receivedBytes.Load(),
		Gaps: c.Gaps.Load(), Reordered: c.Reordered.Load(), Duplicates: c.Duplicates.Load(),
		Calls: c.Calls.Load(), Served: c.Served.Load(),
		Peers: int(c.Peers.Load()), Pending: int(c.Pending.Load()),
	}
	for i := range c.drops {
		s.Drops[i] = c.drops[i].Load()
	}
	return s
}

// Buffer is a message on its way to subscriptions, shared by all of them.
type Buffer struct {
	transport.Message
	data []byte // what Message.Payload is part of
	refs atomic.Int32
	hub  *Hub
}

// Data returns the buffer's bytes, for whoever fills it before Dispatch.
func (b *Buffer) Data() []byte { return b.data }

// Release gives a buffer back that was not dispatched.
func (b *Buffer) Release() {
	if b.refs.Add(-1) == 0 {
		b.Message = transport.Message{}
		b.hub.pool.Put(b)
	}
}

// Hub hands messages to the subscriptions of their topics.
type Hub struct {
	Counters
	pool sync.Pool

	mu       sync.RWMutex
	topics   map[string][]*subscription // those without * in their topic
	patterns []*subscription
	refused  []*subscription // those that are told of what a Sealer refuses
	closed   bool
}

// Get returns a buffer of at least size bytes.
func (h *Hub) Get(size int) *Buffer {
	b, _ := h.pool.Get().(*Buffer)
	if b == nil {
		b = &Buffer{hub: h}
	}
	if cap(b.data) < size {
		b.data = make([]byte, size)
	}
	b.data = b.data[:cap(b.data)]
	b.refs.Store(1)
	return b
}

// Dispatch hands a filled buffer to the subscriptions of its topic. It takes the
// buffer over. If there is only one subscription, and r is not nil, its handler
// may run here; see Reader.
func (h *Hub) Dispatch(b *Buffer, r *Reader) {
	var first *subscription
	alone := true
	h.mu.RLock()
	for _, s := range h.topics[b.Topic] {
		if first == nil {
			first = s
			continue
		}
		alone = false
		b.refs.Add(1)
		s.put(b)
	}
	for _, s := range h.patterns {
		if !Match(s.topic, b.Topic) {
			continue
		}
		if first == nil {
			first = s
			continue
		}
		alone = false
		b.refs.Add(1)
		s.put(b)
	}
	h.mu.RUnlock()
	switch {
	case first == nil:
		b.Release()
	case !alone || r == nil || !r.handle(first, b):
		first.put(b)
	}
}

// Subscribers returns how many subscriptions a topic has.
func (h *Hub) Subscribers(topic string) int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	n := len(h.topics[topic])
	for _, s := range h.patterns {
		if Match(s.topic, topic) {
			n++
		}
	}
	return n
}

// Topics calls each with the topic of every subscription.
func (h *Hub) Topics(each func(topic string)) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, s := range h.all() {
		each(s.topic)
	}
}

func (h *Hub) all() []*subscription {
	all := append([]*subscription(nil), h.patterns...)
	for _, list := range h.topics {
		all = append(all, list...)
	}
	return all
}

// IsPattern reports whether a topic may stand for several.
func IsPattern(topic string) bool { return strings.IndexByte(topic, '*') >= 0 }

// Match reports whether a pattern, in which each * stands for any text, means a topic.
func Match(pattern, topic string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == topic
	}
	if !strings.HasPrefix(topic, head) {
		return false
	}
	topic = topic[len(head):]
	for {
		part, more, star := strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(topic, part)
		}
		i := strings.Index(topic, part)
		if i < 0 {
			return false
		}
		topic, rest = topic[i+len(part):], more
	}
}

// CheckPublish returns why a link that tells topics apart cannot publish to a
// topic. CheckSubscribe is about subscribing, where patterns are allowed.
func CheckPublish(topic string) error {
	if IsPattern(topic) {
		return fmt.Errorf("publishing to topic %q, in which * stands for any text: %w", topic, transport.ErrTopic)
	}
	return CheckSubscribe(topic)
}

// CheckSubscribe returns why a topic cannot be subscribed to.
func CheckSubscribe(topic string) error {
	if len(topic) > transport.MaxTopic {
		return fmt.Errorf("topic %.40q... has %d bytes, at most %d are allowed: %w", topic, len(topic), transport.MaxTopic, transport.ErrTopic)
	}
	return nil
}

// Subscribe adds a subscription.
func (h *Hub) Subscribe(topic string, o *transport.SubscribeOptions, handle func(*transport.Message)) (transport.Subscription, error) {
	if handle == nil {
		return nil, fmt.Errorf("subscribing to topic %.40q without a handler: %w", topic, transport.ErrSettings)
	}
	depth, policy := transport.DefaultDepth, transport.DropOldest
	if o != nil {
		if o.Depth < 0 || o.Depth > transport.MaxDepth {
			return nil, fmt.Errorf("SubscribeOptions.Depth is %d, allowed is 0 to %d: %w", o.Depth, transport.MaxDepth, transport.ErrSettings)
		}
		if o.Policy > transport.KeepLast {
			return nil, fmt.Errorf("SubscribeOptions.Policy is %d, allowed is DropOldest, DropNewest or KeepLast: %w", o.Policy, transport.ErrSettings)
		}
		if o.Depth > 0 {
			depth = o.Depth
		}
		policy = o.Policy
	}
	if policy == transport.KeepLast {
		depth = 1
	}
	s := &subscription{
		hub: h, topic: topic, newest: policy == transport.DropNewest, handle: handle,
		ring: make([]*Buffer, depth), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if o != nil {
		s.refused = o.Refused
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, transport.ErrClosed
	}
	if IsPattern(topic) {
		h.patterns = append(h.patterns[:len(h.patterns):len(h.patterns)], s)
	} else {
		if h.topics == nil {
			h.topics = map[string][]*subscription{}
		}
		h.topics[topic] = append(h.topics[topic], s)
	}
	if s.refused != nil {
		h.refused = append(h.refused[:len(h.refused):len(h.refused)], s)
	}
	go s.run()
	return s, nil
}

// Close closes all subscriptions and waits for their handlers.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	all := h.all()
	h.mu.Unlock()
	for _, s := range all {
		s.Close()
	}
}

// Inside panics if the caller is a handler of one of the subscriptions.
func (h *Hub) Inside(call string) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	id := goid.Get()
	for _, s := range h.all() {
		if s.goroutine.Load() == id {
			panic("transport: " + call + " called by a handler of a subscription, which it would wait for")
		}
	}
}

func (h *Hub) remove(s *subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	without := func(list []*subscription) []*subscription {
		if i := slices.Index(list, s); i >= 0 {
			return append(append([]*subscription{}, list[:i]...), list[i+1:]...)
		}
		return list
	}
	h.refused = without(h.refused)
	if IsPattern(s.topic) {
		h.patterns = without(h.patterns)
		return
	}
	h.topics[s.topic] = without(h.topics[s.topic])
	if len(h.topics[s.topic]) == 0 {
		delete(h.topics, s.topic)
	}
}
