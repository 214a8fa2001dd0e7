package hub

import (
	"testing"

	"github.com/madara-go/madara/transport"
)

// A reader may run a handler only if no message is before it, as they would
// change places.
func TestBegin(t *testing.T) {
	for name, s := range map[string]*subscription{
		"busy":            {busy: true},
		"closed":          {closed: true},
		"a message waits": {count: 1},
		"slow":            {pace: Pace{slow: 1}},
	} {
		if s.begin() {
			t.Errorf("%s: the handler may run", name)
		}
	}
	s := &subscription{hub: &Hub{}, handle: func(*transport.Message) {}}
	if !s.begin() || s.begin() {
		t.Error("a handler runs once at a time")
	}
	s.one(s.hub.Get(0))
	if !s.begin() {
		t.Error("the handler has returned")
	}
}
