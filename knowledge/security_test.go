package knowledge_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
	recordfilter "github.com/madara-go/madara/knowledge/filter"
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/filter"
	"github.com/madara-go/madara/transport/tcp"
	"github.com/madara-go/madara/transport/transporttest"
	"github.com/madara-go/madara/transport/udp"
	"github.com/madara-go/madara/transport/wire"
)

// TestSecurity is the attacks that MADARA's transports are known for, one by one.
func TestSecurity(t *testing.T) {
	for _, attack := range []struct {
		name string
		test func(t *testing.T)
	}{
		{"fragment total beyond limit", fragmentTotalBeyondLimit},
		{"fragment total below data", fragmentTotalBelowData},
		{"fragment size beyond datagram", func(t *testing.T) { fragmentSizes(t, 3_000_000_000, 1<<40, math.MaxUint64, 254) }},
		{"fragment size below header", func(t *testing.T) { fragmentSizes(t, 0, 1, 152, 252) }},
		{"fragment flood", fragmentFlood},
		{"array count overflow", func(t *testing.T) { impossibleCount(t, "case_array_count_overflow.bin", karl.Ints([]int64{1}), 1<<29) }},
		{"number without a value", func(t *testing.T) { impossibleCount(t, "case_int_size_zero.bin", karl.Int(1), 0) }},
		{"value longer than the rest", valueLongerThanTheRest},
		{"short datagrams", shortDatagrams},
		{"filter size beyond data", filterSizeBeyondData},
		{"decompression bomb", decompressionBomb},
		{"message beyond limit", messageBeyondLimit},
		{"poisoned clock", poisonedClocks},
		{"poisoned quality", cappedQualities},
		{"local names", localNames},
		{"registry redirection", registryRedirection},
		{"inner header", innerHeader},
		{"reduced header", reducedHeader},
		{"replay", replay},
		{"rebroadcast amplification", rebroadcastAmplification},
		{"names of files", namesOfFiles},
		{"panics", panics},
		{"flood of names", fewNames},
		{"files", files},
		{"log injection", logInjection},
		{"settings as programs", settingsAsPrograms},
	} {
		t.Run(attack.name, attack.test)
	}
}

// siege is a base on a network on which a stranger publishes anything. What
// arrives after that must still be applied.
type siege struct {
	t       *testing.T
	network *transporttest.Network
	kb      *knowledge.Base
	link    transport.Event // of the base
	share   *knowledge.Attachment
	from    transport.Event // of the stranger
	alive   int64
}

func besiege(t *testing.T, s *knowledge.Sharing, opts ...knowledge.Option) *siege {
	t.Helper()
	n := transporttest.New(1, transporttest.Conditions{})
	v := &siege{t: t, network: n, link: n.Open("10.0.0.1:4000"), from: n.Open("10.0.0.9:4000")}
	v.kb = knowledge.New(append([]knowledge.Option{knowledge.WithID("victim")}, opts...)...)
	v.share = good(v.kb.Attach(v.link, s))
	t.Cleanup(func() { v.kb.Close(); v.link.Close(); v.from.Close() })
	return v
}

// send publishes datagrams, not more at once than the base's inbox holds.
func (v *siege) send(datagrams ...[]byte) {
	v.t.Helper()
	for i, d := range datagrams {
		if _, err := v.from.Publish("", d); err != nil {
			v.t.Fatal(err)
		}
		if i%100 == 99 {
			v.settle()
		}
	}
}

// settle waits until what was sent has been taken.
func (v *siege) settle() {
	v.t.Helper()
	v.alive++
	if _, err := v.from.Publish("", encode(wire.Header{Originator: []byte("honest"), Clock: 1}, record{"alive", karl.Int(v.alive)})); err != nil {
		v.t.Fatal(err)
	}
	arrived(v.t, v.kb, "alive", v.alive)
}

// drops compares all that was dropped with what should have been.
func (v *siege) drops(want map[transport.Drop]uint64) {
	v.t.Helper()
	v.settle()
	stats := v.share.Stats()
	for d := range transport.Drop(transport.Drops) {
		if stats.Drops[d] != want[d] {
			v.t.Errorf("%v counts %d, want %d", d, stats.Drops[d], want[d])
		}
	}
}

