package knowledge_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/filter"
	"github.com/madara-go/madara/transport/inproc"
	"github.com/madara-go/madara/transport/tcp"
	"github.com/madara-go/madara/transport/transporttest"
	"github.com/madara-go/madara/transport/udp"
	"github.com/madara-go/madara/transport/wire"
)

func good[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// links opens a sender and a receiver of each kind.
var links = map[string]func(t *testing.T, a, b transport.Settings) (from, to transport.Event){
	"inproc": func(t *testing.T, a, b transport.Settings) (from, to transport.Event) {
		n := inproc.New()
		return good(n.Open(&a)), good(n.Open(&b))
	},
	"udp": func(t *testing.T, a, b transport.Settings) (from, to transport.Event) {
		a.Pacing = time.Millisecond // more than the system's buffers hold comes at once
		receiver := good(udp.Unicast("127.0.0.1:0", nil, &b))
		return good(udp.Unicast("127.0.0.1:0", []string{receiver.LocalAddr().String()}, &a)), receiver
	},
	"tcp": func(t *testing.T, a, b transport.Settings) (from, to transport.Event) {
		sender := good(tcp.NewEvent("127.0.0.1:0", nil, &tcp.Settings{Settings: a}))
		return sender, good(tcp.NewEvent("", []string{sender.LocalAddr().String()}, &tcp.Settings{Settings: b}))
	},
	"transporttest": func(t *testing.T, a, b transport.Settings) (from, to transport.Event) {
		n := transporttest.New(1, transporttest.Conditions{Jitter: time.Millisecond, Duplicate: 0.2})
		return good(n.OpenWith("a", &a)), good(n.OpenWith("b", &b))
	},
}

// upside is a filter of a user: it turns every bit round.
type upside struct{}

func (upside) ID() string { return "upside" }
func (upside) Encode(dst, src []byte) ([]byte, error) {
	for _, b := range src {
		dst = append(dst, ^b)
	}
	return dst, nil
}
func (u upside) Decode(dst, src []byte, _ int) ([]byte, error) { return u.Encode(dst, src) }

// asItIs has the name of upside.
type asItIs struct{ upside }

func (asItIs) Decode(dst, src []byte, _ int) ([]byte, error) { return append(dst, src...), nil }

var (
	ssl    = good(filter.NewSSLPassword("testbed#1"))
	chains = map[string][]transport.Filter{
		"none": nil, "ssl": {ssl}, "lz4": {filter.LZ4{}}, "lz4 ssl": {filter.LZ4{}, ssl}, "ssl lz4": {ssl, filter.LZ4{}}, "user": {upside{}, filter.LZ4{}},
	}
)

// share attaches two bases to a link; the options are of the receiver.
func share(t *testing.T, from, to transport.Event, out, in []transport.Filter, opts ...knowledge.Option) (a, b *knowledge.Base, receiver *knowledge.Attachment) {
	t.Helper()
	a, b = knowledge.New(), knowledge.New(opts...)
	t.Cleanup(func() { a.Close(); b.Close(); from.Close(); to.Close() })
	const most = 4 << 20
	good(a.Attach(from, &knowledge.Sharing{Filters: out, MaxMessage: most}))
	receiver = good(b.Attach(to, &knowledge.Sharing{Filters: in, MaxMessage: most}))
	if from.Topics() {
		if err := from.Ready(soon(t), "KaRL", 2); err != nil {
			t.Fatal(err)
		}
	}
	return a, b, receiver
}

// mtu is what a frame of an Ethernet carries, in bytes.
const mtu = 1500

// TestFiltersDeliver sends values of all sizes through all chains over all links.
func TestFiltersDeliver(t *testing.T) {
	for link, open := range links {
		for chain, filters := range chains {
			for _, sealed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/sealed=%t", link, chain, sealed), func(t *testing.T) {
					var s [2]transport.Settings
					if sealed {
						s[0].Sealer, s[1].Sealer = good(filter.NewAEAD(1, make([]byte, 32))), good(filter.NewAEAD(1, make([]byte, 32)))
					}
					from, to := open(t, s[0], s[1])
					a, b, receiver := share(t, from, to, filters, filters)
					for _, size := range []int{1, mtu - 1, mtu, 64<<10 - 1, 64 << 10, 1 << 20} {
						name := fmt.Sprint("size", size)
						value := make([]byte, size)
						for i := range value {
							value[i] = byte(i * i >> 3)
						}
						if err := a.Set(name, karl.File(karl.KindFile, value)); err != nil {
							t.Fatal(err)
						}
						if err := a.Send(soon(t)); err != nil {
							t.Fatal(err)
						}
						for end := time.Now().Add(20 * time.Second); !b.Get(name).Exists(); time.Sleep(time.Millisecond) {
							if time.Now().After(end) {
								t.Fatalf("%d bytes did not arrive: %v; %v", size, receiver.Stats(), to.Stats())
							}
						}
						if got := b.Get(name); !got.Equal(karl.File(karl.KindFile, value)) {
							t.Errorf("%d bytes are not what was sent", size)
						}
					}
				})
			}
		}
	}
}

