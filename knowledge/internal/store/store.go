package store

import (
	"errors"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/madara-go/madara/karl"
)

// Errors of writes. The base returns them under its own names.
var (
	ErrQuality = errors.New("write quality is below the quality of the value")
	ErrLimit   = karl.ErrLimit
)

// MaxName is the longest name of a variable, in bytes.
const MaxName = 4096

// Limits bounds what a store holds.
type Limits struct {
	Variables int // records
	Array     int // elements of an array grown by an index
}

// Store is the variables of one base.
type Store struct {
	index
	Clock  uint64       // the base's Lamport clock
	Now    func() int64 // the monotonic clock of the host, nanoseconds
	Exact  bool         // each write reads Now
	Limits Limits

	MarkedSince int64 // about when the first of the variables to be sent was marked

	marks   []*Record // to be sent, and those cleared since they were marked
	changes []*Record // since the last difference checkpoint
	stamps  []*Record // since the clock was raised
	touches []*Record // watched ones written during this hold
	stale   int       // dead records on marks, changes and stamps

	sides     []side // sides[0] is unused
	unsided   []uint32
	round     uint64
	waiters   int       // that are registered
	listeners []*Waiter // for names to come
	watches   []*Watch
	sequence  uint64 // of changes that watches are told
	traces    []trace
}

// Init makes an empty store usable.
func (s *Store) Init(now func() int64, limits Limits) {
	s.index = newIndex()
	s.Now, s.Limits = now, limits
	s.sides = make([]side, 1)
}

// Lookup finds the record of a name; nil if there is none. It needs no lock,
// but whoever calls it without must look at [Record.Dead] once it has the lock.
func (s *Store) Lookup(name string) *Record { return s.load(name) }

// Intern finds or makes the record of a name.
func (s *Store) Intern(name string) (*Record, error) {
	if r := s.load(name); r != nil {
		return r, nil
	}
	if len(name) > MaxName {
		return nil, Errorf(ErrLimit, "the name %q has %d bytes, at most %d are allowed", clip(name), len(name), MaxName)
	}
	if s.size() >= s.Limits.Variables {
		return nil, Errorf(ErrLimit, "variable %q would be number %d, at most %d are allowed",
			clip(name), s.size()+1, s.Limits.Variables)
	}
	r := s.add(name)
	if s.Exact {
		r.State |= exact
	}
	if len(s.watches) > 0 {
		s.watchNew(r)
	}
	if len(s.traces) > 0 {
		s.traceNew(r)
	}
	if len(s.listeners) > 0 {
		s.wakeNew(r.name)
	}
	return r, nil
}

// clip shortens a name for a message.
func clip(name string) string {
	if len(name) > 64 {
		return name[:61] + "..."
	}
	return name
}

// Size returns the number of records, also of those without a value.
func (s *Store) Size() int { return s.size() }

// WithPrefix returns the records whose names start with prefix, in the order of
// the names, also those without a value. The slice is valid until the next
// record is made or removed.
func (s *Store) WithPrefix(prefix string) []*Record { return s.withPrefix(prefix) }

// Write says how a write differs from the default: it is the settings of an
// evaluation as far as writes see them.
type Write uint8

// The differences.
const (
	LocalOnly  Write = 1 << iota // do not mark
	SendLocals                   // mark locals too
	Overwrite                    // skip the quality check
	NoSignal                     // do not wake waiters
	NoTrack                      // leave out of the next difference checkpoint
)

// Set stores v, which exists, and does everything a write is followed by:
// quality, clock, time, marks, waiters. It is the slow path of every write. It
// returns ErrQuality and leaves the variable alone if the value there is of
// higher quality than this process may write.
//
//go:noinline
func (s *Store) Set(r *Record, v karl.Value, w Write) error {
	if err := s.admit(r, w); err != nil {
		return err
	}
	r.put(v)
	s.wrote(r, w)
	return nil
}

// admit is the quality check before a write.
func (s *Store) admit(r *Record, w Write) error {
	if r.State&guarded != 0 && w&Overwrite == 0 && r.WriteQuality < r.Quality {
		return Errorf(ErrQuality, "variable %q holds quality %d, this process writes quality %d",
			clip(r.name), r.Quality, r.WriteQuality)
	}
	return nil
}

