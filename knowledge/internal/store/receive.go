package store

import (
	"github.com/madara-go/madara/karl"
)

// Verdict is what became of a value from a peer.
type Verdict uint8

// The verdicts.
const (
	Accepted Verdict = iota
	LowQuality
	Stale
	Tied // equal clock and quality, and the value there is kept
)

// Receive stores a value from a peer if it is of higher quality than the one
// there, or of the same and not older; clock and quality go with it. A tie is
// decided by prefer, unless that is nil: whether v is to replace the value there.
// The variable is not marked, and what was marked is not sent any more, because
// it is not ours now.
func (s *Store) Receive(r *Record, v karl.Value, clock uint64, quality uint32, prefer func(r *Record, v karl.Value) bool) Verdict {
	switch {
	case quality < r.Quality:
		return LowQuality
	case quality == r.Quality && clock < r.Clock:
		return Stale
	case quality == r.Quality && clock == r.Clock && prefer != nil && r.Exists() && !prefer(r, v):
		return Tied
	}
	r.put(v)
	r.unmarked()
	r.Clock, r.Quality, r.Time = clock, quality, s.Now()
	r.State = r.State&^(stamped|ours|guarded) | key
	if r.Quality != r.WriteQuality {
		r.State |= guarded
	}
	if r.State&changed == 0 {
		r.State |= changed
		s.changes = append(s.changes, r)
	}
	if r.State&traced != 0 {
		s.sides[r.side].history.push(r)
	}
	if r.State&watched != 0 {
		s.touch(r, false)
	}
	s.RaiseClock(clock + 1)
	return Accepted
}

// MarkAgain marks a variable to be sent without stamping it, if its value is
// still ours.
func (s *Store) MarkAgain(r *Record) {
	if r.State&(ours|local|marked) != ours || !r.Exists() {
		return
	}
	if r.State&listed == 0 {
		s.marks = append(s.marks, r)
	}
	r.State |= marked | quiet | listed
}

// Sendable returns the variables with a value that may leave the base, those
// whose value is ours or all, in the order of their names.
func (s *Store) Sendable(all bool) []*Record {
	var found []*Record
	for _, r := range s.withPrefix("") {
		if r.Exists() && r.State&local == 0 && (all || r.State&ours != 0) {
			found = append(found, r)
		}
	}
	return found
}

// MaxClock is the highest clock that a message may carry. What a peer claims
// must leave room for the clocks of all messages to come.
const MaxClock = 1 << 63
