package knowledge

import (
	"errors"
	"github.com/madara-go/madara/knowledge/internal/store"
	"hash/maphash"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/wire"
)

// Attachment is a base's share in a transport, made by [Base.Attach].
type Attachment struct {
	b       *Base
	event   transport.Event
	share   Sharing
	topic   string
	chain   wire.Chain
	domain  []byte
	id      []byte
	reads   map[string]bool
	trusted map[string]bool
	banned  map[string]bool
	onData  *Expression
	sub     transport.Subscription
	closed  atomic.Bool
	done    sync.WaitGroup

	counters counters
	hashing  bool // own datagrams are told by their hashes
	limiting bool // there is a limit of bandwidth
	seed     maphash.Seed
	limiter  limiter

	// Of the sender, one at a time.
	out      outgoing
	lastSent int64 // newest time of insertion that was sent, for SendHistory

	// Of the subscription's goroutine, or of the sender; guarded by mu.
	mu      sync.Mutex
	own     hashes // of what was published, the last 1,024
	rate    limiter
	dropper dropper

	// Of the subscription's goroutine alone.
	in        incoming
	received  hashes // of messages that may be sent on, two seconds
	assembler *wire.Assembler
	peers     map[string]*peerState
	peerOrder []string
	jumped    uint64        // how far messages raised the clock since jumpedAt
	jumpedAt  time.Duration // by this host's clock
	made      int           // names that messages made

	resend     newcomers
	complaints complaints
}

// counters count for an attachment.
type counters struct {
	sent, sentBytes, received, receivedBytes atomic.Uint64
	drops                                    [transport.Drops]atomic.Uint64
}

func (c *counters) drop(d transport.Drop, n int) { c.drops[d].Add(uint64(n)) }

