package harness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/inproc"
	"github.com/madara-go/madara/transport/udp"
)

// Kinds are the links that can be measured; Control has those in ControlKinds.
var (
	Kinds        = []string{"inproc", "unix", "tcp", "udp", "multicast"}
	ControlKinds = []string{"inproc", "unix", "tcp"}
)

// Endpoint is where one end of a link is.
type Endpoint struct {
	Kind      string   `json:"kind"`
	Bare      bool     `json:"bare"`            // a socket or channel without the library
	Address   string   `json:"address"`         // of the publisher, or the group
	Reply     string   `json:"reply,omitempty"` // the group of replies, multicast only
	Listen    string   `json:"listen"`          // of a subscriber, udp only
	Peers     []string `json:"peers,omitempty"` // the subscribers, for a publisher on udp
	Interface string   `json:"interface,omitempty"`
	Plain     bool     `json:"plain,omitempty"` // tcp beyond loopback without TLS
	Payload   int      `json:"payload"`
	Depth     int      `json:"depth"`
	Policy    string   `json:"policy"`
	Trip      bool     `json:"trip"` // messages come back
}

// Policies are the names of the policies of a full ring.
var Policies = map[string]transport.Policy{
	"drop-oldest": transport.DropOldest, "drop-newest": transport.DropNewest, "keep-last": transport.KeepLast,
}

// end is one end of a link, the library's or a bare one. A publisher's messages
// go to all subscribers, a subscriber's to the publisher.
type end interface {
	publish(payload []byte) error
	subscribe(handle func(payload []byte)) error
	ready(ctx context.Context, subscribers int) error
	drops() map[string]uint64
	close() error
}

// socketBuffer is the least size of socket buffers on both sides, the library's
// and the bare ones.
const socketBuffer = 4 << 20

// openEnd opens an end.
func openEnd(e *Endpoint, publisher bool) (end, error) {
	if e.Bare {
		return openBare(e, publisher)
	}
	return openLibrary(e, publisher)
}

// events is an end of the library: what goes out and where the other side's
// messages come in, which are one link unless topics or groups must tell them apart.
type events struct {
	e            *Endpoint
	out, in      transport.Event
	outTopic     string
	inTopic      string
	mu           sync.Mutex
	subscription []transport.Subscription
}

// networks are the networks within this process by address.
var networks sync.Map

func openLibrary(e *Endpoint, publisher bool) (end, error) {
	s := &transport.Settings{ReadBuffer: socketBuffer, WriteBuffer: socketBuffer, Interface: e.Interface}
	l := &events{e: e, outTopic: "out", inTopic: "back"}
	var err error
	switch e.Kind {
	case "inproc":
		n, _ := networks.LoadOrStore(e.Address, inproc.New())
		l.out, err = n.(*inproc.Network).Open(s)
	case "udp":
		listen, peers := e.Address, e.Peers
		if !publisher {
			listen, peers = e.Listen, []string{e.Address}
		}
		l.out, err = udp.Unicast(listen, peers, s)
	case "multicast":
		if l.out, err = udp.Multicast(e.Address, s); err == nil && e.Trip {
			l.in, err = udp.Multicast(e.Reply, s)
			if err != nil {
				l.out.Close()
			} else if !publisher {
				l.out, l.in = l.in, l.out
			}
		}
	default:
		l.out, err = openStream(e, publisher, s)
	}
	if err != nil {
		return nil, err
	}
	if l.in == nil {
		l.in = l.out
	}
	if !l.out.Topics() {
		l.outTopic, l.inTopic = "", ""
	} else if !publisher {
		l.outTopic, l.inTopic = l.inTopic, l.outTopic
	}
	return l, nil
}

func (l *events) publish(payload []byte) error {
	_, err := l.out.Publish(l.outTopic, payload)
	return err
}

func (l *events) subscribe(handle func([]byte)) error {
	o := &transport.SubscribeOptions{Depth: l.e.Depth, Policy: Policies[l.e.Policy]}
	s, err := l.in.Subscribe(l.inTopic, o, func(m *transport.Message) { handle(m.Payload) })
	if err == nil {
		l.mu.Lock()
		l.subscription = append(l.subscription, s)
		l.mu.Unlock()
	}
	return err
}

func (l *events) ready(ctx context.Context, subscribers int) error {
	return l.out.Ready(ctx, l.outTopic, subscribers)
}

func (l *events) drops() map[string]uint64 {
	list := map[string]uint64{}
	add := func(e transport.Event) {
		s := e.Stats()
		for d, n := range s.Drops {
			if n > 0 {
				list[transport.Drop(d).String()] += n
			}
		}
	}
	add(l.out)
	if l.in != l.out {
		add(l.in)
	}
	return list
}

func (l *events) close() error {
	err := l.out.Close()
	if l.in != l.out {
		if e := l.in.Close(); err == nil {
			err = e
		}
	}
	return err
}

// Available returns an error where a kind cannot carry a payload, or cannot be
// had on this system.
func Available(kind string, payload int) error {
	most := map[string]int{"udp": transport.MaxDatagramSize, "multicast": transport.MaxDatagramSize}[kind]
	if most == 0 {
		most = MaxPayload
	}
	if payload < MinPayload || payload > most {
		return fmt.Errorf("--payload-size %d: allowed over %s is %d to %d", payload, kind, MinPayload, most)
	}
	return nil
}

// MaxPayload is the longest payload over streams and within a process.
const MaxPayload = 16 << 20

// freePort returns a port that nobody listens on now, over TCP or UDP, and that
// systems do not give to those who ask for any.
func freePort() (string, error) {
	var failed error
	for range 100 {
		at := net.JoinHostPort("127.0.0.1", strconv.Itoa(20_000+rand.IntN(12_000)))
		l, err := net.Listen("tcp4", at)
		if err == nil {
			l.Close()
			var c net.PacketConn
			if c, err = net.ListenPacket("udp4", at); err == nil {
				c.Close()
				_, port, _ := net.SplitHostPort(at)
				return port, nil
			}
		}
		failed = err
	}
	return "", failed
}
