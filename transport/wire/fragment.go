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
	Total   int           // bytes of all fragments that wait; default 16 MiB
	Sender  int           // messages of one sender that wait; default 100
	Age     time.Duration // of a message that waits; default 2 s
}

func (l AssemblerLimits) withDefaults() AssemblerLimits {
	if l.Message <= 0 {
		l.Message = 500_000
	}
	if l.Total <= 0 {
		l.Total = 16 << 20
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
// apart by where they come from, who sent them and their clock. It is for one
// goroutine.
type Assembler struct {
	limits  AssemblerLimits
	partial map[partialKey]*partial
	senders map[senderKey]int
	oldest  list.List // of *partial, in the order of their first fragments
	bytes   int
	drop    func(transport.Drop, int)
}

type senderKey struct{ source, originator string }

type partialKey struct {
	senderKey
	clock uint64
}

type partial struct {
	key   partialKey
	began time.Duration
	at    *list.Element
	parts [][]byte
	have  int
	total uint64
	bytes int // kept, with what keeping costs
}

// overhead is what keeping a partial message or a fragment costs beside its data.
const overhead = 256

// NewAssembler returns an assembler. drop is told of each fragment that is
// dropped, with the reason and how many.
func NewAssembler(limits AssemblerLimits, drop func(transport.Drop, int)) *Assembler {
	a := &Assembler{limits: limits.withDefaults(), drop: drop}
	a.partial = map[partialKey]*partial{}
	a.senders = map[senderKey]int{}
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
	p := a.partial[key]
	switch {
	case p == nil:
		cost := overhead + 24*int(h.Updates)
		if !a.room(key.senderKey, cost+len(data)+overhead) {
			a.drop(transport.DropFragmentFull, 1)
			return nil
		}
		p = &partial{key: key, began: now, total: h.Total, parts: make([][]byte, h.Updates), bytes: cost}
		p.at = a.oldest.PushBack(p)
		a.partial[key] = p
		a.senders[key.senderKey]++
		a.bytes += cost
	case len(p.parts) != int(h.Updates) || p.total != h.Total:
		a.drop(transport.DropFragment, 1)
		return nil
	case p.parts[h.Index] != nil:
		return nil // came twice
	}
	if a.bytes+len(data)+overhead > a.limits.Total && !a.makeRoom(len(data)+overhead, p) {
		a.drop(transport.DropFragmentFull, 1)
		return nil
	}
	p.parts[h.Index] = append(make([]byte, 0, len(data)), data...)
	p.have++
	p.bytes += len(data) + overhead
	a.bytes += len(data) + overhead
	if p.have < len(p.parts) {
		return nil
	}
	a.forget(p)
	sum := uint64(0)
	for _, part := range p.parts {
		sum += uint64(len(part))
	}
	if sum != p.total {
		a.drop(transport.DropFragment, p.have)
		return nil
	}
	message := make([]byte, 0, sum)
	for _, part := range p.parts {
		message = append(message, part...)
	}
	return message
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

// room makes room for another partial message of a sender: its own oldest goes
// if it has too many, then the oldest of all.
func (a *Assembler) room(sender senderKey, bytes int) bool {
	if a.senders[sender] >= a.limits.Sender {
		for e := a.oldest.Front(); e != nil; e = e.Next() {
			if p := e.Value.(*partial); p.key.senderKey == sender {
				a.evict(p, transport.DropFragmentFull)
				break
			}
		}
	}
	return a.makeRoom(bytes, nil)
}

func (a *Assembler) makeRoom(bytes int, but *partial) bool {
	if bytes > a.limits.Total {
		return false
	}
	for a.bytes+bytes > a.limits.Total {
		e := a.oldest.Front()
		if e != nil && e.Value.(*partial) == but {
			e = e.Next()
		}
		if e == nil {
			return false
		}
		a.evict(e.Value.(*partial), transport.DropFragmentFull)
	}
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
	a.drop(why, p.have)
	a.forget(p)
}

func (a *Assembler) forget(p *partial) {
	delete(a.partial, p.key)
	a.oldest.Remove(p.at)
	a.bytes -= p.bytes
	if a.senders[p.key.senderKey]--; a.senders[p.key.senderKey] == 0 {
		delete(a.senders, p.key.senderKey)
	}
}

// Bytes returns how much the fragments that wait take.
func (a *Assembler) Bytes() int { return a.bytes }
