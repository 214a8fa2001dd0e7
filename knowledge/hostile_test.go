package knowledge_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/inproc"
	"github.com/madara-go/madara/transport/wire"
)

// stranger publishes messages that it makes up.
type stranger struct {
	t    *testing.T
	link transport.Event
}

func newStranger(t *testing.T, n *inproc.Network) stranger {
	link, err := n.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { link.Close() })
	return stranger{t, link}
}

// claim sends variables of the value 666 with a clock and quality.
func (s stranger) claim(originator string, clock uint64, quality uint32, names ...string) {
	s.t.Helper()
	h := wire.Header{
		Kind: wire.Normal, Domain: []byte("KaRL"), Originator: []byte(originator), Type: wire.MultiAssign,
		Clock: clock, Quality: quality, Updates: uint32(len(names)),
	}
	message := h.Append(nil)
	for _, name := range names {
		message = wire.AppendRecord(message, name, karl.Int(666), 1)
	}
	h.Size = uint64(len(message))
	h.Append(message[:0])
	if _, err := s.link.Publish("KaRL", message); err != nil {
		s.t.Fatal(err)
	}
}

// counted waits until an attachment has dropped so many for a reason.
func counted(t *testing.T, a *knowledge.Attachment, d transport.Drop, n uint64) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); a.Stats().Drops[d] != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%v is not %d: %v", d, n, a.Stats())
		}
	}
}

// arrived waits until the value of a variable is v.
func arrived(t *testing.T, kb *knowledge.Base, name string, v int64) {
	t.Helper()
	if _, err := kb.Wait(soon(t), fmt.Sprintf("%s == %d", name, v), nil); err != nil {
		t.Fatalf("%s is %v: %v", name, kb.Get(name), err)
	}
}

// TestPoisonedClocks lets a stranger claim clocks that would end all later
// updates of others.
func TestPoisonedClocks(t *testing.T) {
	n := inproc.New()
	honest, _ := attach(t, n, "honest", nil)
	victim, a := attach(t, n, "victim", nil)
	s := newStranger(t, n)
	for i, clock := range []uint64{math.MaxUint64, 1<<63 + 1} {
		s.claim("stranger", clock, 0, "x")
		counted(t, a, transport.DropStale, uint64(i+1))
	}
	s.claim("stranger", 1<<63, 0, "x")
	counted(t, a, transport.DropClock, 1)
	// Not in small steps either, nor under other names.
	for i := range uint64(50) {
		s.claim(fmt.Sprint("stranger", i), (i+1)<<38, 0, "y")
	}
	counted(t, a, transport.DropClock, 1+50-4)
	honest.Evaluate("x = 1; z = 1", nil)
	arrived(t, victim, "x", 1)
	// What a peer of ours may do: be far ahead once, and go on from there.
	victim.Evaluate("w = 1", nil)
	arrived(t, honest, "w", 1)

	n = inproc.New()
	trusting, b := attach(t, n, "trusting", &knowledge.Sharing{Compat: true})
	newStranger(t, n).claim("stranger", 1<<63, 0, "x")
	arrived(t, trusting, "x", 666)
	if d := b.Stats().Drops[transport.DropClock]; d != 0 {
		t.Errorf("%d dropped", d)
	}
}

func TestQualitiesAreCapped(t *testing.T) {
	n := inproc.New()
	victim, _ := attach(t, n, "victim", &knowledge.Sharing{Qualities: map[string]uint32{"pilot": 10, "": 3}})
	s := newStranger(t, n)
	for _, c := range []struct {
		originator    string
		claims, count uint32
	}{{"pilot", 10, 10}, {"pilot", 11, 10}, {"stranger", math.MaxUint32, 3}, {"stranger", 2, 2}} {
		name := fmt.Sprint(c.originator, c.claims)
		s.claim(c.originator, 1, c.claims, name)
		arrived(t, victim, name, 666)
		if r, _ := victim.Lookup(name); r.Quality != c.count {
			t.Errorf("quality %d of %s counts as %d, want %d", c.claims, c.originator, r.Quality, c.count)
		}
	}
	// Without a bound the variable is lost to everybody else.
	open, _ := attach(t, n, "open", nil)
	s.claim("stranger", 1, math.MaxUint32, "lost")
	arrived(t, open, "lost", 666)
	if err := open.Set("lost", karl.Int(1)); err == nil {
		t.Error("a quality of 2^32-1 does not count")
	}
}

func TestMessagesMakeFewNames(t *testing.T) {
	n := inproc.New()
	victim, a := attach(t, n, "victim", &knowledge.Sharing{MaxVariables: 10, NoSending: true}, knowledge.WithLimits(knowledge.Limits{Variables: 100}))
	half, b := attach(t, n, "half", nil, knowledge.WithLimits(knowledge.Limits{Variables: 100}))
	victim.Set("mine", karl.Int(1))
	s := newStranger(t, n)
	for i := range 200 {
		s.claim("stranger", 1, 0, fmt.Sprint("flood", i))
	}
	s.claim("stranger", 2, 0, "mine", "flood3")
	arrived(t, victim, "mine", 666)
	counted(t, a, transport.DropLimit, 190)
	counted(t, b, transport.DropLimit, 151) // "mine" too
	for _, kb := range []*knowledge.Base{victim, half} {
		if err := kb.Set("local", karl.Int(1)); err != nil {
			t.Error(err)
		}
	}
}
