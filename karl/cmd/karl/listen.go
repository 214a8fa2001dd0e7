package main

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
	"github.com/madara-go/madara/transport"
)

const (
	// depth is how many messages wait for a command that listens.
	depth = 8192
	// maxHeard bounds the variables whose senders are remembered.
	maxHeard = 100_000
)

// listener is a filter that counts what arrives and knows who sent it.
type listener struct {
	patterns []string // unless empty, of the variables to count

	mu      sync.Mutex
	from    map[string]origin
	rates   map[rateKey]*rate
	ignored uint64 // updates that found no room
}

// origin is where the newest update of a variable came from.
type origin struct {
	sender string
	clock  uint64
}

type rateKey struct{ sender, name string }

// rate is how many updates of a variable one sender sent.
type rate struct {
	rateKey
	total uint64
	shown uint64 // of them at the last report
}

func newListener(patterns []string) *listener {
	return &listener{patterns: patterns, from: map[string]origin{}, rates: map[rateKey]*rate{}}
}

// hear is a knowledge.RecordFilter that changes nothing.
func (l *listener) hear(c *knowledge.FilterContext, name string, v karl.Value) (karl.Value, bool) {
	if !matchAny(l.patterns, name) {
		return v, true
	}
	sender := c.Originator
	if sender == "" {
		sender = c.Source // a reduced header has no originator
	}
	key := rateKey{sender, name}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.rates[key]
	if r == nil {
		if len(l.rates) >= maxHeard {
			l.ignored++
			return v, true
		}
		r = &rate{rateKey: key}
		l.rates[key] = r
	}
	r.total++
	l.from[name] = origin{sender, c.Clock}
	return v, true
}

// sender returns who sent the value of a variable with a clock, "" if that is
// not known any more.
func (l *listener) sender(name string, clock uint64) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.from[name]; o.clock == clock {
		return o.sender
	}
	return ""
}

// report returns the counts by sender and variable, and begins the next period.
func (l *listener) report() ([]rate, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rates := make([]rate, 0, len(l.rates))
	for _, r := range l.rates {
		rates = append(rates, *r)
		r.shown = r.total
	}
	slices.SortFunc(rates, func(a, b rate) int {
		return cmp.Or(strings.Compare(a.sender, b.sender), strings.Compare(a.name, b.name))
	})
	return rates, l.ignored
}

// matchAny reports whether a name matches one of the patterns, or there are none.
func matchAny(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return match(p, name) })
}

// match reports whether a name matches a pattern, as knowledge.Base.Watch does:
// each * stands for any text.
func match(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	last := len(parts) - 1
	if !strings.HasPrefix(name, parts[0]) {
		return false
	}
	name = name[len(parts[0]):]
	for _, part := range parts[1:last] {
		_, rest, ok := strings.Cut(name, part)
		if !ok {
			return false
		}
		name = rest
	}
	return strings.HasSuffix(name, parts[last])
}

// dropsOf returns the reasons for which something was dropped.
func dropsOf(s transport.Stats) []transport.Drop {
	var reasons []transport.Drop
	for i, n := range s.Drops {
		if n > 0 {
			reasons = append(reasons, transport.Drop(i))
		}
	}
	return reasons
}
