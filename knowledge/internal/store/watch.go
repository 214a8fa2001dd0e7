package store

import (
	"strings"
	"sync"

	"github.com/madara-go/madara/karl"
)

// Copy is a copy of a record.
type Copy struct {
	Value        karl.Value
	Time         int64
	Clock        uint64
	Quality      uint32
	WriteQuality uint32
}

// Copy returns a copy of the record.
func (r *Record) Copy() Copy {
	return Copy{Value: r.Value(), Time: r.Time, Clock: r.Clock, Quality: r.Quality, WriteQuality: r.WriteQuality}
}

// Event is what happened to a watched variable.
type Event uint8

// The events.
const (
	Written Event = iota
	Cleared
	Deleted
	WasReset // of all variables, without a name
)

// Change is an event of a variable, with the copy of its record then.
type Change struct {
	Name    string
	Event   Event
	Record  Copy
	Dropped uint64 // names that were pushed out of the buffer since the change before
}

// watchBuffer is how many names wait for a slow reader, with their newest value.
const watchBuffer = 4096

// Watch collects the changes of the variables that match its patterns. The
// holder of the base's lock puts them in; one reader takes them out without it.
type Watch struct {
	Wake chan struct{} // has room for one signal

	patterns []string
	mu       sync.Mutex
	living   queue // of records that are there: what is pushed out can be caught up with
	gone     queue // of records that left the store, and of resets
	arrivals uint64
	dropped  uint64
	missed   uint64 // the least sequence number of what was pushed out; 0 for none
}

// pending is the change of one record that waits in one watch.
type pending struct {
	w          *Watch
	change     Change
	sequence   uint64 // of the change
	delivered  uint64 // of the one that was taken out last
	arrival    uint64 // when it began to wait
	waiting    bool
	prev, next *pending
}

// queue is a list of pending changes in the order in which they began to wait.
type queue struct {
	first, last *pending
	count       int
}

func (q *queue) push(p *pending) {
	p.waiting = true
	p.prev, p.next = q.last, nil
	if q.last == nil {
		q.first = p
	} else {
		q.last.next = p
	}
	q.last = p
	q.count++
}

func (q *queue) remove(p *pending) {
	if p.prev == nil {
		q.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		q.last = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.waiting, p.prev, p.next = false, nil, nil
	q.count--
}

// NewWatch returns a watch that is not registered. In a pattern each * stands
// for any text; without one it is a name.
func NewWatch(patterns []string) *Watch {
	return &Watch{Wake: make(chan struct{}, 1), patterns: patterns}
}

func (w *Watch) matches(name string) bool {
	for _, p := range w.patterns {
		if Match(p, name) {
			return true
		}
	}
	return false
}

// Match reports whether a name is meant by a pattern, in which each * stands for
// any text.
func Match(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	if !strings.HasPrefix(name, head) {
		return false
	}
	name = name[len(head):]
	for {
		part, more, star := strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], more
	}
}

// AddWatch registers a watch and returns the matching variables as they are.
func (s *Store) AddWatch(w *Watch) []Change {
	s.watches = append(s.watches, w)
	var present []Change
	for _, r := range s.matching(w) {
		s.watch(w, r)
		if r.Exists() {
			present = append(present, Change{Name: r.name, Record: r.Copy()})
		}
	}
	return present
}

// matching returns the records a watch is for, in the order of their names.
func (s *Store) matching(w *Watch) []*Record {
	var found []*Record
	if len(w.patterns) == 1 {
		head, _, _ := strings.Cut(w.patterns[0], "*")
		for _, r := range s.withPrefix(head) {
			if Match(w.patterns[0], r.name) {
				found = append(found, r)
			}
		}
		return found
	}
	for _, r := range s.withPrefix("") {
		if w.matches(r.name) {
			found = append(found, r)
		}
	}
	return found
}

// watch lets a watch see the changes of a record.
func (s *Store) watch(w *Watch, r *Record) {
	d := s.sideOf(r)
	d.watches = append(d.watches, &pending{w: w})
	r.State |= watched | exact
}

// watchNew lets the watches that are for a new record see it.
func (s *Store) watchNew(r *Record) {
	for _, w := range s.watches {
		if w.matches(r.name) {
			s.watch(w, r)
		}
	}
}

