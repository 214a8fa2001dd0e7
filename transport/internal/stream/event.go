package stream

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/internal/hub"
)

// MaxMessage is the longest payload of an Event, in bytes.
const MaxMessage = 16 << 20

// The bounds of an Event.
const (
	maxSubscriptions = 4096    // topics of one peer
	maxCounted       = 4096    // topics of one session whose counts are remembered
	maxSessions      = 4096    // sessions that are remembered
	minQueued        = 1 << 20 // bytes that wait for one peer, at least
)

// Event is a transport.Event over connections: those it accepts and those it
// makes to its peers. A message goes to every peer that subscribes to its topic,
// once, however many connections there are, and to the subscriptions of the
// Event itself.
type Event struct {
	hub      hub.Hub
	network  *Network
	settings transport.Settings
	max      int
	session  uint64
	start    time.Time
	accepted *acceptor
	stop     context.Context
	cancel   context.CancelFunc
	dialling sync.WaitGroup

	mu       sync.Mutex // guards what follows, and is held while a message is sent
	closed   bool
	sequence uint64
	counts   map[string]uint64 // by topic
	frame    []byte
	sealed   []byte
	peers    []*peer
	mine     map[string]int       // subscriptions by topic
	changed  chan struct{}        // closed when a subscription or peer comes or goes
	seen     map[uint64]*received // by session
}

// peer is a connection.
type peer struct {
	*writer
	source  string
	session uint64
	primary bool // the oldest connection of its session; guarded by Event.mu

	exact    map[string]int // subscriptions by topic; guarded by Event.mu
	patterns map[string]int
}

// received is what came from a session: the last sequence, and the last count of
// each topic.
type received struct {
	mu     sync.Mutex
	counts map[string]uint64
	used   time.Time
}

// NewEvent returns an Event that accepts connections from listener, unless it is
// nil, and makes one to each peer's address and keeps it.
func NewEvent(n *Network, listener net.Listener, peers []string, s transport.Settings) *Event {
	e := &Event{
		network: n, settings: s, max: MaxMessage, session: rand.Uint64() | 1, start: time.Now(),
		counts: map[string]uint64{}, mine: map[string]int{}, changed: make(chan struct{}), seen: map[uint64]*received{},
	}
	if s.Sealer != nil {
		e.max -= s.Sealer.Overhead()
	}
	e.stop, e.cancel = context.WithCancel(context.Background())
	e.accepted = accept(listener, n, func(d transport.Drop) { e.hub.Drop(d, 1) }, e.serve)
	for _, address := range peers {
		e.dialling.Go(func() { e.connect(address) })
	}
	return e
}

// connect keeps a connection to an address until the Event is closed.
func (e *Event) connect(address string) {
	var wait backoff
	for e.stop.Err() == nil {
		conn, source, theirs, err := dial(e.stop, e.network, address, hello{session: e.session}, magicEvent)
		if err == nil {
			wait.reset()
			stop := context.AfterFunc(e.stop, func() { conn.Close() })
			err = e.talk(conn, source, theirs)
			stop()
			conn.Close()
		}
		e.count(err)
		if !sleep(wait.wait(), e.stop.Done()) {
			return
		}
	}
}

// serve is a connection that was accepted.
func (e *Event) serve(conn net.Conn) {
	source, theirs, err := open(conn, e.network, hello{session: e.session}, magicEvent)
	if err == nil {
		err = e.talk(conn, source, theirs)
	}
	e.count(err)
}

func (e *Event) count(err error) {
	if d, ok := dropOf(err); ok {
		e.hub.Drop(d, 1)
	}
}