// Attach shares the base over a transport: what is marked is sent to it, and
// what arrives is applied. s may be nil. Several bases may be attached to one
// Event, and one base to several. Attach does not take the Event over: whoever
// made it closes it, after the base or the attachment. The errors are ErrClosed,
// ErrNullLock, ErrSharing, those of Event.Subscribe, and a karl.ErrorList for
// OnData. MADARA knows it as attach_transport.
func (b *Base) Attach(event transport.Event, s *Sharing) (*Attachment, error) {
	if b.null {
		return nil, ErrNullLock
	}
	if event == nil {
		return nil, errors.New("attaching to no transport")
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	a := &Attachment{
		b: b, event: event, share: s.withDefaults(), seed: maphash.MakeSeed(),
		reads: map[string]bool{}, peers: map[string]*peerState{}, id: []byte(b.id),
	}
	if a.share.MaxVariables == 0 {
		a.share.MaxVariables = max(b.limits.Variables/2, 1)
	}
	a.share.Qualities = maps.Clone(a.share.Qualities)

	if len(a.id) > wire.MaxOriginator {
		return nil, store.Errorf(ErrSharing, "the base's ID %q has %d bytes, at most %d can be sent", b.id, len(b.id), wire.MaxOriginator)
	}
	if limit := event.MaxPayload() - wire.FragmentSize; a.share.FragmentSize > limit {
		if limit < minFragmentSize {
			return nil, store.Errorf(ErrSharing, "the transport carries %d bytes, at least %d are needed", event.MaxPayload(), minFragmentSize+wire.FragmentSize)
		}
		a.share.FragmentSize = limit
	}
	a.domain = []byte(a.share.Domain)
	if event.Topics() {
		a.topic = a.share.Domain
		if strings.Contains(a.topic, "*") {
			return nil, store.Errorf(ErrSharing, "knowledge.Sharing.Domain is %q, which stands for many on a transport with topics; allowed is a text without *", a.topic)
		}
	}
	a.chain = wire.Chain(a.share.Filters)
	for _, d := range a.share.ReadDomains {
		a.reads[d] = true
	}
	a.trusted, a.banned = set(a.share.Trusted), set(a.share.Banned)
	a.hashing = a.share.Reduced || a.share.ParticipantTTL > 0
	a.limiting = a.share.SendLimit > 0 || a.share.TotalLimit > 0
	a.received.age = 2 * time.Second
	a.own.limit = 1024
	a.dropper = newDropper(&a.share)
	a.assembler = wire.NewAssembler(wire.AssemblerLimits{
		Message: a.share.MaxMessage + wire.FilterHeaderSize*len(a.chain) + 64*len(a.chain), Total: a.share.MaxFragments,
	}, func(d transport.Drop, n int) { a.counters.drop(d, n) })
	if a.share.OnData != "" {
		e, err := b.Compile(a.share.OnData)
		if err != nil {
			return nil, err
		}
		a.onData = e
	}
	b.lock("Base.Attach")
	if b.closed {
		b.unlock()
		return nil, ErrClosed
	}
	b.attachments = append(b.attachments, a)
	b.sender.active = !b.manual
	b.sender.histories = b.sender.histories || a.share.SendHistory
	b.unlock()
	if !a.share.NoReceiving {
		topic := a.topic
		if event.Topics() && (len(a.reads) != 1 || !a.reads[topic]) {
			topic = "*" // all, of which the headers tell those that are read
		}
		sub, err := event.Subscribe(topic, &transport.SubscribeOptions{Depth: a.share.Depth, Policy: a.share.Policy, Refused: a.refused}, a.receive)
		if err != nil {
			a.detach()
			return nil, err
		}
		b.lock("Base.Attach")
		a.sub = sub
		closed := b.closed
		b.unlock()
		if closed { // meanwhile; Close may not have seen the subscription
			sub.Close()
			a.done.Wait()
			return nil, ErrClosed
		}
	}
	return a, nil
}

func set(names []string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// Stats returns what was counted since the base was attached.
func (a *Attachment) Stats() transport.Stats {
	c := &a.counters
	s := transport.Stats{
		Sent: c.sent.Load(), SentBytes: c.sentBytes.Load(),
		Received: c.received.Load(), ReceivedBytes: c.receivedBytes.Load(),
	}
	for i := range c.drops {
		s.Drops[i] = c.drops[i].Load()
	}
	return s
}

// Detach ends the share: nothing is sent to the transport any more, no message
// is applied once it returns, and marks stay. It may be called again. Called by
// a filter, a sink, a message's program, or a function that runs under the lock,
// it panics.
func (a *Attachment) Detach() error {
	b := a.b
	b.lock("Attachment.Detach")
	if b.sender.isMine() || a.in.goroutine.Load() == goroutine() {
		b.unlock()
		misuse("Attachment.Detach called by a filter or sink of the base")
	}
	b.unlock()
	a.detach()
	b.waitSender()
	return nil
}

// detach takes the attachment off the base and waits for what runs in it, but
// for the sender.
func (a *Attachment) detach() {
	b := a.b
	b.lock("Attachment.Detach")
	for i, x := range b.attachments {
		if x == a {
			b.attachments = append(b.attachments[:i:i], b.attachments[i+1:]...)
			break
		}
	}
	b.sender.active = !b.manual && (len(b.sender.sinks) > 0 || len(b.attachments) > 0)
	sub := a.sub
	b.unlock()
	a.closed.Store(true)
	a.resend.stop()
	if sub != nil {
		sub.Close()
	}
	a.done.Wait()
}

// hashes is a set of hashes that forgets by number or by age.
type hashes struct {
	limit int           // 0: none
	age   time.Duration // 0: none
	seen  map[uint64]int
	order []hashAt
	first int
}

type hashAt struct {
	hash uint64
	at   time.Duration
}

// maxHashes bounds a table that forgets by age.
const maxHashes = 16_384

// add puts a hash in and reports whether it was there.
func (h *hashes) add(hash uint64, now time.Duration) bool {
	h.forget(now)
	if h.seen == nil {
		h.seen = map[uint64]int{}
	}
	h.seen[hash]++
	h.order = append(h.order, hashAt{hash, now})
	return h.seen[hash] > 1
}

func (h *hashes) has(hash uint64) bool { return h.seen[hash] > 0 }

func (h *hashes) forget(now time.Duration) {
	limit := h.limit
	if limit == 0 {
		limit = maxHashes
	}
	for h.first < len(h.order) {
		o := h.order[h.first]
		if len(h.order)-h.first < limit && (h.age == 0 || now-o.at < h.age) {
			break
		}
		if h.seen[o.hash]--; h.seen[o.hash] == 0 {
			delete(h.seen, o.hash)
		}
		h.first++
	}
	if h.first > 1024 && h.first > len(h.order)/2 {
		h.order = append(h.order[:0], h.order[h.first:]...)
		h.first = 0
	}
}

// limiter sums bytes over the last ten seconds.
type limiter struct {
	seconds [10]int64
	second  int64
	sum     int64
}

func (l *limiter) add(bytes int, now time.Duration) {
	l.forget(now)
	l.seconds[l.second%10] += int64(bytes)
	l.sum += int64(bytes)
}

func (l *limiter) forget(now time.Duration) {
	second := int64(now / time.Second)
	for l.second < second {
		l.second++
		l.sum -= l.seconds[l.second%10]
		l.seconds[l.second%10] = 0
		if l.sum == 0 {
			l.second = second
		}
	}
}

// above reports whether the rate over ten seconds is above a limit in bytes per
// second, 0 for none.
func (l *limiter) above(limit int, now time.Duration) bool {
	if limit == 0 {
		return false
	}
	l.forget(now)
	return l.sum/10 > int64(limit)
}
