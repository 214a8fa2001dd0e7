package knowledge

import (
	"sync"
	"time"

	"github.com/madara-go/madara/transport"
)

// complaints chooses what is logged of messages that are dropped: of each reason
// and sender one a minute, and of each reason no more than mostComplaints, so that
// nobody can fill a log.
type complaints struct {
	mu    sync.Mutex
	began time.Duration // of the minute
	made  map[transport.Drop]map[string]bool
}

const mostComplaints = 16

// due reports whether to log.
func (c *complaints) due(why transport.Drop, from string, now time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil || now-c.began >= time.Minute {
		c.began, c.made = now, map[transport.Drop]map[string]bool{}
	}
	made := c.made[why]
	if made[from] || len(made) >= mostComplaints {
		return false
	}
	if made == nil {
		made = map[string]bool{}
		c.made[why] = made
	}
	made[from] = true
	return true
}

// complain drops a message and logs why, with the setting that may be the cause.
func (a *Attachment) complain(why transport.Drop, from, text string, args ...any) {
	a.counters.drop(why, 1)
	a.say(why, from, text, args...)
}

// say logs what somebody else counts.
func (a *Attachment) say(why transport.Drop, from, text string, args ...any) {
	if a.complaints.due(why, from, a.b.now()) {
		a.b.log.Warn(text, append([]any{"reason", why.String()}, args...)...)
	}
}