type record struct {
	name  string
	value karl.Value
}

// encode makes a message; what is empty in the header becomes what is usual.
func encode(h wire.Header, records ...record) []byte {
	if h.Domain == nil {
		h.Domain = []byte("KaRL")
	}
	if h.Originator == nil {
		h.Originator = []byte("stranger")
	}
	h.Type, h.Updates = wire.MultiAssign, uint32(len(records))
	m := h.Append(nil)
	for _, r := range records {
		m = wire.AppendRecord(m, r.name, r.value, 1)
	}
	h.Size = uint64(len(m))
	h.Append(m[:0])
	return m
}

func wireFixture(name string) []byte {
	return good(os.ReadFile(filepath.Join("../transport/testdata/wire", name)))
}

// fragment makes a fragment that is consistent with itself.
func fragment(originator string, clock uint64, index, count int, total uint64, data []byte) []byte {
	h := wire.Header{
		Kind: wire.Fragment, Size: uint64(wire.FragmentSize + len(data)), Domain: []byte("KaRL"), Originator: []byte(originator),
		Type: wire.MultiAssign, Clock: clock, Updates: uint32(count), Index: uint32(index), Total: total,
	}
	return append(h.Append(nil), data...)
}

func fragmentTotalBeyondLimit(t *testing.T) {
	v := besiege(t, nil)
	v.send(wireFixture("case_fragment_huge_total.0.bin"), wireFixture("case_fragment_huge_total.1.bin"))
	for _, total := range []uint64{500_001, 1 << 31, 1 << 40, math.MaxUint64} {
		v.send(fragment("stranger", 1, 0, 2, total, make([]byte, 100)))
	}
	v.drops(map[transport.Drop]uint64{transport.DropFragment: 6})
	// As many fragments as there may be bytes: room is taken for what came only.
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range 100 {
		v.send(fragment("stranger", uint64(i), 0, 500_000, 500_000, []byte("x")))
	}
	v.settle()
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 4<<20 {
		t.Errorf("100 fragments of one byte take %d bytes", taken)
	}
}

func fragmentTotalBelowData(t *testing.T) {
	v := besiege(t, nil)
	v.send(wireFixture("case_fragment_small_total.0.bin"), wireFixture("case_fragment_small_total.1.bin"))
	v.send(fragment("stranger", 1, 0, 2, 150, make([]byte, 100)), fragment("stranger", 1, 1, 2, 150, make([]byte, 100)))
	v.send(fragment("stranger", 2, 0, 1, 99, make([]byte, 100)))
	v.send(fragment("stranger", 3, 0, 0, 100, make([]byte, 100)), fragment("stranger", 3, 5, 5, 1000, make([]byte, 100)))
	v.drops(map[transport.Drop]uint64{transport.DropFragment: 7})
}

// fragmentSizes sends fragments of 253 bytes that claim to have others.
func fragmentSizes(t *testing.T, sizes ...uint64) {
	v := besiege(t, nil)
	for _, size := range sizes {
		d := fragment("stranger", 1, 0, 2, 200, make([]byte, 100))
		h := good(wire.ParseHeader(d))
		h.Size = size
		h.Append(d[:0])
		v.send(d)
	}
	v.drops(map[transport.Drop]uint64{transport.DropFragment: uint64(len(sizes))})
}

