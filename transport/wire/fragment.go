package wire

import (
	"container/list"
	"fmt"
	"time"

	"github.com/madara-go/madara/transport"
)

// Fragments returns how many pieces of at most size bytes a message is cut into.
func Fragments(length, size int) int { return (length + size - 1) / size }

// AppendFragment appends the fragment with an index of an encoded message, cut
// into pieces of at most size bytes. The header's Domain, Originator, Clock and
// Timestamp are used; the rest follows from the message.
func AppendFragment(dst []byte, h Header, message []byte, size, index int) []byte {
	data := message[index*size:]
	data = data[:min(len(data), size)]
	h.Kind = Fragment
	h.Size = uint64(FragmentSize + len(data))
	h.Type, h.Quality, h.TTL = MultiAssign, 0, 0
	h.Updates = uint32(Fragments(len(message), size))
	h.Index, h.Total = uint32(index), uint64(len(message))
	return append(h.Append(dst), data...)
}

// AssemblerLimits bounds what an [Assembler] keeps. Zero fields are the defaults.
type AssemblerLimits struct {
	Message int           // bytes of one message; default 500,000
	Total   int           // bytes of all fragments that wait; default 16 MiB, or four times Message if that is more
	Sender  int           // messages of one sender that wait; default 100
	Age     time.Duration // of a message that waits; default 2 s
}

func (l AssemblerLimits) withDefaults() AssemblerLimits {
	if l.Message <= 0 {
		l.Message = 500_000
	}
	if l.Total <= 0 {
		l.Total = max(16<<20, 4*l.Message)
	}
	if l.Sender <= 0 {
		l.Sender = 100
	}
	if l.Age <= 0 {
		l.Age = 2 * time.Second
	}
	return l
}

// Assembler puts messages together again. It keeps the fragments of a message
// apart by where they come from, who sent them and their clock. A source may fill
// a quarter of the room, or what a message of the greatest length needs: who sends
// fragments without end pushes out its own. It is for one goroutine.
type Assembler struct {
	limits  AssemblerLimits
	share   int // bytes of one source
	partial map[partialKey]*partial
	senders map[senderKey]int
	sources map[string]*source
	oldest  list.List // of *partial, in the order of their first fragments
	bytes   int
	drop    func(transport.Drop, int)
}

type senderKey struct{ source, originator string }

type partialKey struct {
	senderKey
	clock uint64
}

// source is what waits of one source.
type source struct {
	oldest list.List // of *partial
	bytes  int
}

type partial struct {
	key      partialKey
	began    time.Duration
	at, mine *list.Element     // in the list of all, and of its source
	parts    map[uint32][]byte // by index: room is taken for what came only
	count    uint32            // of fragments in all
	total    uint64
	bytes    int // kept, with what keeping costs
}

// overhead is what keeping a partial message or a fragment costs beside its data.
const overhead = 256

// NewAssembler returns an assembler. drop is told of each fragment that is
// dropped, with the reason and how many.
func NewAssembler(limits AssemblerLimits, drop func(transport.Drop, int)) *Assembler {
	a := &Assembler{limits: limits.withDefaults(), drop: drop}
	a.share = min(a.limits.Total, max(a.limits.Total/4, 2*a.limits.Message+overhead))
	a.partial = map[partialKey]*partial{}
	a.senders = map[senderKey]int{}
	a.sources = map[string]*source{}
	a.oldest.Init()
	return a
}

// Add takes a fragment, whose header was parsed, and returns the whole message
// once its last one is there, otherwise nil. It copies what it keeps. now is a
// monotonic clock.
func (a *Assembler) Add(source string, h *Header, datagram []byte, now time.Duration) []byte {
	a.Expire(now)
	data := datagram[FragmentSize:]
	if err := a.check(h, datagram); err != nil {
		a.drop(transport.DropFragment, 1)
		return nil
	}
	if h.Updates == 1 {
		return append([]byte(nil), data...)
	}
	key := partialKey{senderKey{source, string(h.Originator)}, h.Clock}
	cost := len(data) + overhead
	p := a.partial[key]
	switch {
	case p == nil:
		if a.senders[key.senderKey] >= a.limits.Sender {
			a.evictOf(key.senderKey)
		}
		if !a.makeRoom(source, cost+overhead, nil) {
			a.drop(transport.DropFragmentFull, 1)
			return nil
		}
		p = a.begin(key, h, now)
	case p.count != h.Updates || p.total != h.Total:
		a.drop(transport.DropFragment, 1)
		return nil
	case p.parts[h.Index] != nil:
		return nil // came twice
	case !a.makeRoom(source, cost, p):
		a.drop(transport.DropFragmentFull, 1)
		return nil
	}
	p.parts[h.Index] = append(make([]byte, 0, len(data)), data...)
	a.charge(p, cost)
	if len(p.parts) < int(p.count) {
		return nil
	}
	a.forget(p)
	sum := uint64(0)
	for _, part := range p.parts {
		sum += uint64(len(part))
	}
	if sum != p.total {
		a.drop(transport.DropFragment, len(p.parts))
		return nil
	}
	message := make([]byte, 0, sum)
	for i := range p.count {
		message = append(message, p.parts[i]...)
	}
	return message
}

