package store

// side holds what most records lack.
type side struct {
	waiters   []*Waiter
	published *Published
	watches   []*pending
	changed   uint64 // Store.sequence at the last change that watches were told
	gone      Event  // why there is no value
	history   *history
}

// Waiter is somebody who sleeps until a record changes. It is used by one
// goroutine at a time and may be registered again and again.
type Waiter struct {
	// Wake has room for one signal.
	Wake chan struct{}
	// Ready, unless nil, is asked by the writer, under the base's lock, whether
	// the change is worth waking for.
	Ready func() bool

	on    []*Record
	round uint64
}

// NewWaiter returns a waiter that is not registered.
func NewWaiter() *Waiter { return &Waiter{Wake: make(chan struct{}, 1)} }

// Signal wakes the waiter; a second signal before it looks is the same one.
func (w *Waiter) Signal() {
	select {
	case w.Wake <- struct{}{}:
	default:
	}
}

// sideOf returns the side of a record, made if it has none. The pointer is valid
// until the next one is made.
func (s *Store) sideOf(r *Record) *side {
	if r.side == 0 {
		if n := len(s.unsided); n > 0 {
			r.side = s.unsided[n-1]
			s.unsided = s.unsided[:n-1]
		} else {
			s.sides = append(s.sides, side{})
			r.side = uint32(len(s.sides) - 1)
		}
	}
	return &s.sides[r.side]
}

// Register lets the waiter be woken by a change of any of the records.
func (s *Store) Register(w *Waiter, records []*Record) {
	for _, r := range records {
		d := s.sideOf(r)
		d.waiters = append(d.waiters, w)
		r.State |= watched
	}
	w.on = append(w.on, records...)
}

// Unregister takes the waiter off every record. Records that exist only because
// somebody waited for them go.
func (s *Store) Unregister(w *Waiter) {
	for i, r := range w.on {
		w.on[i] = nil
		d := &s.sides[r.side]
		for j, x := range d.waiters {
			if x == w {
				last := len(d.waiters) - 1
				d.waiters[j] = d.waiters[last]
				d.waiters[last] = nil
				d.waiters = d.waiters[:last]
				break
			}
		}
		if cap(d.waiters) > 16 && len(d.waiters) == 0 {
			d.waiters = nil
		}
		s.leaveSide(r)
	}
	w.on = w.on[:0]
}

// leaveSide gives up what a record does not need any more because somebody left it.
func (s *Store) leaveSide(r *Record) {
	d := &s.sides[r.side]
	if len(d.watches) == 0 && d.history == nil && !s.Exact {
		r.State &^= exact
	}
	if len(d.waiters) > 0 || len(d.watches) > 0 || d.published != nil {
		return
	}
	r.State &^= watched
	if d.history == nil {
		s.dropSide(r)
		s.Release(r)
	}
}

func (s *Store) dropSide(r *Record) {
	if r.side == 0 {
		return
	}
	waiters := s.sides[r.side].waiters // keeps its capacity
	s.sides[r.side] = side{waiters: waiters[:0]}
	s.unsided = append(s.unsided, r.side)
	r.side = 0
}

// Release removes a record that has no value and that nobody holds, waits for
// or named; any other stays.
func (s *Store) Release(r *Record) {
	if r.State&(held|watched|key|dead) == 0 && !r.Exists() {
		s.drop(r)
	}
}

// Touched reports whether a waiter may have to be woken.
func (s *Store) Touched() bool { return len(s.touches) > 0 }

// checksPerHold is how many waiters a writer asks at the end of one hold; it
// wakes the rest, who then look for themselves.
const checksPerHold = 10_000

// Settle tells those who wait and watch what changed during the hold that ends
// now: each waiter at most once, those with Ready only if it holds.
func (s *Store) Settle() {
	s.round++
	checks := 0
	for i := 0; i < len(s.touches); i++ { // Ready writes nothing, so the list does not grow
		r := s.touches[i]
		s.touches[i] = nil
		signal := r.State&silent == 0
		r.State &^= touched | silent
		if r.side == 0 {
			continue
		}
		d := &s.sides[r.side]
		if d.published != nil {
			d.published.store(r)
		}
		if len(d.watches) > 0 {
			leaves := !r.Exists() && r.State&(held|key) == 0 && len(d.waiters) == 0 && d.published == nil
			if r.Exists() || d.gone != WasReset { // a reset is told once, not for each
				s.tell(r, d, leaves)
			}
			if leaves {
				d.watches = nil
				r.State &^= watched
				s.dropSide(r)
				s.drop(r)
				continue
			}
		}
		if !signal {
			continue
		}
		for _, w := range d.waiters {
			if w.round == s.round {
				continue
			}
			w.round = s.round
			if w.Ready != nil && checks < checksPerHold {
				checks++
				if !w.Ready() {
					continue
				}
			}
			w.Signal()
		}
	}
	s.touches = s.touches[:0]
}