// talk is the life of a connection after its hello.
func (e *Event) talk(conn net.Conn, source string, theirs hello) error {
	if theirs.session == e.session {
		return malformed("connected to itself")
	}
	p := &peer{
		writer: newWriter(conn, max(e.settings.WriteBuffer, minQueued), 0), source: source, session: theirs.session,
		exact: map[string]int{}, patterns: map[string]int{},
	}
	var writing sync.WaitGroup
	writing.Go(p.run)
	defer writing.Wait()
	defer p.close()

	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return transport.ErrClosed
	}
	for topic, n := range e.mine {
		for range n {
			p.send(topicFrame(kindSubscribe, topic), nil, true)
		}
	}
	p.primary = !slices.ContainsFunc(e.peers, func(x *peer) bool { return x.session == p.session })
	e.peers = append(e.peers, p)
	seen := e.remember(theirs.session)
	e.notify()
	e.mu.Unlock()
	e.hub.Peers.Add(1)
	err := e.read(conn, p, seen)
	e.hub.Peers.Add(-1)
	e.mu.Lock()
	e.peers = slices.DeleteFunc(e.peers, func(x *peer) bool { return x == p })
	if i := slices.IndexFunc(e.peers, func(x *peer) bool { return x.session == p.session }); i >= 0 {
		e.peers[i].primary = true
	}
	e.notify()
	e.mu.Unlock()
	return err
}

// remember returns what is known of a session, with mu held.
func (e *Event) remember(session uint64) *received {
	r := e.seen[session]
	if r == nil {
		if len(e.seen) >= maxSessions {
			var oldest uint64
			for s, r := range e.seen {
				if oldest == 0 || r.used.Before(e.seen[oldest].used) {
					oldest = s
				}
			}
			delete(e.seen, oldest)
		}
		r = &received{counts: map[string]uint64{}}
		e.seen[session] = r
	}
	r.used = time.Now()
	return r
}

// notify wakes who waits in Ready, with mu held.
func (e *Event) notify() {
	close(e.changed)
	e.changed = make(chan struct{})
}

func topicFrame(kind byte, topic string) []byte {
	return append(beginFrame(nil, kind, len(topic)), topic...)
}

// reading is a connection that frames are read from.
type reading struct {
	e      *Event
	r      *bufio.Reader
	peer   *peer
	seen   *received
	head   []byte
	topics map[string]string // one string for each topic
}

// read takes frames until the connection ends.
func (e *Event) read(conn net.Conn, p *peer, seen *received) error {
	c := &reading{
		e: e, r: bufio.NewReaderSize(conn, 64<<10), peer: p, seen: seen,
		head: make([]byte, messageHead+transport.MaxTopic), topics: map[string]string{},
	}
	return hub.Read(c.frame)
}

// frame takes one frame.
func (c *reading) frame(reader *hub.Reader) error {
	kind, body, err := readHead(c.r, c.head, messageHead+transport.MaxTopic+MaxMessage)
	if err != nil {
		return err
	}
	switch kind {
	case kindSubscribe, kindUnsubscribe:
		if body > transport.MaxTopic {
			return malformed("a topic of %d bytes, at most %d are allowed", body, transport.MaxTopic)
		}
		if _, err := io.ReadFull(c.r, c.head[:body]); err != nil {
			return err
		}
		return c.e.subscribed(c.peer, string(c.head[:body]), kind == kindSubscribe)
	case kindMessage:
		if body < messageHead {
			return malformed("a message of %d bytes, at least %d are needed", body, messageHead)
		}
		if _, err := io.ReadFull(c.r, c.head[:messageHead]); err != nil {
			return err
		}
		arrived := time.Since(c.e.start)
		m, err := parseMessage(c.head, body)
		if err != nil {
			return err
		}
		if _, err := io.ReadFull(c.r, c.head[:m.topic]); err != nil {
			return err
		}
		topic, ok := c.topics[string(c.head[:m.topic])]
		if !ok {
			if len(c.topics) >= maxCounted {
				clear(c.topics)
			}
			topic = string(c.head[:m.topic])
			c.topics[topic] = topic
		}
		return c.take(reader, m, topic, body-messageHead-m.topic, arrived)
	}
	return malformed("a frame of kind %d", kind)
}