// begin makes a partial message, for which there is room.
func (a *Assembler) begin(key partialKey, h *Header, now time.Duration) *partial {
	s := a.sources[key.source]
	if s == nil {
		s = &source{}
		s.oldest.Init()
		a.sources[key.source] = s
	}
	p := &partial{key: key, began: now, total: h.Total, count: h.Updates, parts: map[uint32][]byte{}}
	p.at, p.mine = a.oldest.PushBack(p), s.oldest.PushBack(p)
	a.partial[key] = p
	a.senders[key.senderKey]++
	a.charge(p, overhead)
	return p
}

func (a *Assembler) charge(p *partial, bytes int) {
	p.bytes += bytes
	a.sources[p.key.source].bytes += bytes
	a.bytes += bytes
}

func (a *Assembler) check(h *Header, datagram []byte) error {
	length := uint64(len(datagram) - FragmentSize)
	switch {
	case h.Size != uint64(len(datagram)):
		return fmt.Errorf("size %d of %d bytes: %w", h.Size, len(datagram), ErrFragment)
	case length == 0 || h.Total == 0 || length > h.Total:
		return fmt.Errorf("%d bytes of %d: %w", length, h.Total, ErrFragment)
	case h.Total > uint64(a.limits.Message):
		return fmt.Errorf("%d bytes, at most %d are allowed: %w", h.Total, a.limits.Message, ErrTooLarge)
	case h.Updates == 0 || uint64(h.Updates) > h.Total || h.Index >= h.Updates:
		return fmt.Errorf("fragment %d of %d: %w", h.Index, h.Updates, ErrFragment)
	case h.Updates == 1 && length != h.Total:
		return fmt.Errorf("%d bytes of %d in the only fragment: %w", length, h.Total, ErrFragment)
	}
	return nil
}

// evictOf drops the oldest message of a sender.
func (a *Assembler) evictOf(sender senderKey) {
	for e := a.sources[sender.source].oldest.Front(); e != nil; e = e.Next() {
		if p := e.Value.(*partial); p.key.senderKey == sender {
			a.evict(p, transport.DropFragmentFull)
			return
		}
	}
}

// makeRoom makes room for bytes of a source: first the source's own oldest go, if
// it has its share, then the oldest of all, but not one that is to be completed.
func (a *Assembler) makeRoom(from string, bytes int, but *partial) bool {
	if bytes > a.share {
		return false
	}
	if s := a.sources[from]; s != nil {
		for s.bytes+bytes > a.share {
			if !a.evictFirst(&s.oldest, but) {
				return false
			}
		}
	}
	for a.bytes+bytes > a.limits.Total {
		if !a.evictFirst(&a.oldest, but) {
			return false
		}
	}
	return true
}

func (a *Assembler) evictFirst(l *list.List, but *partial) bool {
	e := l.Front()
	if e != nil && e.Value.(*partial) == but {
		e = e.Next()
	}
	if e == nil {
		return false
	}
	a.evict(e.Value.(*partial), transport.DropFragmentFull)
	return true
}

// Expire drops what has waited too long.
func (a *Assembler) Expire(now time.Duration) {
	for e := a.oldest.Front(); e != nil; e = a.oldest.Front() {
		p := e.Value.(*partial)
		if now-p.began < a.limits.Age {
			return
		}
		a.evict(p, transport.DropFragmentOld)
	}
}

func (a *Assembler) evict(p *partial, why transport.Drop) {
	a.drop(why, len(p.parts))
	a.forget(p)
}

func (a *Assembler) forget(p *partial) {
	s := a.sources[p.key.source]
	delete(a.partial, p.key)
	a.oldest.Remove(p.at)
	s.oldest.Remove(p.mine)
	a.charge(p, -p.bytes)
	if s.oldest.Len() == 0 {
		delete(a.sources, p.key.source)
	}
	if a.senders[p.key.senderKey]--; a.senders[p.key.senderKey] == 0 {
		delete(a.senders, p.key.senderKey)
	}
}

// Bytes returns how much the fragments that wait take.
func (a *Assembler) Bytes() int { return a.bytes }
