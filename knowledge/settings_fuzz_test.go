package knowledge_test

import (
	"errors"
	"testing"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/inproc"
)

// TestReadDomains lets a base read two domains, neither of which is its own, over
// a link that tells topics apart.
func TestReadDomains(t *testing.T) {
	n := inproc.New()
	a, _ := attach(t, n, "a", &knowledge.Sharing{Domain: "one"})
	b, _ := attach(t, n, "b", &knowledge.Sharing{Domain: "two"})
	c, _ := attach(t, n, "c", &knowledge.Sharing{Domain: "three"})
	reader, _ := attach(t, n, "reader", &knowledge.Sharing{Domain: "four", ReadDomains: []string{"one", "two"}})
	c.Evaluate("z = 1", nil)
	a.Evaluate("x = 1", nil)
	b.Evaluate("y = 1", nil)
	arrived(t, reader, "x", 1)
	arrived(t, reader, "y", 1)
	if reader.Get("z").Exists() {
		t.Error("a domain was read that should not be")
	}
	link := good(n.Open(nil))
	defer link.Close()
	kb := knowledge.New()
	defer kb.Close()
	if _, err := kb.Attach(link, &knowledge.Sharing{Domain: "t*"}); !errors.Is(err, knowledge.ErrSharing) {
		t.Errorf("a domain with *: %v", err)
	}
}

// FuzzSharing attaches with any settings: they are refused with an error that is
// ErrSharing, or a value gets through unless they say otherwise.
func FuzzSharing(f *testing.F) {
	f.Add("KaRL", uint8(0), uint8(0), int64(0), 0, 0, 0.0, 0, 0, 0, 0, false, uint64(0), 0, 0)
	f.Add("", uint8(255), uint8(255), int64(-1), -1, 1, 1.5, -1, 255, 1023, -1, true, uint64(1), -1, 70_000)
	f.Add("a domain that is longer than 31 bytes", uint8(1), uint8(2), int64(time.Hour), 1000, 1000, 0.5, 3, 300, 2000, 1<<20, true, uint64(1)<<63, 5, 1)
	f.Fuzz(func(t *testing.T, domain string, ttl, participant uint8, deadline int64, send, total int, rate float64, burst, fragment, message, fragments int, reduced bool, jump uint64, variables, depth int) {
		s := &knowledge.Sharing{
			Domain: domain, TTL: ttl, ParticipantTTL: participant, Deadline: time.Duration(deadline), SendLimit: send, TotalLimit: total,
			DropRate: rate, DropBurst: burst, FragmentSize: fragment, MaxMessage: message, MaxFragments: fragments, Reduced: reduced,
			MaxClockJump: jump, MaxVariables: variables, Depth: depth,
		}
		n := inproc.New()
		var kbs []*knowledge.Base
		for range 2 {
			link, err := n.Open(nil)
			if err != nil {
				t.Fatal(err)
			}
			defer link.Close()
			kb := knowledge.New()
			defer kb.Close()
			if _, err := kb.Attach(link, s); err != nil {
				known := errors.Is(err, knowledge.ErrSharing) || errors.Is(err, transport.ErrSettings) || errors.Is(err, transport.ErrTopic)
				if !known {
					t.Fatalf("%+v: %v", s, err)
				}
				return
			}
			kbs = append(kbs, kb)
		}
		if err := kbs[0].Set("x", karl.Int(1)); err != nil {
			t.Fatal(err)
		}
		if err := kbs[0].Send(soon(t)); err != nil {
			t.Fatal(err)
		}
		if send > 0 && send < 1000 || total > 0 && total < 1000 || rate > 0 || deadline > 0 || depth > 0 && depth < 8 {
			return // it may be dropped
		}
		arrived(t, kbs[1], "x", 1)
	})
}