func fragmentFlood(t *testing.T) {
	// Half a message of an honest peer waits while a stranger begins thousands.
	v := besiege(t, nil)
	peer := v.network.Open("10.0.0.2:4000")
	t.Cleanup(func() { peer.Close() })
	m := encode(wire.Header{Originator: []byte("peer"), Clock: 1}, record{"map", karl.File(karl.KindFile, make([]byte, 100_000))})
	h := wire.Header{Domain: []byte("KaRL"), Originator: []byte("peer"), Clock: 1}
	good(peer.Publish("", wire.AppendFragment(nil, h, m, 60_000, 0)))
	v.settle()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	data := make([]byte, 50_000)
	for i := range 1000 {
		v.send(fragment(fmt.Sprint("stranger", i), uint64(i), 0, 2, 100_000, data))
		if i%100 == 99 {
			v.settle()
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	// The fragments, and the 256 datagrams of the inbox.
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
		t.Errorf("the flood takes %d MiB", grown>>20)
	}
	good(peer.Publish("", wire.AppendFragment(nil, h, m, 60_000, 1)))
	v.settle()
	if !v.kb.Get("map").Exists() {
		t.Error("the flood took the place of the message of another")
	}
	stats := v.share.Stats()
	if n := stats.Drops[transport.DropFragmentFull]; n < 900 || n != stats.Dropped() {
		t.Errorf("of 1000 fragments: %v", stats)
	}
	// Nothing is kept of whom nobody trusts.
	v = besiege(t, &knowledge.Sharing{Trusted: []string{"10.0.0.9:4000", "honest"}})
	v.send(fragment("stranger", 1, 0, 2, 200, make([]byte, 100)), fragment("stranger", 1, 1, 2, 200, make([]byte, 100)))
	v.drops(map[transport.Drop]uint64{transport.DropUntrusted: 2})
	// What does not come in time is forgotten.
	synctest.Test(t, func(t *testing.T) {
		v := besiege(t, nil)
		v.send(fragment("stranger", 1, 0, 2, 200, make([]byte, 100)))
		v.settle()
		time.Sleep(2 * time.Second)
		v.send(fragment("stranger", 1, 1, 2, 200, make([]byte, 100)))
		v.drops(map[transport.Drop]uint64{transport.DropFragmentOld: 1})
	})
}

// impossibleCount sends a fixture whose last record has a count that no sender
// makes, and such a record behind a good one: nothing of the message counts.
func impossibleCount(t *testing.T, fixture string, x karl.Value, count uint32) {
	v := besiege(t, nil)
	m := encode(wire.Header{Clock: 1}, record{"good", karl.Int(1)}, record{"x", x})
	binary.LittleEndian.PutUint32(m[len(m)-20:], count) // before the time and eight bytes of value
	v.send(wireFixture(fixture), m)
	v.drops(map[transport.Drop]uint64{transport.DropRecord: 2})
	for name := range v.kb.All("") {
		if name != "alive" {
			t.Errorf("%s was applied", name)
		}
	}
}

func valueLongerThanTheRest(t *testing.T) {
	v := besiege(t, nil)
	v.send(wireFixture("case_stale_value.bin"))
	v.drops(map[transport.Drop]uint64{transport.DropRecord: 1})
	check(t, v.kb, map[string]string{"one": "5", "big": ""})
}

func shortDatagrams(t *testing.T) {
	long := encode(wire.Header{Originator: []byte("stranger"), Clock: 1}, record{"long", karl.String("text")})
	for name, filters := range chains {
		t.Run(name, func(t *testing.T) {
			v := besiege(t, nil)
			if filters != nil {
				v.kb.Close()
				v = besiege(t, &knowledge.Sharing{Filters: filters, NoSending: true})
			}
			m := good(wire.Chain(filters).Encode(long))
			for n := range m {
				good(v.from.Publish("", m[:n]))
				if n%100 == 99 {
					waitReceived(t, v.share, uint64(n+1))
				}
			}
			waitReceived(t, v.share, uint64(len(m)))
			stats := v.share.Stats()
			header, size := uint64(wire.NormalSize), uint64(len(m)-wire.NormalSize)
			if filters != nil {
				header, size = 0, 0
				if n := stats.Drops[transport.DropDecode]; n != uint64(len(m)) {
					t.Errorf("%d of %d are not decoded", n, len(m))
				}
			}
			if stats.Drops[transport.DropNotKaRL] != header || stats.Drops[transport.DropSize] != size {
				t.Errorf("%v", stats)
			}
			if v.kb.Get("long").Exists() {
				t.Error("it was applied")
			}
		})
	}
}

// waitReceived waits until n datagrams have been taken, and the one before is done
// with.
func waitReceived(t *testing.T, a *knowledge.Attachment, n uint64) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		s := a.Stats()
		if s.Received == n && s.Dropped() == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d are not in: %v", n, s)
		}
	}
}

