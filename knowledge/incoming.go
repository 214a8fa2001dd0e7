package knowledge

import (
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge/internal/store"
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/wire"
)

// incoming is the buffers of the goroutine that receives.
type incoming struct {
	goroutine atomic.Int64 // that runs filters, of messages and of records, or the program of OnData
	records   []inRecord
	message   []byte
	context   FilterContext
	head      []byte // of a message, to be hashed
}

type inRecord struct {
	name  string // of what filters made; "" where raw is the name
	raw   []byte
	value karl.Value
	rec   *store.Record
}

// receive takes a datagram, on the subscription's goroutine.
func (a *Attachment) receive(m *transport.Message) {
	if a.closed.Load() {
		return
	}
	c := &a.counters
	c.received.Add(1)
	c.receivedBytes.Add(uint64(len(m.Payload)))
	finished := false
	defer a.survive(&finished)
	a.take(m, a.b.now())
	finished = true
}

// take goes the way of a datagram from its source to its records.
func (a *Attachment) take(m *transport.Message, now time.Duration) {
	c := &a.counters
	if a.note(m.Payload, now) {
		c.drop(transport.DropEcho, 1)
		return
	}
	if !a.trusts(m.Source) {
		c.drop(transport.DropUntrusted, 1)
		return
	}
	message := m.Payload
	if h, err := wire.ParseHeader(message); err == nil && h.Kind == wire.Fragment {
		if d, ok := a.admitHeader(&h, now); !ok {
			c.drop(d, 1)
			return
		}
		if message = a.assembler.Add(m.Source, &h, message, m.Arrived); message == nil {
			return
		}
	}
	a.in.goroutine.Store(goroutine())
	defer a.in.goroutine.Store(0)
	if len(a.chain) > 0 {
		var err error
		if message, err = a.chain.Decode(message, a.share.MaxMessage); err != nil {
			a.puzzled(m.Source, err)
			return
		}
	}
	a.process(message, m.Source, now)
}

// puzzled drops a message whose filters are others than ours.
func (a *Attachment) puzzled(source string, err error) {
	ids := make([]string, len(a.chain))
	for i, f := range a.chain {
		ids[i] = f.ID()
	}
	a.complain(transport.DropDecode, source, "a message cannot be decoded: do Sharing.Filters, their order and their keys agree?",
		"source", source, "filters", strings.Join(ids, " "), "error", err)
}

// foreign drops what is no message, and tells filters of others from noise.
func (a *Attachment) foreign(message []byte, source string, err error) {
	if len(a.chain) > 0 {
		a.puzzled(source, fmt.Errorf("what the filters make of it is no message: %w", err))
		return
	}
	if id, _, err := wire.ParseFilterHeader(message); err == nil {
		a.complain(transport.DropNotKaRL, source, "a message has a filter that is not in Sharing.Filters, or is sealed while the transport has no Sealer",
			"source", source, "filter", string(id))
		return
	}
	a.counters.drop(transport.DropNotKaRL, 1)
}

// refused logs a datagram that the transport's Sealer did not open, by a goroutine
// of its own, as the one that reads must go on.
func (a *Attachment) refused(source string, err error) {
	if a.closed.Load() {
		return
	}
	why := transport.DropOpen
	switch {
	case errors.Is(err, transport.ErrReplayed): // as networks do by themselves
		return
	case errors.Is(err, transport.ErrUnknownKey):
		why = transport.DropUnknownKey
	case errors.Is(err, transport.ErrForged):
		why = transport.DropForged
	}
	if a.complaints.due(why, source, a.b.now()) {
		a.done.Go(func() {
			a.b.log.Warn("a datagram was not opened: do the keys of the transport's Sealer and their ids agree?", "reason", why.String(), "source", source, "error", err)
		})
	}
}