// TestFiltersDisagree sends to a receiver whose filters or keys are others: what
// arrives is counted under its reason, nothing is applied, and one line of the log
// says which setting differs.
func TestFiltersDisagree(t *testing.T) {
	other := good(filter.NewSSLPassword("another"))
	key := bytes.Repeat([]byte{1}, 32)
	for _, c := range []struct {
		name      string
		out, in   []transport.Filter
		seal, key []byte
		id        uint32
		want      transport.Drop
		log       string
	}{
		{"password", []transport.Filter{ssl}, []transport.Filter{other}, nil, nil, 1, transport.DropDecode, `filters=ssl error=`},
		{"order", []transport.Filter{ssl, filter.LZ4{}}, []transport.Filter{filter.LZ4{}, ssl}, nil, nil, 1, transport.DropDecode, `filters="lz4 ssl" error="filter \"lz4\" where \"ssl\" is wanted`},
		{"same name", []transport.Filter{upside{}}, []transport.Filter{asItIs{}}, nil, nil, 1, transport.DropDecode, `filters=upside error="what the filters make of it is no message`},
		{"none here", []transport.Filter{ssl}, nil, nil, nil, 1, transport.DropNotKaRL, `filter=ssl`},
		{"none there", nil, []transport.Filter{ssl}, nil, nil, 1, transport.DropDecode, `filters=ssl error="filter \"ssl\": message does not have the filter`},
		{"key", nil, nil, make([]byte, 32), key, 1, transport.DropForged, `error="key 1: forged`},
		{"key id", nil, nil, key, key, 2, transport.DropUnknownKey, `error="key 1: not sealed with a key that is known`},
		{"not sealed", nil, nil, nil, key, 1, transport.DropUnknownKey, `error="no aead1 datagram`},
		{"sealed", nil, nil, key, nil, 1, transport.DropNotKaRL, `filter=aead1`},
	} {
		disagree := func(t *testing.T, open func(t *testing.T, a, b transport.Settings) (from, to transport.Event)) {
			var s [2]transport.Settings
			if c.seal != nil {
				s[0].Sealer = good(filter.NewAEAD(1, c.seal))
			}
			if c.key != nil {
				s[1].Sealer = good(filter.NewAEAD(c.id, c.key))
			}
			from, to := open(t, s[0], s[1])
			var log lockedBuffer
			a, b, receiver := share(t, from, to, c.out, c.in, knowledge.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			const sends = 5
			for i := range sends {
				a.Set("x", karl.String(strings.Repeat("x", 100+i)))
				if err := a.Send(soon(t)); err != nil {
					t.Fatal(err)
				}
			}
			for end := time.Now().Add(20 * time.Second); receiver.Stats().Drops[c.want]+to.Stats().Drops[c.want] < sends || log.String() == ""; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("not counted as %v: %v; %v; logged %q", c.want, receiver.Stats(), to.Stats(), log.String())
				}
			}
			if b.Get("x").Exists() {
				t.Error("it was applied")
			}
			b.Close() // nothing is logged later
			if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, c.log) ||
				!strings.Contains(text, "reason="+c.want.String()) || !strings.Contains(text, "source=") {
				t.Errorf("logged %q, want one line with %q", text, c.log)
			}
		}
		for link, open := range links {
			t.Run(c.name+"/"+link, func(t *testing.T) { disagree(t, open) })
		}
	}
}

// TestComplaints has many peers fail at once, and again: a minute has so many lines
// of one reason, and one of a peer.
func TestComplaints(t *testing.T) {
	now := time.Hour
	var log lockedBuffer
	_, a, e := attachTap(t, "a", &knowledge.Sharing{MaxClockJump: 1}, knowledge.WithClock(func() time.Duration { return now }),
		knowledge.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	filtered := wireFixture("aes_password.bin")
	for round := range 3 {
		for peer := range 100 {
			for range 2 {
				e.handle(&transport.Message{Payload: filtered, Source: fmt.Sprint("10.0.0.1:", peer)})
			}
		}
		e.deliver(encode(wire.Header{Clock: 1 << 40}, record{"x", karl.Int(1)}))
		text := log.String()
		if foreign, clock := strings.Count(text, "reason=header.foreign"), strings.Count(text, "reason=header.clock"); foreign != (round/2+1)*16 || clock != round/2+1 {
			t.Errorf("round %d: %d of filters and %d of clocks", round, foreign, clock)
		}
		now += 30 * time.Second
	}
	if s := a.Stats(); s.Drops[transport.DropNotKaRL] != 600 || s.Drops[transport.DropClock] != 3 {
		t.Errorf("%v", s)
	}
}

// again is a sealer that seals every datagram to the same bytes, the first: who
// hears the second hears what was recorded.
type again struct {
	*filter.AEAD
	first []byte
}

func (a *again) Seal(dst, datagram []byte) ([]byte, error) {
	if a.first == nil {
		a.first = good(a.AEAD.Seal(nil, datagram))
	}
	return append(dst, a.first...), nil
}

// replayed sends a recorded datagram over all links: they count it as what it is.
func replayed(t *testing.T) {
	for link, open := range links {
		t.Run(link, func(t *testing.T) {
			var s [2]transport.Settings
			s[0].Sealer = &again{AEAD: good(filter.NewAEAD(1, make([]byte, 32)))}
			s[1].Sealer = good(filter.NewAEAD(1, make([]byte, 32)))
			from, to := open(t, s[0], s[1])
			a, _, receiver := share(t, from, to, nil, nil)
			for i := range 3 {
				a.Set("x", karl.Int(int64(i)))
				if err := a.Send(soon(t)); err != nil {
					t.Fatal(err)
				}
			}
			for end := time.Now().Add(20 * time.Second); to.Stats().Drops[transport.DropReplayed] < 2; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("not counted: %v; %v", receiver.Stats(), to.Stats())
				}
			}
		})
	}
}
