package knowledge

import (
	"context"
	"errors"
	"fmt"
	"github.com/madara-go/madara/knowledge/internal/store"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/wire"
)

// outgoing is the buffers of the sender for one attachment.
type outgoing struct {
	list     []outRecord
	message  []byte
	fragment []byte
	context  FilterContext
}

type outRecord struct {
	name    string
	value   karl.Value
	time    int64
	quality uint32
	older   []Record // values of its history that go before it
}

// batch is what one round of the sender sends: variables with one clock.
type batch struct {
	updates []Update
	clock   uint64
	typ     uint32
}

// send sends a batch over the attachment's transport: a message per quality,
// ascending, and per MaxMessage bytes. It returns local failures.
func (a *Attachment) send(m batch) error {
	if a.closed.Load() {
		return nil
	}
	now := a.b.now()
	if a.share.NoSending {
		a.counters.drop(transport.DropNoSending, 1)
		return nil
	}
	if a.above(now) {
		a.counters.drop(transport.DropSendLimit, 1)
		return nil
	}
	if a.simulateDrop() {
		a.counters.drop(transport.DropSimulated, 1)
		return nil
	}
	o := &a.out
	o.list = o.list[:0]
	newest := a.lastSent
	for i := range m.updates {
		u := &m.updates[i]
		r := outRecord{name: u.Name, value: u.Value, time: int64(u.Time), quality: u.Quality}
		if a.share.SendHistory && m.typ == wire.MultiAssign {
			for _, h := range u.history {
				if int64(h.Time) > a.lastSent && h.Time < u.Time {
					r.older = append(r.older, h)
				}
			}
			newest = max(newest, r.time)
		}
		o.list = append(o.list, r)
	}
	slices.SortFunc(o.list, func(x, y outRecord) int {
		if x.quality != y.quality {
			return int(int64(x.quality) - int64(y.quality))
		}
		return strings.Compare(x.name, y.name)
	})
	var errs []error
	for from := 0; from < len(o.list); {
		to := from + 1
		for to < len(o.list) && o.list[to].quality == o.list[from].quality {
			to++
		}
		if err := a.sendQuality(o.list[from:to], m, now); err != nil {
			errs = append(errs, err)
		}
		from = to
	}
	clear(o.list)
	if len(errs) == 0 {
		a.lastSent = newest
	}
	return errors.Join(errs...)
}

// above reports whether a limit of bandwidth is exceeded.
func (a *Attachment) above(now time.Duration) bool {
	if !a.limiting {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.limiter.above(a.share.SendLimit, now) || a.rate.above(a.share.TotalLimit, now)
}

// sendQuality sends variables of one quality.
func (a *Attachment) sendQuality(list []outRecord, m batch, now time.Duration) error {
	o := &a.out
	quality := list[0].quality
	if len(a.share.SendFilters) > 0 || len(a.share.SendAggregateFilters) > 0 {
		o.context = FilterContext{
			Operation: Sending, Domain: a.share.Domain, Originator: a.b.id,
			Clock: m.clock, Quality: quality, Sent: now, Now: now, Type: m.typ,
		}
		list = a.filterOut(list)
	}
	h := wire.Header{
		Kind: wire.Normal, Domain: a.domain, Originator: a.id, Type: m.typ,
		Quality: quality, Clock: m.clock, Timestamp: uint64(now), TTL: a.share.TTL,
	}
	if a.share.Reduced {
		h.Kind = wire.Reduced
	}
	var errs []error
	part := uint64(0)
	for len(list) > 0 {
		o.message = h.Append(o.message[:0])
		h.Updates = 0
		taken := 0
		for i := range list {
			r := &list[i]
			size := wire.RecordSize(r.name, r.value)
			for _, old := range r.older {
				size += wire.RecordSize(r.name, old.Value)
			}
			for h.Len()+size > a.share.MaxMessage && len(r.older) > 0 { // the oldest values stay behind
				size -= wire.RecordSize(r.name, r.older[0].Value)
				r.older = r.older[1:]
			}
			if len(o.message)+size > a.share.MaxMessage {
				break
			}
			for _, old := range r.older {
				o.message = wire.AppendRecord(o.message, r.name, old.Value, uint64(old.Time))
				h.Updates++
			}
			if r.value.Exists() {
				o.message = wire.AppendRecord(o.message, r.name, r.value, uint64(r.time))
				h.Updates++
			}
			taken++
		}
		if taken == 0 { // larger than a message alone
			a.counters.drop(transport.DropEncode, 1)
			errs = append(errs, fmt.Errorf("variable %q with %d bytes, a message may have %d: %w",
				clipName(list[0].name), wire.RecordSize(list[0].name, list[0].value), a.share.MaxMessage, transport.ErrTooLarge))
			list = list[1:]
			continue
		}
		list = list[taken:]
		if h.Updates == 0 {
			continue
		}
		h.Size = uint64(len(o.message))
		h.Append(o.message[:0])
		if err := a.transmit(o.message, &h, part, now); err != nil {
			errs = append(errs, err)
		}
		part++
	}
	return errors.Join(errs...)
}

// transmit sends an encoded message through the filters, in fragments if need be.
func (a *Attachment) transmit(message []byte, h *wire.Header, part uint64, now time.Duration) error {
	encoded, err := a.chain.Encode(message)
	if err != nil {
		a.counters.drop(transport.DropEncode, 1)
		return err
	}
	size := a.share.FragmentSize
	if len(encoded) <= size {
		err := a.publish(encoded, now)
		if err == nil {
			a.counters.sent.Add(1)
		}
		return err
	}
	// Fragments of the messages of one round are kept apart by their clocks.
	f := wire.Header{Domain: a.domain, Originator: a.id, Clock: h.Clock + part<<40, Timestamp: uint64(now)}
	for i := range wire.Fragments(len(encoded), size) {
		a.out.fragment = wire.AppendFragment(a.out.fragment[:0], f, encoded, size, i)
		if err := a.publish(a.out.fragment, now); err != nil {
			return err
		}
	}
	a.counters.sent.Add(1)
	return nil
}

func (a *Attachment) publish(datagram []byte, now time.Duration) error {
	if a.hashing || a.limiting {
		a.mu.Lock()
		if a.hashing {
			a.own.add(maphash.Bytes(a.seed, datagram), now)
		}
		a.limiter.add(len(datagram), now)
		a.rate.add(len(datagram), now)
		a.mu.Unlock()
	}
	if _, err := a.event.Publish(a.topic, datagram); err != nil {
		a.counters.drop(transport.DropSendError, 1)
		return err
	}
	a.counters.sentBytes.Add(uint64(len(datagram)))
	return nil
}

// filterOut runs the filters of what is sent.
func (a *Attachment) filterOut(list []outRecord) []outRecord {
	kept := list[:0]
	for _, r := range list {
		v, ok := filterRecord(&a.out.context, a.share.SendFilters, r.name, r.value)
		if ok {
			r.value = v
			r.older = a.filterOlder(r)
			kept = append(kept, r)
		} else {
			a.counters.drop(transport.DropFiltered, 1)
		}
	}
	if len(a.share.SendAggregateFilters) == 0 || len(kept) == 0 {
		return kept
	}
	variables := make(map[string]karl.Value, len(kept))
	for _, r := range kept {
		variables[r.name] = r.value
	}
	for _, f := range a.share.SendAggregateFilters {
		f(&a.out.context, variables)
	}
	out := make([]outRecord, 0, len(variables))
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		r := outRecord{name: name, value: variables[name], time: int64(a.out.context.Now), quality: a.out.context.Quality}
		for i := range kept {
			if kept[i].name == name {
				r.time = kept[i].time
			}
		}
		if r.value.Exists() && name != "" && name[0] != '.' {
			out = append(out, r)
		}
	}
	return out
}

