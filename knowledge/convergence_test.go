package knowledge_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
	"github.com/madara-go/madara/transport/transporttest"
)

// A fleet is bases on one test network.
type fleet struct {
	t       *testing.T
	network *transporttest.Network
	bases   []*knowledge.Base
	random  *rand.Rand
}

func newFleet(t *testing.T, bases int, c transporttest.Conditions, s *knowledge.Sharing) *fleet {
	f := &fleet{t: t, network: transporttest.New(7, c), random: rand.New(rand.NewPCG(7, 7))}
	for i := range bases {
		e := f.network.Open(fmt.Sprint("agent", i))
		kb := knowledge.New(knowledge.WithID(fmt.Sprint("agent", i)))
		if _, err := kb.Attach(e, s); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			kb.Close()
			e.Close()
		})
		f.bases = append(f.bases, kb)
	}
	return f
}

// write lets random bases write variables that all share, and each its own.
func (f *fleet) write(writes int) {
	for range writes {
		i := f.random.IntN(len(f.bases))
		kb := f.bases[i]
		eval(f.t, kb, fmt.Sprintf("shared.%d = 'agent %d: %d'; ++own.%d", f.random.IntN(5), i, f.random.IntN(1000), i))
		time.Sleep(time.Duration(f.random.IntN(20)) * time.Millisecond)
	}
}

// disagree returns the first variable, among those with the prefix, that is not
// the same on all bases.
func (f *fleet) disagree(prefix string) string {
	first := map[string]string{}
	for name, r := range f.bases[0].All(prefix) {
		first[name] = r.Value.String()
	}
	for i, kb := range f.bases[1:] {
		n := 0
		for name, r := range kb.All(prefix) {
			n++
			if first[name] != r.Value.String() {
				return fmt.Sprintf("%s is %q on agent0 and %q on agent%d", name, first[name], r.Value, i+1)
			}
		}
		if n != len(first) {
			return fmt.Sprintf("agent%d has %d variables, agent0 %d", i+1, n, len(first))
		}
	}
	return ""
}

// rounds resends until all agree, and returns how many rounds that took.
func (f *fleet) rounds(prefix string, scope knowledge.Scope, most int) int {
	for round := 1; round <= most; round++ {
		for _, kb := range f.bases {
			if err := kb.Resend(f.t.Context(), scope); err != nil {
				f.t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		if f.disagree(prefix) == "" {
			return round
		}
	}
	return most + 1
}

var rough = transporttest.Conditions{Loss: 0.3, Duplicate: 0.1, Delay: time.Millisecond, Jitter: 30 * time.Millisecond}

// TestConvergence: after random writers on a bad network have stopped, periodic
// resends make all bases agree.
func TestConvergence(t *testing.T) {
	for _, tie := range []knowledge.TieRule{knowledge.TieValue, knowledge.TieNewcomer} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, 20, rough, &knowledge.Sharing{Tie: tie})
			f.write(400)
			time.Sleep(time.Second)
			own := f.rounds("own.", knowledge.Own, 10)
			if own > 10 {
				t.Errorf("tie rule %d: %s", tie, f.disagree("own."))
			}
			for i, kb := range f.bases { // variables with one writer end at its last value
				name := fmt.Sprint("own.", i)
				want := kb.Get(name)
				for j, other := range f.bases {
					if got := other.Get(name); !got.Equal(want) {
						t.Errorf("tie rule %d: %s is %v on agent%d, want %v", tie, name, got, j, want)
					}
				}
			}
			shared := f.rounds("shared.", knowledge.All, 40)
			t.Logf("tie rule %d: own variables agree after %d rounds, shared ones after %d more", tie, own, shared)
			if tie == knowledge.TieValue && shared > 10 {
				t.Errorf("with TieValue: %s", f.disagree("shared."))
			}
		})
	}
}

// TestHealedPartition: two halves that wrote apart agree after they met again.
func TestHealedPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 10, transporttest.Conditions{Loss: 0.3, Delay: time.Millisecond}, &knowledge.Sharing{Tie: knowledge.TieValue})
		f.write(50)
		f.network.Partition([]string{"agent0", "agent1", "agent2", "agent3"})
		f.write(200)
		f.network.Partition()
		if n := f.rounds("", knowledge.All, 10); n > 10 {
			t.Errorf("after 10 rounds: %s", f.disagree(""))
		}
	})
}

// TestReordering: a message that was overtaken does not undo a later one.
func TestReordering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, transporttest.Conditions{Jitter: 50 * time.Millisecond, Duplicate: 0.5}, nil)
		for range 500 {
			eval(t, f.bases[0], "++n")
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		check(t, f.bases[1], map[string]string{"n": "500"})
	})
}

// TestFragmentsOverNetwork sends values of many fragments over a bad network.
func TestFragmentsOverNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, transporttest.Conditions{Jitter: 20 * time.Millisecond, Duplicate: 0.3, MaxSize: 1000}, nil)
		big := make([]byte, 100_000)
		for i := range big {
			big[i] = byte(i * 7)
		}
		f.bases[0].Set("big", karl.File(karl.KindFile, big))
		f.bases[0].Set("small", karl.Int(1))
		if err := f.bases[0].Send(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := f.bases[1].Get("big"); !got.Equal(f.bases[0].Get("big")) {
			t.Errorf("big has %d bytes of %d", got.Len(), len(big))
		}
	})
}