// wrote does what follows a change of the value.
func (s *Store) wrote(r *Record, w Write) {
	st := r.State | key | ours
	if st&guarded != 0 {
		r.Quality = r.WriteQuality
		st &^= guarded
	}
	if st&stamped == 0 {
		if st&dated == 0 {
			s.stamps = append(s.stamps, r)
		}
		st |= stamped | dated
		r.Clock = s.Clock
		r.Time = s.Now()
	} else if st&exact != 0 {
		r.Time = s.Now()
	}
	if st&marked == 0 && (st&local == 0 || w&SendLocals != 0) && w&LocalOnly == 0 {
		if st&listed == 0 {
			if len(s.marks) == 0 {
				s.MarkedSince = r.Time
			}
			s.marks = append(s.marks, r)
		}
		st |= marked | quiet | listed
	}
	if st&changed == 0 && w&NoTrack == 0 {
		st |= changed
		s.changes = append(s.changes, r)
	}
	r.State = st
	if st&traced != 0 {
		s.sides[r.side].history.push(r)
	}
	if st&watched != 0 {
		s.touch(r, w&NoSignal != 0)
	}
}

// touch notes a change for those who wait and watch.
func (s *Store) touch(r *Record, quietly bool) {
	switch {
	case r.State&touched == 0:
		r.State |= touched
		if quietly {
			r.State |= silent
		}
		s.touches = append(s.touches, r)
	case !quietly:
		r.State &^= silent
	}
}

// Mark marks a variable that has a value to be sent, and stamps it, as if it
// had been written with the value it has.
func (s *Store) Mark(r *Record) {
	if r.Exists() {
		s.wrote(r, 0)
	}
}

// SetQuality sets the quality this process writes the variable with.
func (s *Store) SetQuality(r *Record, q uint32) {
	r.WriteQuality = q
	if r.Quality == q {
		r.State &^= guarded
	} else {
		r.State |= guarded
	}
}

// RaiseClock sets the base's clock to c if that is later, and lets the next
// write of each variable stamp anew.
func (s *Store) RaiseClock(c uint64) {
	if c <= s.Clock {
		return
	}
	s.Clock = c
	for i, r := range s.stamps {
		r.State &^= stamped | dated
		s.stamps[i] = nil
	}
	s.stamps = s.stamps[:0]
}

// SetClock sets the clock of one variable and raises the base's to it.
func (s *Store) SetClock(r *Record, c uint64) {
	s.RaiseClock(c)
	r.Clock = c
	if c != s.Clock {
		r.State &^= stamped
	}
}

// Element stores element i of an array variable; see [karl.Value.WithElement]
// for what becomes of other kinds. e is a number. An array that was not handed
// out since the last element write is changed in place, so a loop over its
// elements costs what it should.
func (s *Store) Element(r *Record, i int64, e karl.Value, w Write) error {
	if i < 0 || i >= int64(s.Limits.Array) {
		return Errorf(ErrIndex, "index %d of %q is out of range, 0 to %d are allowed",
			i, clip(r.name), s.Limits.Array-1)
	}
	if err := s.admit(r, w); err != nil {
		return err
	}
	if !s.elementInPlace(r, int(i), e) {
		if k := r.Kind(); k != karl.KindDoubles && (k != karl.KindIntegers || e.Kind() != karl.KindInteger) {
			r.put(r.Peek().WithElement(int(i), e)) // becomes an array of another kind
		}
		s.own(r, int(i)+1)
		s.elementInPlace(r, int(i), e)
	}
	s.wrote(r, w)
	return nil
}

// ErrIndex says that an index is negative or beyond the limit.
var ErrIndex = errors.New("index out of range")

// capacity is how many elements the payload of an owned array of n elements has
// room for.
func capacity(n int) int {
	if n == 0 {
		return 0
	}
	return 1 << bits.Len(uint(n-1))
}

// own moves an array to a payload of its own with spare capacity, at least length
// elements long.
func (s *Store) own(r *Record, length int) {
	n := int(r.bits)
	length = max(length, n)
	if r.Is(karl.KindIntegers) {
		p := make([]int64, length, capacity(length))
		copy(p, unsafe.Slice((*int64)(r.data), n))
		r.data = unsafe.Pointer(unsafe.SliceData(p))
	} else {
		p := make([]float64, length, capacity(length))
		copy(p, unsafe.Slice((*float64)(r.data), n))
		r.data = unsafe.Pointer(unsafe.SliceData(p))
	}
	r.bits = uint64(length)
	r.State |= owned
}

func (s *Store) elementInPlace(r *Record, i int, e karl.Value) bool {
	if r.State&owned == 0 {
		return false
	}
	n := int(r.bits)
	if i >= capacity(n) || (r.Is(karl.KindIntegers) && e.Kind() != karl.KindInteger) {
		return false
	}
	if i >= n {
		// Within the capacity: the elements between are zero, because a payload
		// only grows while it is owned. The capacity follows from the length,
		// so growing over a power of two makes a new payload.
		r.bits = uint64(i + 1)
	}
	if r.Is(karl.KindIntegers) {
		unsafe.Slice((*int64)(r.data), i+1)[i] = e.Int()
	} else {
		unsafe.Slice((*float64)(r.data), i+1)[i] = e.Float()
	}
	return true
}