// note counts a datagram for the limits, and reports whether it is our own. Hashes
// are taken only where they are needed: headers name their originator unless they
// are reduced, and what we sent on names another.
func (a *Attachment) note(datagram []byte, now time.Duration) (echo bool) {
	if !a.hashing && !a.limiting {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rate.add(len(datagram), now)
	return a.hashing && a.own.has(maphash.Bytes(a.seed, datagram))
}

// again reports whether a message that may be sent on has come before: directly, or
// by way of somebody who sent it on, who gave it another TTL and its records other
// times. What is left of it is hashed.
func (a *Attachment) again(h *wire.Header, message []byte, now time.Duration) bool {
	var hash maphash.Hash
	hash.SetSeed(a.seed)
	head := *h
	head.TTL, head.Size = 0, 0
	a.in.head = head.Append(a.in.head[:0])
	hash.Write(a.in.head)
	updates := wire.ReadUpdates(message[h.Len():], h.Updates)
	for r := (wire.Record{}); ; {
		rest := updates.Rest()
		if !updates.Next(&r) {
			break
		}
		record := rest[:len(rest)-len(updates.Rest())]
		timeAt := wire.RecordTime(record)
		hash.Write(record[:timeAt])
		hash.Write(record[timeAt+8:])
	}
	return a.received.add(hash.Sum64(), now)
}

// trusts reports whether a name, an endpoint or an originator, may be heard.
func (a *Attachment) trusts(name string) bool {
	if len(a.trusted) > 0 {
		return a.trusted[name]
	}
	return !a.banned[name]
}

// admitHeader applies the rules about who sent a message, to whom, and when.
func (a *Attachment) admitHeader(h *wire.Header, now time.Duration) (transport.Drop, bool) {
	if h.Kind == wire.Reduced {
		if len(a.trusted)+len(a.banned) > 0 && !a.share.Reduced && !a.share.Compat {
			return transport.DropReduced, false
		}
	} else {
		switch {
		case string(h.Originator) == a.b.id:
			return transport.DropEcho, false
		case len(a.trusted) > 0 && !a.trusted[string(h.Originator)], len(a.trusted) == 0 && a.banned[string(h.Originator)]:
			return transport.DropUntrusted, false
		case !a.reads[string(h.Domain)]:
			return transport.DropDomain, false
		}
	}
	if a.share.Deadline > 0 && h.Timestamp < uint64(now) && uint64(now)-h.Timestamp > uint64(a.share.Deadline) {
		return transport.DropDeadline, false
	}
	return 0, true
}

// process takes a whole message, decoded.
func (a *Attachment) process(message []byte, source string, now time.Duration) {
	c, in := &a.counters, &a.in
	h, err := wire.ParseHeader(message)
	if err == nil && h.Kind == wire.Fragment {
		err = wire.ErrFragment
	}
	if err != nil {
		a.foreign(message, source, err)
		return
	}
	if len(message) > a.share.MaxMessage || h.Size < uint64(len(message)) || h.Size > uint64(len(message)) && !a.share.Compat {
		c.drop(transport.DropSize, 1)
		return
	}
	if d, ok := a.admitHeader(&h, now); !ok {
		c.drop(d, 1)
		if d == transport.DropReduced {
			a.say(d, source, "a reduced message, which names no originator, is refused as Sharing.Trusted or Banned is set and Reduced is not", "source", source)
		}
		return
	}
	if h.Clock > store.MaxClock {
		c.drop(transport.DropStale, 1)
		return
	}
	if h.TTL > 0 && a.again(&h, message, now) {
		c.drop(transport.DropRebroadcast, 1)
		return
	}
	in.records = in.records[:0]
	updates := wire.ReadUpdates(message[h.Len():], h.Updates)
	var r wire.Record
	for updates.Next(&r) {
		switch {
		case len(r.Name) == 0:
		case r.Name[0] == '.' && !a.share.Compat, len(r.Name) > maxName:
			c.drop(transport.DropName, 1)
		default:
			in.records = append(in.records, inRecord{raw: r.Name, value: r.Value})
		}
	}
	if err := updates.Err(); err != nil {
		c.drop(transport.DropRecord, 1)
		if errors.Is(err, wire.ErrCount) {
			return
		}
	}
	filtered := len(a.share.ReceiveFilters) > 0 || len(a.share.ReceiveAggregateFilters) > 0
	if filtered || len(a.share.RebroadcastFilters) > 0 || len(a.share.RebroadcastAggregateFilters) > 0 {
		in.context = FilterContext{
			Operation: Receiving, Domain: string(h.Domain), Originator: string(h.Originator), Source: source,
			Clock: h.Clock, Quality: h.Quality, Sent: time.Duration(h.Timestamp), Now: now, Type: h.Type,
		}
	}
	if filtered {
		in.records = a.filterIn(in.records, a.share.ReceiveFilters, a.share.ReceiveAggregateFilters)
	}
	for i := range in.records {
		x := &in.records[i]
		name := x.name
		if x.raw != nil {
			name = unsafe.String(unsafe.SliceData(x.raw), len(x.raw))
		}
		x.rec = a.b.store.Lookup(name)
	}
	a.apply(&h)
	if h.Kind == wire.Normal {
		a.meet(&h, now)
	}
	if h.TTL > 0 && a.share.ParticipantTTL > 0 && len(in.records) > 0 {
		a.rebroadcast(&h, now)
	}
	clear(in.records)
}

// survive keeps a filter that panics from ending the goroutine that receives,
// and notes one that ends it; the subscription then goes on with another.
func (a *Attachment) survive(finished *bool) {
	if r := recover(); r != nil || !*finished {
		a.counters.drop(transport.DropFiltered, 1)
		a.b.log.Error("a filter panicked", "panic", r)
	}
}

// filterIn runs filters on the records of a message.
func (a *Attachment) filterIn(records []inRecord, filters []RecordFilter, aggregate []AggregateFilter) []inRecord {
	kept := records[:0]
	for _, x := range records {
		name := x.name
		if x.raw != nil {
			name = string(x.raw)
		}
		if v, ok := filterRecord(&a.in.context, filters, name, x.value); ok {
			kept = append(kept, inRecord{name: name, value: v})
		} else {
			a.counters.drop(transport.DropFiltered, 1)
		}
	}
	if len(aggregate) == 0 || len(kept) == 0 && a.in.context.Type != wire.Register {
		return kept
	}
	variables := map[string]karl.Value{}
	for _, x := range kept {
		variables[x.name] = x.value
	}
	for _, f := range aggregate {
		f(&a.in.context, variables)
	}
	kept = kept[:0]
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if v := variables[name]; v.Exists() && name != "" && len(name) <= maxName {
			kept = append(kept, inRecord{name: name, value: v})
		}
	}
	return kept
}