// filterOlder runs the filters on the older values of a variable. Aggregate
// filters know one value of each only, so that the older ones stay behind.
func (a *Attachment) filterOlder(r outRecord) []Record {
	if len(a.share.SendAggregateFilters) > 0 {
		return nil
	}
	var kept []Record
	for _, old := range r.older {
		if v, ok := filterRecord(&a.out.context, a.share.SendFilters, r.name, old.Value); ok {
			old.Value = v
			kept = append(kept, old)
		}
	}
	return kept
}

// filterRecord runs record filters until one takes the variable away.
func filterRecord(c *FilterContext, filters []RecordFilter, name string, v karl.Value) (karl.Value, bool) {
	for _, f := range filters {
		var keep bool
		if v, keep = f(c, name, v); !keep || !v.Exists() {
			return karl.Value{}, false
		}
	}
	return v, true
}

// simulateDrop reports whether drop simulation takes what is to be sent.
func (a *Attachment) simulateDrop() bool {
	if a.share.DropRate == 0 {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dropper.drops()
}

func clipName(s string) string {
	if len(s) > 64 {
		return s[:61] + "..."
	}
	return s
}

// now reads the host's monotonic clock.
func (b *Base) now() time.Duration { return time.Duration(b.store.Now()) }

// Scope says which variables [Base.Resend] sends.
type Scope uint8

// The scopes.
const (
	Own Scope = iota + 1 // those whose present value was written by this base
	All                  // all that may leave the base
)

// Resend sends the present values once more, for peers that missed them: those
// of one clock and quality in one message, in ascending order, each under the
// clock it has. It returns as [Base.Send] does. A base does so with its own
// values by itself when it hears of a peer for the first time. MADARA has
// apply_modified for it, which stamps a new clock.
func (b *Base) Resend(ctx context.Context, scope Scope) error {
	if scope != Own && scope != All {
		return store.Errorf(ErrSharing, "scope %d is neither Own nor All", scope)
	}
	return b.sendRound(ctx, "Base.Resend", scope)
}

// capture returns what a resend sends, in groups of one clock and quality.
func (b *Base) capture(scope Scope) []batch {
	var updates []Update
	for _, r := range b.store.Sendable(scope == All) {
		updates = append(updates, Update{Name: r.Name(), Record: newRecord(r.Copy())})
	}
	slices.SortStableFunc(updates, func(x, y Update) int {
		switch {
		case x.Clock != y.Clock && x.Clock < y.Clock, x.Clock == y.Clock && x.Quality < y.Quality:
			return -1
		case x.Clock == y.Clock && x.Quality == y.Quality:
			return 0
		}
		return 1
	})
	var batches []batch
	for from := 0; from < len(updates); {
		to := from + 1
		for to < len(updates) && updates[to].Clock == updates[from].Clock && updates[to].Quality == updates[from].Quality {
			to++
		}
		batches = append(batches, batch{updates: updates[from:to], clock: updates[from].Clock, typ: wire.Assign})
		from = to
	}
	return batches
}