// RemoveWatch takes a watch off all records.
func (s *Store) RemoveWatch(w *Watch) {
	for i, x := range s.watches {
		if x == w {
			last := len(s.watches) - 1
			s.watches[i] = s.watches[last]
			s.watches[last] = nil
			s.watches = s.watches[:last]
			break
		}
	}
	for _, r := range s.matching(w) {
		if r.side == 0 {
			continue
		}
		d := &s.sides[r.side]
		for i, p := range d.watches {
			if p.w == w {
				last := len(d.watches) - 1
				d.watches[i] = d.watches[last]
				d.watches[last] = nil
				d.watches = d.watches[:last]
				break
			}
		}
		s.leaveSide(r)
	}
}

// tell puts the change of a record into the watches that see it. leaves says
// that the record is about to leave the store.
func (s *Store) tell(r *Record, d *side, leaves bool) {
	s.sequence++
	d.changed = s.sequence
	change := d.change(r)
	for _, p := range d.watches {
		p.w.put(p, change, s.sequence, leaves)
	}
}

func (d *side) change(r *Record) Change {
	c := Change{Name: r.name, Record: r.Copy()}
	if !r.Exists() {
		c.Event = d.gone
	}
	return c
}

func (w *Watch) put(p *pending, change Change, sequence uint64, leaves bool) {
	w.mu.Lock()
	p.change, p.sequence = change, sequence
	if p.waiting && leaves {
		w.living.remove(p)
		w.gone.push(p)
	} else if !p.waiting {
		w.arrive(p, leaves)
	}
	w.mu.Unlock()
	w.signal()
}

// arrive lets a change wait; if there are too many, the one that waits longest
// is pushed out.
func (w *Watch) arrive(p *pending, gone bool) {
	if w.living.count+w.gone.count >= watchBuffer {
		w.dropped++
		if out := w.living.first; out != nil {
			w.living.remove(out)
			if w.missed == 0 || out.sequence < w.missed {
				w.missed = out.sequence
			}
		} else {
			w.gone.remove(w.gone.first)
		}
	}
	w.arrivals++
	p.arrival = w.arrivals
	if gone {
		w.gone.push(p)
	} else {
		w.living.push(p)
	}
}

func (w *Watch) signal() {
	select {
	case w.Wake <- struct{}{}:
	default:
	}
}

// Next takes the change out that waits longest. If there is none, behind says
// that some were pushed out: then [Store.CatchUp] puts them in again.
func (w *Watch) Next() (c Change, ok, behind bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := &w.living
	if w.gone.first != nil && (q.first == nil || w.gone.first.arrival < q.first.arrival) {
		q = &w.gone
	}
	p := q.first
	if p == nil {
		return Change{}, false, w.missed != 0
	}
	q.remove(p)
	p.delivered = p.sequence
	c = p.change
	c.Dropped, w.dropped = w.dropped, 0
	p.change = Change{} // keeps no payload
	return c, true, false
}

// CatchUp puts those variables in that changed since a change was pushed out and
// were not told since, as they are now, as many as fit.
func (s *Store) CatchUp(w *Watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	since := w.missed
	w.missed = 0
	if since == 0 {
		return
	}
	for _, r := range s.matching(w) {
		d := &s.sides[r.side]
		if d.changed < since {
			continue
		}
		for _, p := range d.watches {
			switch {
			case p.w != w || p.waiting || p.delivered >= d.changed:
			case w.living.count+w.gone.count < watchBuffer:
				p.change, p.sequence = d.change(r), d.changed
				w.arrive(p, false)
			case w.missed == 0 || d.changed < w.missed:
				w.missed = d.changed
			}
		}
	}
	w.signal()
}

// reset tells a watch that all variables are gone.
func (w *Watch) reset() {
	w.mu.Lock()
	for _, q := range []*queue{&w.living, &w.gone} {
		for q.first != nil {
			q.remove(q.first)
		}
	}
	w.missed = 0
	w.arrive(&pending{w: w, change: Change{Event: WasReset}}, true)
	w.mu.Unlock()
	w.signal()
}