// subscribed notes a subscription of a peer, or its end.
func (e *Event) subscribed(p *peer, topic string, more bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := p.exact
	if hub.IsPattern(topic) {
		list = p.patterns
	}
	n := list[topic]
	switch {
	case more && n == 0 && len(p.exact)+len(p.patterns) >= maxSubscriptions:
		return malformed("more than %d topics are subscribed to", maxSubscriptions)
	case more:
		list[topic] = n + 1
	case n == 0:
		return malformed("the end of a subscription to %.40q, which does not exist", topic)
	case n == 1:
		delete(list, topic)
	default:
		list[topic] = n - 1
	}
	e.notify()
	return nil
}

// wants returns how many subscriptions a peer has to a topic, with Event.mu held.
func (p *peer) wants(topic string) int {
	n := p.exact[topic]
	for pattern, m := range p.patterns {
		if hub.Match(pattern, topic) {
			n += m
		}
	}
	return n
}

// take reads the payload of a message and hands it on.
func (c *reading) take(reader *hub.Reader, m message, topic string, size int, arrived time.Duration) error {
	e := c.e
	b := e.hub.Get(min(size, stage))
	payload, err := readStaged(c.r, b.Data()[:0], size)
	if err != nil {
		b.Release()
		return err
	}
	e.hub.Received(size)
	if m.count > 0 {
		e.follow(c.seen, topic, m.count)
	}
	b.Topic, b.Source, b.Session, b.Sequence, b.Arrived = topic, c.peer.source, c.peer.session, m.sequence, arrived
	e.dispatch(b, payload, reader)
	return nil
}

// follow compares the count of a message with the last of its topic.
func (e *Event) follow(seen *received, topic string, count uint64) {
	seen.mu.Lock()
	last := seen.counts[topic]
	if count > last {
		if last == 0 && len(seen.counts) >= maxCounted {
			clear(seen.counts)
		}
		seen.counts[topic] = count
	}
	seen.mu.Unlock()
	switch {
	case count == last:
		e.hub.Duplicates.Add(1)
	case count < last:
		e.hub.Reordered.Add(1)
	case last > 0:
		e.hub.Gaps.Add(count - last - 1)
	}
}

// dispatch hands a message to the subscriptions. reader is nil for messages of
// this Event.
func (e *Event) dispatch(b *hub.Buffer, payload []byte, reader *hub.Reader) {
	if e.settings.NoReceiving {
		b.Release()
		return
	}
	b.Payload = payload
	if s := e.settings.Sealer; s != nil {
		opened, err := hub.Open(s, nil, payload)
		if err != nil {
			e.hub.Refused(b.Source, err)
			b.Release()
			return
		}
		b.Payload, b.Sealed = opened, true
	}
	e.hub.Dispatch(b, reader)
}