// Clear takes value and mark away and keeps record, quality and clock. It
// reports whether the variable is a key.
func (s *Store) Clear(r *Record) bool {
	was := r.State&key != 0
	r.unmarked()
	if r.Exists() {
		r.put(karl.Value{})
		s.vanish(r, Cleared)
	}
	return was
}

// vanish notes that the value went.
func (s *Store) vanish(r *Record, why Event) {
	if r.State&watched != 0 {
		s.sides[r.side].gone = why
		s.touch(r, false)
	}
}

// Delete takes the variable away: a held record stays, absent and without
// metadata, any other leaves the index.
func (s *Store) Delete(r *Record) bool {
	was := r.State&key != 0
	if was || r.Exists() {
		r.put(karl.Value{})
		s.vanish(r, Deleted)
	}
	s.forget(r)
	if r.side != 0 {
		s.sides[r.side].history.clear()
	}
	if r.State&(held|watched) == 0 {
		s.dropSide(r)
		s.drop(r)
	}
	return was
}

// forget makes the metadata what they were when the record was made.
func (s *Store) forget(r *Record) {
	r.unmarked()
	r.Quality, r.WriteQuality, r.Clock, r.Time = 0, 0, 0, 0
	r.State &^= key | guarded | stamped
}

// drop removes a record from the index. The lists it is on are swept once half
// of what they hold is dead.
func (s *Store) drop(r *Record) {
	s.remove(r)
	if r.State&(listed|changed|dated) == 0 {
		return
	}
	s.stale++
	if s.stale > 64 && s.stale > (len(s.marks)+len(s.changes)+len(s.stamps))/2 {
		s.marks, s.changes, s.stamps = living(s.marks), living(s.changes), living(s.stamps)
		s.stale = 0
	}
}

func living(list []*Record) []*Record {
	return slices.DeleteFunc(list, (*Record).Dead)
}

// unmarked clears the flags of a record that is not to be sent any more.
func (r *Record) unmarked() {
	r.State &^= marked
	if r.State&local == 0 {
		r.State &^= quiet
	}
}

// Reset takes every value and all metadata away and sets the clock to 0. Held
// and watched records stay, the others leave the index.
func (s *Store) Reset() {
	s.merge()
	for _, r := range s.sorted {
		r.put(karl.Value{})
		s.vanish(r, WasReset)
		s.forget(r)
		if r.side != 0 {
			s.sides[r.side].history.clear()
		}
		r.State &^= changed | dated | listed
	}
	clear(s.marks)
	clear(s.changes)
	clear(s.stamps)
	s.marks, s.changes, s.stamps = s.marks[:0], s.changes[:0], s.stamps[:0]
	s.Clock, s.stale = 0, 0
	gone := s.sorted
	kept := make([]*Record, 0, len(gone))
	for _, r := range gone {
		if r.State&(held|watched) != 0 {
			kept = append(kept, r)
			continue
		}
		s.dropSide(r)
		s.names.Delete(r.name)
		r.State |= dead
	}
	for _, w := range s.watches {
		w.reset()
	}
	s.sorted, s.tail, s.dead = kept, len(kept), 0
}

// Marked returns the number of variables to be sent, with those that were
// cleared meanwhile.
func (s *Store) Marked() int { return len(s.marks) }

// TakeMarks moves the variables to be sent into dst, or only those named. Each
// gets the base's clock, which is the clock of the message, and the clock is
// raised if there is any.
func (s *Store) TakeMarks(dst []*Record, only []string) (taken []*Record, clock uint64) {
	clock = s.Clock
	kept := s.marks[:0]
	for _, r := range s.marks {
		leaves := r.State&marked != 0
		if leaves && len(only) > 0 && !slices.Contains(only, r.name) {
			kept = append(kept, r)
			continue
		}
		r.unmarked()
		r.State &^= listed
		if leaves && r.State&local == 0 && r.Exists() {
			r.Clock = clock
			dst = append(dst, r)
		}
	}
	clear(s.marks[len(kept):])
	s.marks = kept
	if len(dst) > 0 {
		s.RaiseClock(clock + 1)
	}
	return dst, clock
}

// Argument leaves a value in one of the variables .0, .1, … It is not a write:
// it marks, stamps and wakes nothing. An uninitialized value unsets the variable.
func (s *Store) Argument(r *Record, v karl.Value) {
	r.put(v)
	if v.Exists() {
		r.State |= key
	}
	if r.State&watched != 0 {
		s.touch(r, true)
	}
}