// apply stores the records of a message under one hold of the lock, and runs the
// program of OnData.
func (a *Attachment) apply(h *wire.Header) {
	b, c := a.b, &a.counters
	if len(a.in.records) == 0 && a.onData == nil {
		return
	}
	var prefer func(*store.Record, karl.Value) bool
	if a.share.Tie == TieValue {
		prefer = greater
	}
	b.lock("a message")
	if b.closed || a.closed.Load() {
		b.unlock()
		return
	}
	if !a.admitClock(h.Clock) {
		b.unlock()
		a.complain(transport.DropClock, string(h.Originator), "a message claims a clock that is too far ahead: is somebody poisoning it, or Sharing.MaxClockJump too small?",
			"originator", string(h.Originator), "clock", h.Clock)
		return
	}
	quality := a.capQuality(h)
	accepted := false
	for i := range a.in.records {
		x := &a.in.records[i]
		r := x.rec
		if r == nil || r.Dead() {
			name := x.name
			if x.raw != nil {
				name = string(x.raw)
			}
			if r = b.store.Lookup(name); r == nil {
				if a.made >= a.share.MaxVariables {
					c.drop(transport.DropLimit, 1)
					continue
				}
				a.made++
			}
			var err error
			if r, err = b.store.Intern(name); err != nil {
				c.drop(transport.DropLimit, 1)
				continue
			}
		}
		switch b.store.Receive(r, x.value, h.Clock, quality, prefer) {
		case store.Accepted:
			accepted = true
		case store.LowQuality:
			c.drop(transport.DropQuality, 1)
		default:
			c.drop(transport.DropStale, 1)
		}
	}
	if accepted {
		b.noteHeard()
	}
	if a.onData != nil {
		if _, fail := b.env.Run(a.onData.prog, 0); fail != nil {
			err := newEvalError(fail)
			b.unlock()
			b.log.Warn("the program of Sharing.OnData failed", "error", err)
			b.printer.drain()
			return
		}
	}
	b.unlock()
	if b.printer.pending.Load() {
		b.printer.drain()
	}
}