func filterSizeBeyondData(t *testing.T) {
	for chain, fixture := range map[string]string{"lz4": "lz4.bin", "ssl": "aes_password.bin"} {
		v := besiege(t, &knowledge.Sharing{Filters: chains[chain], NoSending: true})
		d := wireFixture(fixture)
		for i, size := range []uint64{0, uint64(len(d)) - 21, uint64(len(d)) - 19, 500_000, 1 << 40, math.MaxUint64} {
			id, _, err := wire.ParseFilterHeader(d)
			if err != nil {
				t.Fatal(err)
			}
			bad := append(wire.AppendFilterHeader(nil, string(id), int(size)), d[20:]...)
			good(v.from.Publish("", bad))
			waitReceived(t, v.share, uint64(i+1))
		}
		if s := v.share.Stats(); s.Drops[transport.DropDecode] != 6 {
			t.Errorf("%s: %v", chain, s)
		}
		for name := range v.kb.All("") {
			t.Errorf("%s: %s was applied", chain, name)
		}
	}
}

func decompressionBomb(t *testing.T) {
	v := besiege(t, &knowledge.Sharing{Filters: []transport.Filter{filter.LZ4{}}, NoSending: true})
	bomb := good(wire.Chain{filter.LZ4{}}.Encode(make([]byte, 15<<20)))
	if len(bomb) > transport.MaxDatagramSize {
		t.Fatalf("the bomb has %d bytes", len(bomb))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range 100 {
		good(v.from.Publish("", bomb))
		waitReceived(t, v.share, uint64(i+1))
	}
	runtime.ReadMemStats(&after)
	if s := v.share.Stats(); s.Drops[transport.DropDecode] != 100 {
		t.Errorf("%v", s)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 100<<20 {
		t.Errorf("100 bombs took %d MiB", taken>>20)
	}
}

// messageBeyondLimit sends over a link that carries messages of any size.
func messageBeyondLimit(t *testing.T) {
	from := good(tcp.NewEvent("127.0.0.1:0", nil, nil))
	to := good(tcp.NewEvent("", []string{from.LocalAddr().String()}, nil))
	kb := knowledge.New()
	t.Cleanup(func() { kb.Close(); from.Close(); to.Close() })
	share := good(kb.Attach(to, nil))
	if err := from.Ready(soon(t), "KaRL", 1); err != nil {
		t.Fatal(err)
	}
	with := func(name string, size int) []byte {
		head := len(encode(wire.Header{}, record{name, karl.File(karl.KindFile, nil)}))
		return encode(wire.Header{}, record{name, karl.File(karl.KindFile, make([]byte, size-head))})
	}
	good(from.Publish("KaRL", with("large", 500_001)))
	good(from.Publish("KaRL", with("fits", 500_000)))
	await(t, kb, "#size(fits) > 1000")
	if s := share.Stats(); s.Drops[transport.DropSize] != 1 || s.Dropped() != 1 || kb.Get("large").Exists() {
		t.Errorf("%v", s)
	}
}

func localNames(t *testing.T) {
	for compat, want := range map[bool]string{false: "", true: "5"} {
		v := besiege(t, &knowledge.Sharing{Compat: compat})
		v.send(wireFixture("case_local_name.bin"))
		drops := map[transport.Drop]uint64{transport.DropName: 1}
		if compat {
			drops = nil
		}
		v.drops(drops)
		check(t, v.kb, map[string]string{".loc": want})
	}
	v := besiege(t, nil)
	v.send(encode(wire.Header{}, record{strings.Repeat("n", 4097), karl.Int(1)}, record{strings.Repeat("n", 4096), karl.Int(2)}))
	v.drops(map[transport.Drop]uint64{transport.DropName: 1})
	check(t, v.kb, map[string]string{strings.Repeat("n", 4096): "2"})
}

// registryRedirection lets somebody who is no registry name agents.
func registryRedirection(t *testing.T) {
	open := func() udp.UnicastLink {
		l := good(udp.Unicast("127.0.0.1:0", nil, nil))
		t.Cleanup(func() { l.Close() })
		return l
	}
	server, link, stranger, third := open(), open(), open(), open()
	kb := newBase(t)
	r := good(recordfilter.JoinRegistry(kb, link, []string{server.LocalAddr().String()}, knowledge.Sharing{}, nil))
	t.Cleanup(func() { r.Close() })
	say := func(who udp.UnicastLink, names ...string) {
		t.Helper()
		records := []record{{"x", karl.Int(int64(len(names)))}}
		for _, name := range names {
			records = append(records, record{name, karl.Int(1)})
		}
		if err := who.SetPeers([]netip.AddrPort{link.LocalAddr()}); err != nil {
			t.Fatal(err)
		}
		good(who.Publish("", encode(wire.Header{Originator: []byte(who.LocalAddr().String()), Clock: 1}, records...)))
		arrived(t, kb, "x", int64(len(names)))
	}
	endpoint := "domain.KaRL.endpoints." + third.LocalAddr().String()
	say(stranger, endpoint)
	if kb.Get(endpoint).Exists() {
		t.Error("a stranger named an agent")
	}
	eval(t, kb, "mine = 1")
	if n := third.Stats().Received; n != 0 {
		t.Errorf("%d datagrams went where the stranger said", n)
	}
	say(server, endpoint, "other")
	eval(t, kb, "mine = 2")
	for end := time.Now().Add(20 * time.Second); third.Stats().Received == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the registry's word does not count")
		}
	}
}

