package store

// trace is how many values the variables that match a pattern keep.
type trace struct {
	pattern  string
	capacity int
}

// history is the newest values of one variable. It grows to its capacity and
// then replaces the oldest.
type history struct {
	capacity int
	entries  []Copy
	oldest   int
}

// Trace lets the variables that match a pattern keep their newest values. The
// last pattern that matches decides; a capacity of 0 keeps none. It is for a
// store without records yet.
func (s *Store) Trace(pattern string, capacity int) {
	s.traces = append(s.traces, trace{pattern, capacity})
}

func (s *Store) traceNew(r *Record) {
	capacity := 0
	for _, t := range s.traces {
		if Match(t.pattern, r.name) {
			capacity = t.capacity
		}
	}
	if capacity > 0 {
		s.sideOf(r).history = &history{capacity: capacity}
		r.State |= traced | exact
	}
}

func (h *history) push(r *Record) {
	c := r.Copy()
	if len(h.entries) < h.capacity {
		h.entries = append(h.entries, c)
		return
	}
	h.entries[h.oldest] = c
	h.oldest = (h.oldest + 1) % h.capacity
}

func (h *history) clear() {
	if h != nil {
		h.entries, h.oldest = nil, 0
	}
}

// History returns the values a variable had, oldest first, the present one last.
func (s *Store) History(r *Record) []Copy {
	if r.side == 0 || s.sides[r.side].history == nil {
		return nil
	}
	h := s.sides[r.side].history
	return append(append(make([]Copy, 0, len(h.entries)), h.entries[h.oldest:]...), h.entries[:h.oldest]...)
}