// The clock may be raised by usualJump at once, by as much as peers are usually
// ahead, without counting for MaxClockJump.
const (
	usualJump  = 1 << 20
	jumpPeriod = 10 * time.Second
)

// admitClock reports whether a message may raise the clock so far, with the lock held.
func (a *Attachment) admitClock(clock uint64) bool {
	if clock <= a.b.store.Clock || clock-a.b.store.Clock <= usualJump {
		return true
	}
	if now := a.b.now(); a.jumpedAt == 0 || now-a.jumpedAt >= jumpPeriod {
		a.jumpedAt, a.jumped = now, 0
	}
	jump := clock - a.b.store.Clock
	if a.share.MaxClockJump-min(a.jumped, a.share.MaxClockJump) < jump {
		return false
	}
	a.jumped += jump
	return true
}

// capQuality returns what a message's claim of quality counts as.
func (a *Attachment) capQuality(h *wire.Header) uint32 {
	if a.share.Qualities == nil {
		return h.Quality
	}
	most, ok := a.share.Qualities[string(h.Originator)]
	if !ok {
		if most, ok = a.share.Qualities[""]; !ok {
			return h.Quality
		}
	}
	return min(h.Quality, most)
}

// noteHeard is called when a peer's value was accepted. The first time it means
// that others have knowledge of their own, who are told what this base had before.
func (b *Base) noteHeard() {
	if b.heard {
		return
	}
	b.heard = true
	for _, r := range b.store.Sendable(false) {
		b.store.MarkAgain(r)
	}
}

// greater orders values by their encoded forms, the same on every base.
func greater(r *store.Record, v karl.Value) bool {
	there, here := wire.AppendRecord(nil, "", r.Peek(), 0), wire.AppendRecord(nil, "", v, 0)
	return slices.Compare(here, there) > 0
}

// rebroadcast sends a message on, as it came but for the records that filters
// changed and a lower TTL.
func (a *Attachment) rebroadcast(h *wire.Header, now time.Duration) {
	in := &a.in
	ttl := min(a.share.ParticipantTTL, h.TTL-1)
	if ttl == 0 || a.share.ParticipantTTL < h.TTL || a.above(now) || a.share.NoSending {
		a.counters.drop(transport.DropRebroadcast, 1)
		return
	}
	if a.simulateDrop() {
		a.counters.drop(transport.DropSimulated, 1)
		return
	}
	if len(a.share.RebroadcastFilters) > 0 || len(a.share.RebroadcastAggregateFilters) > 0 {
		in.context.Operation = Rebroadcasting
		in.records = a.filterIn(in.records, a.share.RebroadcastFilters, a.share.RebroadcastAggregateFilters)
		if len(in.records) == 0 {
			return
		}
	}
	out := *h
	out.TTL, out.Updates = ttl, 0
	in.message = out.Append(in.message[:0])
	for _, x := range in.records {
		name := x.name
		if x.raw != nil {
			name = string(x.raw)
		}
		in.message = wire.AppendRecord(in.message, name, x.value, uint64(now))
		out.Updates++
	}
	out.Size = uint64(len(in.message))
	out.Append(in.message[:0])
	encoded, err := a.chain.Encode(in.message)
	if err != nil {
		a.counters.drop(transport.DropEncode, 1)
		return
	}
	if len(encoded) <= a.share.FragmentSize {
		a.publish(encoded, now)
		return
	}
	f := wire.Header{Domain: a.domain, Originator: a.id, Clock: h.Clock, Timestamp: uint64(now)}
	for i := range wire.Fragments(len(encoded), a.share.FragmentSize) {
		if a.publish(wire.AppendFragment(nil, f, encoded, a.share.FragmentSize, i), now) != nil {
			return
		}
	}
}

