// Package filter is filters for knowledge.Sharing, ready to use, and the registry by
// which agents find each other over UDP.
//
//	kb.Attach(link, &knowledge.Sharing{
//		SendFilters:    []knowledge.RecordFilter{filter.Prefixes("agent.1.")},
//		ReceiveFilters: []knowledge.RecordFilter{filter.Kinds(karl.KindInteger, karl.KindDouble), filter.Rate(10)},
//	})
//
// MADARA's record and aggregate filters of the same names are in parentheses.
package filter

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// prefixes is a sorted list of prefixes, none of which begins with another.
type prefixes []string

func newPrefixes(list []string) prefixes {
	list = slices.Clone(list)
	slices.Sort(list)
	kept := list[:0]
	for _, p := range list {
		if len(kept) == 0 || !strings.HasPrefix(p, kept[len(kept)-1]) {
			kept = append(kept, p)
		}
	}
	return kept
}

// has reports whether a name begins with one of them: only the last one that is not
// behind the name can be it.
func (p prefixes) has(name string) bool {
	i, found := slices.BinarySearch(p, name)
	return found || i > 0 && strings.HasPrefix(name, p[i-1])
}

// Prefixes lets only variables through whose names begin with one of these.
func Prefixes(list ...string) knowledge.RecordFilter {
	p := newPrefixes(list)
	return func(_ *knowledge.FilterContext, name string, v karl.Value) (karl.Value, bool) { return v, p.has(name) }
}

// Drop keeps variables back whose names begin with one of these, all without any
// (discard).
func Drop(list ...string) knowledge.RecordFilter {
	p := newPrefixes(list)
	return func(_ *knowledge.FilterContext, name string, v karl.Value) (karl.Value, bool) {
		return v, len(p) > 0 && !p.has(name)
	}
}

// Kinds lets only values of these kinds through (discard_nonprimitives,
// discard_nonfiles).
func Kinds(kinds ...karl.Kind) knowledge.RecordFilter {
	kinds = slices.Clone(kinds)
	return func(_ *knowledge.FilterContext, _ string, v karl.Value) (karl.Value, bool) {
		return v, slices.Contains(kinds, v.Kind())
	}
}

// maxRated is how many variables a Rate remembers; sometimes twice as many.
const maxRated = 32_768

// Rate lets each variable through so many times a second, one after the other, and
// keeps the rest back: what was kept back goes when it is set or sent again. Of more
// than 32,768 variables it forgets those that went first.
func Rate(perSecond float64) knowledge.RecordFilter {
	if !(perSecond > 0) {
		return Drop()
	}
	period := time.Duration(float64(time.Second) / perSecond)
	var mu sync.Mutex
	young, old := map[string]time.Duration{}, map[string]time.Duration{} // when each may go again
	return func(c *knowledge.FilterContext, name string, v karl.Value) (karl.Value, bool) {
		mu.Lock()
		defer mu.Unlock()
		at, ok := young[name]
		if !ok {
			at, ok = old[name]
		}
		if ok && c.Now < at {
			return v, false
		}
		if len(young) >= maxRated {
			young, old = map[string]time.Duration{}, young
		}
		young[strings.Clone(name)] = c.Now + period
		return v, true
	}
}

// Allowed lets only variables through whose names begin with one of the texts in
// the base's variables name.0, name.1… of which there are name.size; all where there
// are none (DynamicPrefixFilter). The list is read for each message.
func Allowed(kb *knowledge.Base, name string) knowledge.AggregateFilter {
	return func(_ *knowledge.FilterContext, variables map[string]karl.Value) {
		keep(variables, newPrefixes(list(kb, name)))
	}
}

// AllowedNames is Allowed for whole names; an entry that ends with * allows all that
// begin so (DynamicPredicateFilter).
func AllowedNames(kb *knowledge.Base, name string) knowledge.AggregateFilter {
	return func(_ *knowledge.FilterContext, variables map[string]karl.Value) {
		entries := list(kb, name)
		if len(entries) == 0 {
			return
		}
		names := map[string]bool{}
		var begin []string
		for _, e := range entries {
			if p, all := strings.CutSuffix(e, "*"); all {
				begin = append(begin, p)
			} else {
				names[e] = true
			}
		}
		p := newPrefixes(begin)
		for n := range variables {
			if !names[n] && !p.has(n) {
				delete(variables, n)
			}
		}
	}
}

func keep(variables map[string]karl.Value, p prefixes) {
	if len(p) == 0 {
		return
	}
	for n := range variables {
		if !p.has(n) {
			delete(variables, n)
		}
	}
}

// maxList is how many entries of a list in a base are read.
const maxList = 10_000

// list reads the texts name.0 to name.size - 1 of a base.
func list(kb *knowledge.Base, name string) (entries []string) {
	for i := range min(kb.Get(name+".size").Int(), maxList) {
		if v := kb.Get(name + "." + strconv.FormatInt(i, 10)); v.Exists() {
			entries = append(entries, v.String())
		}
	}
	return entries
}

// Clear takes all variables out of a message (ClearRecords).
func Clear(_ *knowledge.FilterContext, variables map[string]karl.Value) { clear(variables) }

// Copy adds, for each name that is a key, a variable with its value under the other
// name (VariableMapFilter).
func Copy(names map[string]string) knowledge.AggregateFilter {
	names = mapClone(names)
	return func(_ *knowledge.FilterContext, variables map[string]karl.Value) {
		for from, to := range names {
			if v, ok := variables[from]; ok {
				variables[to] = v
			}
		}
	}
}

func mapClone(m map[string]string) map[string]string {
	c := make(map[string]string, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

// Counter counts the messages that it sees, and their variables (CounterFilter). The
// zero value is ready; it may be used by several attachments.
type Counter struct {
	mu    sync.Mutex
	count Count
}

// Count is what a Counter has counted.
type Count struct {
	Messages, Variables uint64
	First, Last         time.Duration // by the host's monotonic clock
}

// Filter is the aggregate filter that counts.
func (n *Counter) Filter(c *knowledge.FilterContext, variables map[string]karl.Value) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.count.Messages == 0 {
		n.count.First = c.Now
	}
	n.count.Last = c.Now
	n.count.Messages++
	n.count.Variables += uint64(len(variables))
}

// Count returns a copy.
func (n *Counter) Count() Count {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.count
}