// innerHeader puts messages into fragments whose own header is harmless.
func innerHeader(t *testing.T) {
	now := time.Hour
	for _, c := range []struct {
		name  string
		inner wire.Header
		want  transport.Drop
	}{
		{"domain", wire.Header{Domain: []byte("other"), Timestamp: uint64(now)}, transport.DropDomain},
		{"echo", wire.Header{Originator: []byte("victim"), Timestamp: uint64(now)}, transport.DropEcho},
		{"banned", wire.Header{Originator: []byte("banned"), Timestamp: uint64(now)}, transport.DropUntrusted},
		{"reduced", wire.Header{Kind: wire.Reduced, Timestamp: uint64(now)}, transport.DropReduced},
		{"deadline", wire.Header{Timestamp: 1}, transport.DropDeadline},
		{"fragment", wire.Header{Kind: wire.Fragment, Timestamp: uint64(now)}, transport.DropNotKaRL},
	} {
		v := besiege(t, &knowledge.Sharing{Banned: []string{"banned"}, Deadline: time.Minute}, knowledge.WithClock(func() time.Duration { return now }))
		m := encode(c.inner, record{"x", karl.Int(666)}, record{"filling", karl.String(strings.Repeat("x", 300))})
		for i := range wire.Fragments(len(m), 256) {
			v.send(wire.AppendFragment(nil, wire.Header{Domain: []byte("KaRL"), Originator: []byte("stranger"), Clock: 1, Timestamp: uint64(now)}, m, 256, i))
		}
		counted(t, v.share, c.want, 1)
		if s := v.share.Stats(); s.Dropped() != 1 || v.kb.Get("x").Exists() {
			t.Errorf("%s: %v", c.name, s)
		}
	}
}

// reducedHeader sends what names neither its originator nor its domain.
func reducedHeader(t *testing.T) {
	m := encode(wire.Header{Kind: wire.Reduced, Clock: 1}, record{"x", karl.Int(666)})
	for _, c := range []struct {
		name  string
		share knowledge.Sharing
		drop  transport.Drop
		x     string
	}{
		{"nobody is checked", knowledge.Sharing{}, transport.DropReduced, "666"},
		{"banned originator", knowledge.Sharing{Banned: []string{"somebody"}}, transport.DropReduced, ""},
		{"trusted originators", knowledge.Sharing{Trusted: []string{"10.0.0.9:4000", "honest"}}, transport.DropReduced, ""},
		{"untrusted endpoint", knowledge.Sharing{Trusted: []string{"10.0.0.8:4000", "honest"}, Reduced: true}, transport.DropUntrusted, ""},
		{"banned endpoint", knowledge.Sharing{Banned: []string{"10.0.0.9:4000"}, Reduced: true}, transport.DropUntrusted, ""},
		{"a fleet of reduced headers", knowledge.Sharing{Trusted: []string{"10.0.0.9:4000"}, Reduced: true}, transport.DropReduced, "666"},
		{"as MADARA", knowledge.Sharing{Trusted: []string{"10.0.0.9:4000"}, Compat: true}, transport.DropReduced, "666"},
	} {
		v := besiege(t, &c.share)
		v.send(m)
		want := uint64(0)
		if c.x == "" {
			want = 1
			counted(t, v.share, c.drop, 1)
		} else {
			arrived(t, v.kb, "x", 666)
		}
		if s := v.share.Stats(); s.Dropped() != want {
			t.Errorf("%s: %v", c.name, s)
		}
		check(t, v.kb, map[string]string{"x": c.x})
	}
}

