// Package store is where the variables of a knowledge base live: their records,
// the index of their names, what changed, and who waits for them. It has no
// lock: the base holds its own around everything here except [Store.Lookup].
package store

import (
	"unsafe"

	"github.com/madara-go/madara/karl"
)

// Record is one variable. It is 64 bytes, made in slabs, and never moves:
// programs and handles keep pointers to it.
type Record struct {
	// State holds the kind of the value in its low 8 bits and flags above. One
	// masked comparison of it decides whether a write has anything to do beyond
	// storing the value (see [Record.Settled]).
	State        uint32
	Quality      uint32         // of the present value
	bits         uint64         // words of the karl.Value, whose kind is in State
	data         unsafe.Pointer //
	WriteQuality uint32         // this process's authority over the variable
	side         uint32         // index into Store.sides; 0 for none
	Clock        uint64         // Lamport time of the value
	Time         int64          // time of insertion, nanoseconds of the host's monotonic clock
	name         string
}

// The flags of Record.State. The first group decides whether a write is
// settled: all of quiet, changed and stamped set, none of the others.
const (
	kindMask uint32 = 0xff

	quiet   uint32 = 1 << 8  // nothing to mark: the record is marked already, or local
	changed uint32 = 1 << 9  // on the list of the next difference checkpoint
	stamped uint32 = 1 << 10 // carries the present clock and a time of insertion
	guarded uint32 = 1 << 11 // Quality and WriteQuality differ: each write must compare them
	watched uint32 = 1 << 12 // somebody waits for a change
	exact   uint32 = 1 << 13 // each write reads the clock
	traced  uint32 = 1 << 14 // each write goes into the history

	// SettledFlags are those a record has when a write has nothing to do beyond
	// storing the value.
	SettledFlags = quiet | changed | stamped
	settledMask  = kindMask | SettledFlags | guarded | watched | exact | traced

	local   uint32 = 1 << 16 // the name starts with a dot
	marked  uint32 = 1 << 17 // to be sent
	touched uint32 = 1 << 18 // on the list of what changed during this hold
	held    uint32 = 1 << 19 // a program, handle or waiter has a pointer to it, for ever
	dead    uint32 = 1 << 20 // removed from the index; nobody may use it
	key     uint32 = 1 << 21 // named by a program or written, and not deleted since
	owned   uint32 = 1 << 22 // the array payload was never handed out and has spare capacity
	listed  uint32 = 1 << 25 // on the list of marks, marked or cleared since
	ours    uint32 = 1 << 26 // the present value was written here, not by a peer
	silent  uint32 = 1 << 24 // touched only by writes that wake no waiter
	dated   uint32 = 1 << 23 // on the list of those stamped since the clock was raised
)

// SettledInteger and SettledDouble are the patterns for [Record.Settled].
const (
	SettledInteger = uint32(karl.KindInteger) | SettledFlags
	SettledDouble  = uint32(karl.KindDouble) | SettledFlags
	// NeverSettled matches no record: with it every write takes the slow path.
	NeverSettled = ^uint32(0)
)

// Settled reports whether the record's value may be overwritten by one of the
// same kind with [Record.PutInt] or [Record.PutFloat] and nothing else done.
// pattern is SettledInteger, SettledDouble or NeverSettled.
func (r *Record) Settled(pattern uint32) bool { return r.State&settledMask == pattern }

// Is reports whether the value is of kind k.
func (r *Record) Is(k karl.Kind) bool { return uint8(r.State) == uint8(k) }

// Kind returns the kind of the value.
func (r *Record) Kind() karl.Kind { return karl.Kind(uint8(r.State)) }

// Exists reports whether the variable has a value.
func (r *Record) Exists() bool { return uint8(r.State) != 0 }

// Int returns the integer of a record of KindInteger.
func (r *Record) Int() int64 { return int64(r.bits) }

// PutInt stores an integer in a record that is Settled(SettledInteger).
func (r *Record) PutInt(i int64) { r.bits = uint64(i) }

// Bits returns the bits of a record of KindInteger or KindDouble.
func (r *Record) Bits() uint64 { return r.bits }

// PutBits stores the bits of a number in a record that is Settled for its kind.
func (r *Record) PutBits(bits uint64) { r.bits = bits }

// Value returns the value. An array handed out here is no longer the record's
// own: the next element write copies it.
func (r *Record) Value() karl.Value {
	if k := uint8(r.State); k <= uint8(karl.KindInteger) || k == uint8(karl.KindDouble) {
		return karl.FromWords(karl.Kind(k), r.bits, nil)
	}
	return r.payload()
}

//go:noinline
func (r *Record) payload() karl.Value {
	r.State &^= owned
	return karl.FromWords(r.Kind(), r.bits, r.data)
}

// Peek returns the value for a look that ends before the next write: unlike
// Value it leaves an array the record's own.
func (r *Record) Peek() karl.Value { return karl.FromWords(r.Kind(), r.bits, r.data) }

// Name returns the variable's name.
func (r *Record) Name() string { return r.name }

// Local reports whether the name starts with a dot: such variables never leave the base.
func (r *Record) Local() bool { return r.State&local != 0 }

// IsKey reports whether a program names the variable or somebody wrote it.
func (r *Record) IsKey() bool { return r.State&key != 0 }

// Ours reports whether the present value was written by this base.
func (r *Record) Ours() bool { return r.State&(ours|dead) == ours && r.Exists() }

// Dead reports whether the record was removed from the index after it was looked up.
func (r *Record) Dead() bool { return r.State&dead != 0 }

// Hold keeps name and record together for ever, so that the pointer never goes
// stale; a program that names the variable also makes it a key.
func (r *Record) Hold(named bool) {
	r.State |= held
	if named {
		r.State |= key
	}
}

// Look forgets that the record is stamped, so that the next write has a time
// that is not earlier than this look at the metadata.
func (r *Record) Look() { r.State &^= stamped }

func (r *Record) put(v karl.Value) {
	k, bits, data := v.Words()
	r.bits, r.data = bits, data
	r.State = r.State&^(kindMask|owned) | uint32(k)
}
