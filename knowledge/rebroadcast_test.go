package knowledge_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/udp"
)

// TestRebroadcastFleets sends updates through 24 bases that send them on, over a
// ring and over a mesh: each update is applied once by each base that it reaches,
// and no base sends one twice.
func TestRebroadcastFleets(t *testing.T) {
	const bases = 24
	for _, mesh := range []bool{false, true} {
		for ttl := 1; ttl <= 5; ttl++ {
			t.Run(fmt.Sprintf("mesh=%t/ttl=%d", mesh, ttl), func(t *testing.T) {
				var links []udp.UnicastLink
				for range bases {
					links = append(links, good(udp.Unicast("127.0.0.1:0", nil, &transport.Settings{ReadBuffer: 4 << 20})))
				}
				var kbs []*knowledge.Base
				applied := make([]map[string]int, bases) // by name, of each base's receiver
				for i, l := range links {
					var peers []netip.AddrPort
					for j, other := range links {
						near := (i+1)%bases == j || (j+1)%bases == i
						if i != j && (mesh || near) {
							peers = append(peers, other.LocalAddr())
						}
					}
					if err := l.SetPeers(peers); err != nil {
						t.Fatal(err)
					}
					counts := map[string]int{}
					applied[i] = counts
					kb := knowledge.New(knowledge.WithID(fmt.Sprint("base", i)), knowledge.WithManualSend()) // no resends to newcomers
					kbs = append(kbs, kb)
					good(kb.Attach(l, &knowledge.Sharing{
						Domain: "rebroadcast", // not what others on this host may send to a port that they knew
						TTL:    uint8(ttl), ParticipantTTL: 5, Depth: 4096,
						ReceiveFilters: []knowledge.RecordFilter{func(_ *knowledge.FilterContext, name string, v karl.Value) (karl.Value, bool) {
							counts[name]++
							return v, true
						}},
					}))
				}
				for i, kb := range kbs {
					if err := kb.Set(fmt.Sprint("v", i), karl.Int(int64(i))); err != nil {
						t.Fatal(err)
					}
					if err := kb.Send(soon(t)); err != nil {
						t.Fatal(err)
					}
				}
				reach := func(from, to int) bool {
					apart := min((from-to+bases)%bases, (to-from+bases)%bases)
					return from != to && (mesh || apart <= ttl)
				}
				for to, kb := range kbs {
					for from := range kbs {
						if !reach(from, to) {
							continue
						}
						arrived(t, kb, fmt.Sprint("v", from), int64(from))
					}
				}
				quiet(t, links)
				sent := uint64(0)
				for i, kb := range kbs {
					kb.Close()
					sent += links[i].Stats().Sent
					links[i].Close()
					if want := 2 * ttl; !mesh && len(applied[i]) != want {
						t.Errorf("base %d got %d variables, want %d", i, len(applied[i]), want)
					}
					for name, n := range applied[i] {
						if n != 1 {
							t.Errorf("base %d got %s %d times", i, name, n)
						}
					}
				}
				// Whoever has an update sends it to all its peers once, if hops are left.
				peers, senders := 2, 1+2*(ttl-1)
				if mesh {
					peers, senders = bases-1, bases
					if ttl == 1 {
						senders = 1
					}
				}
				if most := uint64(bases * senders * peers); sent > most {
					t.Errorf("%d datagrams, at most %d are due", sent, most)
				}
			})
		}
	}
}

// quiet waits until nothing is sent any more.
func quiet(t *testing.T, links []udp.UnicastLink) {
	t.Helper()
	last, same := uint64(0), 0
	for end := time.Now().Add(20 * time.Second); same < 10; time.Sleep(10 * time.Millisecond) {
		now := uint64(0)
		for _, l := range links {
			now += l.Stats().Sent + l.Stats().Received
		}
		if same++; now != last {
			last, same = now, 0
		}
		if time.Now().After(end) {
			t.Fatal("the fleet does not become quiet")
		}
	}
}