// replay sends what was recorded of sealed traffic: on every link that seals, and a
// whole set of fragments.
func replay(t *testing.T) {
	replayed(t)
	n := transporttest.New(1, transporttest.Conditions{})
	key := bytes.Repeat([]byte{7}, 32)
	open := func(name string) (transport.Event, *knowledge.Base) {
		l := good(n.OpenWith(name, &transport.Settings{Sealer: good(filter.NewAEAD(1, key))}))
		kb := knowledge.New(knowledge.WithID(name))
		good(kb.Attach(l, nil))
		t.Cleanup(func() { kb.Close(); l.Close() })
		return l, kb
	}
	_, sender := open("sender")
	link, receiver := open("receiver")
	stranger := n.Open("stranger")
	t.Cleanup(func() { stranger.Close() })
	var mu sync.Mutex
	var heard [][]byte
	good(stranger.Subscribe("", nil, func(m *transport.Message) {
		mu.Lock()
		heard = append(heard, bytes.Clone(m.Payload))
		mu.Unlock()
	}))
	sender.Set("map", karl.File(karl.KindFile, make([]byte, 200_000)))
	eval(t, sender, "x = 1")
	arrived(t, receiver, "x", 1)
	await(t, receiver, "#size(map) == 200000")
	sent := uint64(0)
	for end := time.Now().Add(20 * time.Second); sent < 4; time.Sleep(time.Millisecond) {
		mu.Lock()
		sent = uint64(len(heard))
		mu.Unlock()
		if time.Now().After(end) {
			t.Fatalf("heard %d", sent)
		}
	}
	receiver.Delete("map")
	mu.Lock()
	list := append([][]byte(nil), heard...)
	mu.Unlock()
	for _, d := range list {
		good(stranger.Publish("", d))
	}
	for end := time.Now().Add(20 * time.Second); link.Stats().Drops[transport.DropReplayed] < uint64(len(list)); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d were sent again: %v", len(list), link.Stats())
		}
	}
	if receiver.Get("map").Exists() {
		t.Error("a recorded message was applied")
	}
}

func rebroadcastAmplification(t *testing.T) {
	message := func(ttl uint8, clock uint64) []byte {
		return encode(wire.Header{TTL: ttl, Clock: clock}, record{"x", karl.Int(int64(clock))})
	}
	// By default nothing is sent on.
	v := besiege(t, nil)
	v.send(message(255, 1))
	v.drops(nil)
	if s := v.link.Stats(); s.Sent != 0 {
		t.Errorf("%v", s)
	}
	// What may go further than this base lets it is not; the rest goes once.
	v = besiege(t, &knowledge.Sharing{ParticipantTTL: 3})
	v.send(message(255, 1), message(4, 2))
	for range 10 {
		v.send(message(3, 3))
	}
	v.drops(map[transport.Drop]uint64{transport.DropRebroadcast: 2 + 9, transport.DropEcho: 1})
	if s := v.link.Stats(); s.Sent != 1 {
		t.Errorf("%v", s)
	}
	// And not faster than it may.
	v = besiege(t, &knowledge.Sharing{ParticipantTTL: 3, SendLimit: 100})
	for i := range 100 {
		v.send(message(3, uint64(i)))
	}
	v.settle()
	most := uint64(1000/len(message(3, 0)) + 1)
	if s := v.share.Stats(); v.link.Stats().Sent != most || s.Drops[transport.DropRebroadcast] != 100-most {
		t.Errorf("sent %d, at most %d: %v", v.link.Stats().Sent, most, s)
	}
}