// readStaged appends size bytes of r to dst. Of what was only announced it
// allocates a stage, and the rest when that much has come.
func readStaged(r io.Reader, dst []byte, size int) ([]byte, error) {
	for len(dst) < size {
		if cap(dst) < size {
			room := size
			if len(dst) == 0 {
				room = min(size, stage)
			}
			if cap(dst) < room {
				dst = append(make([]byte, 0, room), dst...)
			}
		}
		from := len(dst)
		dst = dst[:min(size, cap(dst))]
		if _, err := io.ReadFull(r, dst[from:]); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// Publish is transport.Event.Publish.
func (e *Event) Publish(topic string, payload []byte) (uint64, error) {
	if len(payload) > e.max {
		return 0, tooLarge(len(payload), e.max)
	}
	if err := hub.CheckPublish(topic); err != nil {
		return 0, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return 0, transport.ErrClosed
	}
	e.sequence++
	sequence := e.sequence
	if e.settings.NoSending {
		e.hub.Drop(transport.DropNoSending, 1)
		return sequence, nil
	}
	count, ok := e.counts[topic]
	if ok || len(e.counts) < maxCounted {
		count++
		e.counts[topic] = count
	}
	body := payload
	if s := e.settings.Sealer; s != nil {
		sealed, err := hub.Seal(s, e.sealed[:0], payload)
		if err != nil {
			e.hub.Drop(transport.DropSeal, 1)
			return sequence, nil
		}
		body, e.sealed = sealed, sealed
	}
	e.frame = e.frame[:0]
	for _, p := range e.peers {
		if !p.primary || p.wants(topic) == 0 {
			continue
		}
		if len(e.frame) == 0 {
			f := beginFrame(e.frame, kindMessage, messageHead+len(topic)+len(body))
			f = binary.BigEndian.AppendUint64(f, sequence)
			f = binary.BigEndian.AppendUint64(f, count)
			f = append(f, byte(len(topic)))
			f = append(f, topic...)
			e.frame = append(f, body...)
		}
		if p.send(e.frame, nil, false) {
			e.hub.Sent(len(body))
		} else {
			e.hub.Drop(transport.DropSendBuffer, 1)
		}
	}
	if cap(e.frame) > stage {
		e.frame = nil
	}
	if len(e.mine) > 0 && e.hub.Subscribers(topic) > 0 {
		b := e.hub.Get(len(body))
		b.Topic, b.Source, b.Session, b.Sequence, b.Arrived = topic, "self", e.session, sequence, time.Since(e.start)
		e.dispatch(b, b.Data()[:copy(b.Data(), body)], nil)
	}
	return sequence, nil
}

// subscription tells the peers when it ends.
type subscription struct {
	transport.Subscription
	e     *Event
	topic string
	ended atomic.Bool
}

// Subscribe is transport.Event.Subscribe.
func (e *Event) Subscribe(topic string, o *transport.SubscribeOptions, handle func(*transport.Message)) (transport.Subscription, error) {
	if err := hub.CheckSubscribe(topic); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mine[topic] == 0 && len(e.mine) >= maxSubscriptions {
		return nil, fmt.Errorf("topic %.40q would be number %d, at most %d are allowed: %w", topic, len(e.mine)+1, maxSubscriptions, transport.ErrTopic)
	}
	s, err := e.hub.Subscribe(topic, o, handle)
	if err != nil {
		return nil, err
	}
	if e.closed {
		return s, nil // and the hub closes it
	}
	e.mine[topic]++
	e.tell(kindSubscribe, topic)
	return &subscription{Subscription: s, e: e, topic: topic}, nil
}

// tell sends a frame about a topic to all peers, with mu held.
func (e *Event) tell(kind byte, topic string) {
	frame := topicFrame(kind, topic)
	for _, p := range e.peers {
		p.send(frame, nil, true)
	}
	e.notify()
}

// Close is transport.Subscription.Close.
func (s *subscription) Close() error {
	err := s.Subscription.Close()
	if s.ended.Swap(true) {
		return err
	}
	e := s.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mine[s.topic]--; e.mine[s.topic] == 0 {
		delete(e.mine, s.topic)
	}
	e.tell(kindUnsubscribe, s.topic)
	return err
}

// Ready is transport.Event.Ready. It counts the subscriptions of all peers and
// of this Event.
func (e *Event) Ready(ctx context.Context, topic string, subscribers int) error {
	for {
		e.mu.Lock()
		n := e.hub.Subscribers(topic)
		for _, p := range e.peers {
			if p.primary {
				n += p.wants(topic)
			}
		}
		changed, closed := e.changed, e.closed
		e.mu.Unlock()
		switch {
		case n >= subscribers:
			return nil
		case closed:
			return transport.ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d subscribers: %w", n, subscribers, context.Cause(ctx))
		}
	}
}

// Topics is transport.Event.Topics.
func (e *Event) Topics() bool { return true }

// MaxPayload is transport.Event.MaxPayload.
func (e *Event) MaxPayload() int { return e.max }

// Stats is transport.Event.Stats.
func (e *Event) Stats() transport.Stats { return e.hub.Stats() }

// Close is transport.Event.Close.
func (e *Event) Close() error {
	e.hub.Inside("Event.Close")
	e.mu.Lock()
	e.closed = true
	e.notify()
	e.mu.Unlock()
	e.cancel()
	err := e.accepted.close()
	e.dialling.Wait()
	e.hub.Close()
	return err
}