// peerState is what a base remembers of an originator.
type peerState struct {
	clock     uint64
	timestamp uint64 // that came with clock
}

// maxPeers is how many originators are remembered; more push the oldest out.
const maxPeers = 4096

// rebootBack is how far the time of a peer must go back to tell a reboot from
// messages that overtook each other.
const rebootBack = uint64(10 * time.Second)

// meet looks whether a message is the first of its originator, or the first
// after it started anew: such a peer does not know what we sent before.
func (a *Attachment) meet(h *wire.Header, now time.Duration) {
	p := a.peers[string(h.Originator)]
	switch {
	case p == nil:
		if len(a.peers) >= maxPeers {
			delete(a.peers, a.peerOrder[0])
			a.peerOrder = slices.Delete(a.peerOrder, 0, 1)
		}
		p = &peerState{clock: h.Clock, timestamp: h.Timestamp}
		name := string(h.Originator)
		a.peers[name] = p
		a.peerOrder = append(a.peerOrder, name)
	case h.Type == wire.Assign: // sent again, under old clocks
		return
	case h.Clock < p.clock && (h.Timestamp > p.timestamp || h.Timestamp+rebootBack < p.timestamp):
		*p = peerState{clock: h.Clock, timestamp: h.Timestamp}
	default:
		if h.Clock > p.clock {
			*p = peerState{clock: h.Clock, timestamp: h.Timestamp}
		}
		return
	}
	a.resend.soon(a)
}

// newcomers sends again what is ours after peers were heard for the first time.
type newcomers struct {
	mu      sync.Mutex
	timer   *time.Timer
	waiting bool
	stopped bool
	last    time.Time
	running sync.WaitGroup
}

const (
	// resendDelay is the longest a resend waits, so that the bases that heard a
	// newcomer do not answer all at once.
	resendDelay = 500 * time.Millisecond
	// resendGap is the least time between two resends.
	resendGap = time.Second
)

// soon arranges a resend for all newcomers of the moment.
func (n *newcomers) soon(a *Attachment) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting || n.stopped {
		return
	}
	n.waiting = true
	delay := time.Duration(rand.Int64N(int64(resendDelay)))
	if gap := resendGap - time.Since(n.last); !n.last.IsZero() && gap > delay {
		delay = gap
	}
	n.running.Add(1)
	n.timer = time.AfterFunc(delay, func() {
		defer n.running.Done()
		n.mu.Lock()
		n.waiting, n.last = false, time.Now()
		stopped := n.stopped
		n.mu.Unlock()
		if !stopped {
			a.b.resendOwn()
		}
	})
}

func (n *newcomers) stop() {
	n.mu.Lock()
	n.stopped = true
	if n.timer != nil && n.timer.Stop() {
		n.running.Done()
	}
	n.mu.Unlock()
	n.running.Wait()
}

// resendOwn is Resend of Own without an answer.
func (b *Base) resendOwn() {
	b.lock("a resend")
	s := &b.sender
	if b.closed || b.manual {
		b.unlock()
		return
	}
	s.resend = max(s.resend, Own)
	if b.startSending(nil) {
		b.runSender(nil)
		return
	}
	b.unlock()
}
