package store

import (
	"sync/atomic"

	"github.com/madara-go/madara/karl"
)

// Published is a copy of a number that readers take without the lock. The
// holder of the lock writes it at the end of a hold that changed the record.
type Published struct {
	sequence atomic.Uint64 // counts writes in steps of 512: odd at bit 8 while writing; the kind is below
	bits     atomic.Uint64
}

const writing = 1 << 8

// Load returns the number; ok is false where the variable holds something else
// or a writer was in the way too often.
func (p *Published) Load() (k karl.Kind, bits uint64, ok bool) {
	for range 64 {
		before := p.sequence.Load()
		if before&writing != 0 {
			continue
		}
		bits = p.bits.Load()
		if p.sequence.Load() == before {
			k = karl.Kind(uint8(before))
			return k, bits, k <= karl.KindInteger || k == karl.KindDouble
		}
	}
	return 0, 0, false
}

func (p *Published) store(r *Record) {
	next := (p.sequence.Load() &^ 0xff) + writing
	p.sequence.Store(next)
	p.bits.Store(r.bits)
	p.sequence.Store((next + writing) | uint64(r.Kind()))
}

// Publish makes a record's number readable without the lock.
func (s *Store) Publish(r *Record) *Published {
	d := s.sideOf(r)
	if d.published == nil {
		d.published = &Published{}
		d.published.store(r)
	}
	r.State |= watched | held
	return d.published
}
