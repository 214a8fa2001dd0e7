package knowledge_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/filter"
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

// poisonedClocks lets a stranger claim clocks that would end all later
// updates of others.
func poisonedClocks(t *testing.T) {
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

// cappedQualities lets a stranger claim qualities that nobody could write over.
func cappedQualities(t *testing.T) {
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

// fewNames lets a stranger make more names than the base may have.
func fewNames(t *testing.T) {
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

// attackTime is how long TestAttack lasts; MADARA_ATTACK sets another time.
func attackTime(t *testing.T) time.Duration {
	if s := os.Getenv("MADARA_ATTACK"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	return time.Second
}

// TestAttack lets a stranger send all that is hostile at full rate, and what it has
// heard again, while four peers exchange values: over sealed links and open ones.
func TestAttack(t *testing.T) {
	for _, sealed := range []bool{true, false} {
		t.Run(fmt.Sprintf("sealed=%t", sealed), func(t *testing.T) {
			n := inproc.New()
			key := make([]byte, 32)
			key[0] = 1
			var kbs []*knowledge.Base
			var shares []*knowledge.Attachment
			var links []transport.Event
			for i := range 4 {
				var s transport.Settings
				if sealed {
					s.Sealer = good(filter.NewAEAD(1, key))
				}
				link := good(n.Open(&s))
				kb := knowledge.New(knowledge.WithID(fmt.Sprint("honest", i)), knowledge.WithLimits(knowledge.Limits{Variables: 100}))
				t.Cleanup(func() { kb.Close(); link.Close() })
				kbs, links = append(kbs, kb), append(links, link)
				shares = append(shares, good(kb.Attach(link, nil)))
			}
			var before runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			stop := make(chan struct{})
			var attacking, writing sync.WaitGroup
			attacking.Go(func() { attack(t, n, stop) })
			for i, kb := range kbs {
				e := good(kb.Compile(fmt.Sprintf("++v%d", i)))
				writing.Go(func() {
					for end := time.Now().Add(attackTime(t)); time.Now().Before(end); time.Sleep(time.Millisecond) {
						e.Evaluate(nil)
					}
				})
			}
			writing.Wait()
			if sealed { // nothing is lost while it goes on
				for i, kb := range kbs {
					for _, other := range kbs {
						arrived(t, other, fmt.Sprint("v", i), kb.Get(fmt.Sprint("v", i)).Int())
					}
				}
			}
			close(stop)
			attacking.Wait()
			for range 3 { // what was lost beside the flood
				for _, kb := range kbs {
					if err := kb.Resend(soon(t), knowledge.Own); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(10 * time.Millisecond)
			}
			for i, kb := range kbs {
				want := kb.Get(fmt.Sprint("v", i)).Int()
				for _, other := range kbs {
					arrived(t, other, fmt.Sprint("v", i), want)
				}
				if want < int64(attackTime(t)/time.Millisecond)/20 {
					t.Errorf("honest%d wrote %d times only", i, want)
				}
				stats, link := shares[i].Stats(), links[i].Stats()
				if sealed && link.Drops[transport.DropUnknownKey]+link.Drops[transport.DropReplayed]+link.Drops[transport.DropForged] == 0 {
					t.Errorf("nothing is counted: %v", link)
				}
				if !sealed {
					for _, d := range []transport.Drop{
						transport.DropNotKaRL, transport.DropSize, transport.DropEcho, transport.DropDomain, transport.DropFragment,
						transport.DropFragmentFull, transport.DropRecord, transport.DropName, transport.DropClock, transport.DropLimit,
					} {
						if stats.Drops[d] == 0 {
							t.Errorf("%v is not counted: %v", d, stats)
						}
					}
				}
			}
			var after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&after)
			const most = 160 << 20 // four times 16 MiB of fragments, and 256 datagrams of 50 KB
			if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > most {
				t.Errorf("memory grew by %d MiB", grown>>20)
			}
		})
	}
}

// attack publishes what is hostile until stop.
func attack(t *testing.T, n *inproc.Network, stop <-chan struct{}) {
	link := good(n.Open(nil))
	defer link.Close()
	var mu sync.Mutex
	var heard [][]byte
	good(link.Subscribe("KaRL", nil, func(m *transport.Message) {
		mu.Lock()
		defer mu.Unlock()
		if len(heard) < 1000 {
			heard = append(heard, bytes.Clone(m.Payload))
		}
	}))
	files := good(filepath.Glob("../transport/testdata/wire/*.bin"))
	var hostile [][]byte
	for _, f := range files {
		hostile = append(hostile, good(os.ReadFile(f)))
	}
	for _, name := range []string{"honest0", "nobody"} {
		h := wire.Header{Kind: wire.Normal, Domain: []byte("KaRL"), Originator: []byte(name), Type: wire.MultiAssign, Updates: 2}
		for _, c := range []uint64{1 << 63, math.MaxUint64} {
			h.Clock = c
			m := wire.AppendRecord(wire.AppendRecord(h.Append(nil), ".id", karl.Int(1), 1), "poison", karl.Int(1), 1)
			h.Size = uint64(len(m))
			h.Append(m[:0])
			hostile = append(hostile, m)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		var d []byte
		switch mu.Lock(); i % 4 {
		case 0:
			d = bytes.Clone(hostile[random.IntN(len(hostile))])
			if random.IntN(2) == 0 && len(d) > 0 { // damaged
				d[random.IntN(len(d))] ^= 1 << random.IntN(8)
				d = d[:len(d)-random.IntN(min(3, len(d)))]
			}
		case 1:
			if len(heard) > 0 {
				d = heard[random.IntN(len(heard))]
			}
		case 2: // a fragment of a message that never ends
			h := wire.Header{Domain: []byte("KaRL"), Originator: fmt.Append(nil, "flood", i%5000), Clock: uint64(i)}
			d = wire.AppendFragment(nil, h, make([]byte, 100_000), 50_000, 0)
		case 3: // names
			h := wire.Header{Kind: wire.Normal, Domain: []byte("KaRL"), Originator: fmt.Append(nil, "names", i%100), Type: wire.MultiAssign, Updates: 1, Clock: 1}
			d = wire.AppendRecord(h.Append(nil), fmt.Sprint("name", i), karl.String("x"), 1)
			h.Size = uint64(len(d))
			h.Append(d[:0])
		}
		mu.Unlock()
		if _, err := link.Publish("KaRL", d); err != nil {
			t.Error(err)
			return
		}
	}
}