// namesOfFiles lets a peer choose the name of a file that a program of ours opens.
func namesOfFiles(t *testing.T) {
	dir := t.TempDir()
	inside := filepath.Join(dir, "inside")
	if err := os.MkdirAll(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Join(dir, "secret"), filepath.Join(inside, "public")} {
		if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root := good(os.OpenRoot(inside))
	defer root.Close()
	if err := root.Symlink("../secret", "link"); err != nil {
		t.Fatal(err)
	}
	v := besiege(t, &knowledge.Sharing{OnData: "got = ''; got = #read_file(file, 'string'); wrote = #write_file(target, 'x')"}, knowledge.WithFiles(root))
	for _, name := range []string{"../secret", filepath.Join(dir, "secret"), "link", "public"} {
		v.send(encode(wire.Header{Clock: 1}, record{"file", karl.String(name)}, record{"target", karl.String("../made")}))
		v.settle()
		want := ""
		if name == "public" {
			want = "content"
		}
		if got := v.kb.Get("got").String(); got != want {
			t.Errorf("%s gave %q", name, got)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was written outside: %v", err)
	}
}

// faulty is filters and a Sealer that panic the first time they are used.
type faulty struct{ once *sync.Once }

func newFaulty() faulty { return faulty{new(sync.Once)} }

func (f faulty) copy(dst, src []byte) ([]byte, error) {
	f.once.Do(func() { panic("no") })
	return append(dst, src...), nil
}

func (f faulty) ID() string                                    { return "faulty" }
func (f faulty) Encode(dst, src []byte) ([]byte, error)        { return f.copy(dst, src) }
func (f faulty) Decode(dst, src []byte, _ int) ([]byte, error) { return f.copy(dst, src) }
func (f faulty) Overhead() int                                 { return 0 }
func (f faulty) Seal(dst, datagram []byte) ([]byte, error)     { return f.copy(dst, datagram) }
func (f faulty) Open(dst, datagram []byte) ([]byte, error)     { return f.copy(dst, datagram) }

func (f faulty) record(_ *knowledge.FilterContext, _ string, v karl.Value) (karl.Value, bool) {
	f.copy(nil, nil)
	return v, true
}
func (f faulty) aggregate(*knowledge.FilterContext, map[string]karl.Value) { f.copy(nil, nil) }

// panics has code of the user fail once in each place: it is counted, and what
// comes next goes on.
func panics(t *testing.T) {
	sound := newFaulty()
	sound.once.Do(func() {})
	records := func(f faulty) []knowledge.RecordFilter { return []knowledge.RecordFilter{f.record} }
	aggregates := func(f faulty) []knowledge.AggregateFilter { return []knowledge.AggregateFilter{f.aggregate} }
	for name, c := range map[string]struct {
		out, in knowledge.Sharing
		drop    transport.Drop
	}{
		"encode":               {knowledge.Sharing{Filters: []transport.Filter{newFaulty()}}, knowledge.Sharing{Filters: []transport.Filter{sound}}, transport.DropEncode},
		"decode":               {knowledge.Sharing{Filters: []transport.Filter{sound}}, knowledge.Sharing{Filters: []transport.Filter{newFaulty()}}, transport.DropDecode},
		"record filter out":    {knowledge.Sharing{SendFilters: records(newFaulty())}, knowledge.Sharing{}, transport.DropEncode},
		"record filter in":     {knowledge.Sharing{}, knowledge.Sharing{ReceiveFilters: records(newFaulty())}, transport.DropFiltered},
		"aggregate filter out": {knowledge.Sharing{SendAggregateFilters: aggregates(newFaulty())}, knowledge.Sharing{}, transport.DropEncode},
		"aggregate filter in":  {knowledge.Sharing{}, knowledge.Sharing{ReceiveAggregateFilters: aggregates(newFaulty())}, transport.DropFiltered},
		"filter of what is sent on": {knowledge.Sharing{TTL: 2}, knowledge.Sharing{ParticipantTTL: 2, RebroadcastFilters: records(newFaulty())},
			transport.DropFiltered},
	} {
		n := transporttest.New(1, transporttest.Conditions{})
		a, b, sender, receiver := pair(t, n.Open("a"), n.Open("b"), &c.out, &c.in)
		for i := range int64(3) {
			a.Set("x", karl.Int(i+1))
			a.Send(soon(t))
		}
		arrived(t, b, "x", 3)
		stats := sender.Stats()
		if c.drop != transport.DropEncode {
			stats = receiver.Stats()
		}
		if stats.Drops[c.drop] != 1 || stats.Dropped() != 1+stats.Drops[transport.DropEcho] {
			t.Errorf("%s: %v", name, stats)
		}
	}
	for kind, open := range links {
		from, to := open(t, transport.Settings{Sealer: newFaulty()}, transport.Settings{Sealer: newFaulty()})
		a, b, _, _ := pair(t, from, to, nil, nil)
		if from.Topics() {
			if err := from.Ready(soon(t), "KaRL", 2); err != nil {
				t.Fatal(err)
			}
		}
		for i := range int64(3) { // not sealed, not opened, and then it goes
			for end := time.Now().Add(20 * time.Second); i == 2 && to.Stats().Drops[transport.DropOpen] == 0; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%s: %v", kind, to.Stats())
				}
			}
			a.Set("x", karl.Int(i+1))
			a.Send(soon(t))
		}
		arrived(t, b, "x", 3)
		if seal, open := from.Stats().Drops[transport.DropSeal], to.Stats().Drops[transport.DropOpen]; seal != 1 || open != 1 {
			t.Errorf("%s: sealing %d, opening %d", kind, seal, open)
		}
	}
	// A function that the program of OnData calls.
	once := newFaulty()
	v := besiege(t, &knowledge.Sharing{OnData: "f(); ++.done"})
	v.kb.Define("f", func(*knowledge.Call) (karl.Value, error) { once.copy(nil, nil); return karl.Int(1), nil })
	v.settle()
	v.settle()
	await(t, v.kb, ".done == 1")
}

// pair attaches two bases, a to what sends and b to what receives.
func pair(t *testing.T, from, to transport.Event, out, in *knowledge.Sharing) (a, b *knowledge.Base, sender, receiver *knowledge.Attachment) {
	t.Helper()
	a, b = knowledge.New(knowledge.WithID("a")), knowledge.New(knowledge.WithID("b"))
	t.Cleanup(func() { a.Close(); b.Close(); from.Close(); to.Close() })
	return a, b, good(a.Attach(from, out)), good(b.Attach(to, in))
}

// files is what a program from a stranger, as a checkpoint in text is one, may read.
func files(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "large"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	root := good(os.OpenRoot(dir))
	defer root.Close()
	closed := newBase(t)
	if _, err := closed.Evaluate("x = #read_file('large')", nil); !errors.Is(err, os.ErrPermission) || closed.Get("x").Exists() {
		t.Errorf("without WithFiles: %v", err)
	}
	bounded := newBase(t, knowledge.WithFiles(root), knowledge.WithLimits(knowledge.Limits{String: 1000}))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := bounded.Evaluate("x = #read_file('large')", nil)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, knowledge.ErrLimit) || after.TotalAlloc-before.TotalAlloc > 512<<10 {
		t.Errorf("a large file took %d bytes: %v", after.TotalAlloc-before.TotalAlloc, err)
	}
}

// settingsAsPrograms has a program from a stranger reach for the host.
func settingsAsPrograms(t *testing.T) {
	t.Setenv("SECRET", "content")
	kb := newBase(t)
	for _, src := range []string{"#read_file('/etc/hostname')", "#write_file('x', 'y')", "#expand_env('$(SECRET)')", "#sleep(100)"} {
		if v, err := kb.Evaluate("got = "+src, nil); !errors.Is(err, os.ErrPermission) || kb.Get("got").Exists() {
			t.Errorf("%s = %v, %v", src, v, err)
		}
	}
	if _, err := kb.Evaluate(".i[0->1000000000) (++x)", &knowledge.EvalSettings{MaxSteps: 1000}); !errors.Is(err, knowledge.ErrLimit) {
		t.Errorf("without end: %v", err)
	}
}

// logInjection puts lines of its own into names that are logged.
func logInjection(t *testing.T) {
	var log lockedBuffer
	evil := "x\nlevel=ERROR msg=\"all is lost\"\x1b[2J"
	v := besiege(t, &knowledge.Sharing{MaxClockJump: 1}, knowledge.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	v.send(encode(wire.Header{Originator: []byte(evil), Clock: 1 << 40}, record{evil, karl.Int(1)}))
	v.drops(map[transport.Drop]uint64{transport.DropClock: 1})
	text := log.String()
	if strings.Count(text, "\n") != 1 || strings.Contains(text, "\x1b") || !strings.Contains(text, "x\\nlevel=ERROR") {
		t.Errorf("logged %q", text)
	}
}

// lockedBuffer is a buffer that a base logs to while a test reads it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
