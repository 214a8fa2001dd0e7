package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/madara-go/madara/knowledge"
	"github.com/madara-go/madara/knowledge/filter"
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/udp"
	"github.com/madara-go/madara/transport/wire"
)

// network is the flags of a transport.
type network struct {
	UDP         []string `name:"udp" sep:"none" placeholder:"HOST:PORT" help:"Listen at this address over UDP; :4150 is port 4150 of all of the host's addresses. Given again it names a peer, as in MADARA."`
	Peer        []string `sep:"none" placeholder:"HOST:PORT" help:"Send to this peer over UDP. May be repeated. Without --udp a free port is listened at."`
	Multicast   string   `placeholder:"GROUP:PORT" help:"Join a multicast group, as 239.255.0.1:4150."`
	Broadcast   string   `placeholder:"ADDR:PORT" help:"Listen at this port and send to all hosts of a network, as 192.168.1.255:15000."`
	Registry    []string `sep:"none" placeholder:"IP:PORT" help:"Find the peers by a registry (karl registry). May be repeated."`
	Interface   string   `placeholder:"NAME" help:"Network interface of --multicast. The default is the system's choice, and the loopback interface where it has none."`
	TTL         *int     `name:"ttl" placeholder:"N" help:"Routers that multicast may pass, up to 255; the default is 1, the local network."`
	Domain      string   `placeholder:"NAME" help:"Group of agents that messages are for; the default is KaRL."`
	ReadDomain  []string `sep:"none" placeholder:"NAME" help:"Listen to this domain instead of --domain. May be repeated."`
	ID          string   `name:"id" placeholder:"NAME" help:"Name among the peers; the default is random. Two with one name do not hear each other."`
	Trusted     []string `sep:"none" placeholder:"NAME" help:"Hear only peers of this name, or of this IP:PORT. May be repeated."`
	Rebroadcast uint8    `placeholder:"N" help:"Let messages go N hops, and send those of others on that may go as far or less; the default is 0."`
	secrets
}

// given reports whether there is to be a transport.
func (n *network) given() bool {
	return len(n.UDP) > 0 || len(n.Peer) > 0 || n.Multicast != "" || n.Broadcast != "" || len(n.Registry) > 0
}

// peers returns to whom messages are sent over UDP.
func (n *network) peers() []string {
	if len(n.UDP) == 0 {
		return n.Peer
	}
	return append(n.UDP[1:len(n.UDP):len(n.UDP)], n.Peer...)
}

// check looks for flags that are wrong, or that go with others only.
func (n *network) check(required bool) error {
	switch {
	case required && !n.given():
		return fmt.Errorf("no network: want --multicast, --broadcast, --udp, --peer or --registry")
	case n.Multicast != "" && (len(n.UDP) > 0 || len(n.Peer) > 0):
		return fmt.Errorf("--multicast does not go with --udp and --peer")
	case n.Broadcast != "" && (n.Multicast != "" || len(n.UDP) > 0 || len(n.Peer) > 0):
		return fmt.Errorf("--broadcast does not go with --multicast, --udp and --peer")
	case len(n.Registry) > 0 && (n.Multicast != "" || n.Broadcast != "" || len(n.peers()) > 0):
		return fmt.Errorf("--registry goes with --udp alone, or nothing")
	case !n.given() && (len(n.Trusted) > 0 || n.Rebroadcast > 0):
		return fmt.Errorf("--trusted and --rebroadcast go with a network only")
	case n.Multicast == "" && n.Interface != "":
		return fmt.Errorf("--interface goes with --multicast only")
	case n.Multicast == "" && n.TTL != nil:
		return fmt.Errorf("--ttl goes with --multicast only")
	case n.TTL != nil && (*n.TTL < 1 || *n.TTL > 255):
		return fmt.Errorf("--ttl %d: want 1 to 255", *n.TTL)
	case !n.given() && n.secrets.given():
		return fmt.Errorf("--lz4, --aes-password, --aes-key-file and --aead-key-file go with --multicast, --broadcast, --udp, --peer or --registry only")
	case !n.given() && (n.Domain != "" || len(n.ReadDomain) > 0 || n.ID != ""):
		return fmt.Errorf("--domain, --read-domain and --id go with --multicast, --broadcast, --udp, --peer or --registry only")
	case len(n.Domain) > wire.MaxDomain:
		return fmt.Errorf("--domain %s: %d bytes, at most %d are allowed", n.Domain, len(n.Domain), wire.MaxDomain)
	case len(n.ID) > wire.MaxOriginator:
		return fmt.Errorf("--id %s: %d bytes, at most %d are allowed", n.ID, len(n.ID), wire.MaxOriginator)
	}
	if err := n.secrets.check(); err != nil {
		return err
	}
	for _, d := range n.ReadDomain {
		if len(d) > wire.MaxDomain {
			return fmt.Errorf("--read-domain %s: %d bytes, at most %d are allowed", d, len(d), wire.MaxDomain)
		}
	}
	return nil
}

// options returns what a knowledge base on the network is made with.
func (n *network) options(p *process) []knowledge.Option {
	if !n.given() {
		return nil
	}
	options := []knowledge.Option{knowledge.WithLogger(slog.New(&logger{p: p}))}
	if n.ID != "" {
		options = append(options, knowledge.WithID(n.ID))
	}
	return options
}

// open opens the link. The error names the flag.
func (n *network) open() (transport.Event, error) {
	sealer, err := n.sealer()
	if err != nil {
		return nil, err
	}
	settings := transport.Settings{Interface: n.Interface, Sealer: sealer}
	if n.TTL != nil {
		settings.TTL = *n.TTL
	}
	if n.Multicast != "" {
		link, err := udp.Multicast(n.Multicast, &settings)
		if err != nil {
			return nil, failf(exitIO, "--multicast %s: %w", n.Multicast, err)
		}
		return link, nil
	}
	if n.Broadcast != "" {
		link, err := udp.Broadcast(n.Broadcast, &settings)
		if err != nil {
			return nil, failf(exitIO, "--broadcast %s: %w", n.Broadcast, err)
		}
		return link, nil
	}
	listen, flag := ":0", "--peer "+strings.Join(n.Peer, " --peer ")
	if len(n.UDP) > 0 {
		listen, flag = n.UDP[0], "--udp "+n.UDP[0]
	} else if len(n.Registry) > 0 {
		flag = "--registry"
	} else if strings.HasPrefix(n.Peer[0], "[") {
		listen = "[::]:0"
	}
	link, err := udp.Unicast(listen, n.peers(), &settings)
	if err != nil {
		return nil, failf(exitIO, "%s: %w", flag, err)
	}
	return link, nil
}

// connection is a base's place in a network.
type connection struct {
	link  transport.Event
	share interface{ Stats() transport.Stats }
	chain wire.Chain   // what messages go through
	leave func() error // the registry
}

// connect attaches the base to the network.
func (s *session) connect(n *network, share knowledge.Sharing) error {
	if n.Interface != "" {
		if _, err := net.InterfaceByName(n.Interface); err != nil {
			fmt.Fprintf(s.p.err, "karl: --interface %s: not there yet, waiting for it\n", n.Interface)
		}
	}
	filters, err := n.filters()
	if err != nil {
		return err
	}
	link, err := n.open()
	if err != nil {
		return err
	}
	share.Filters = filters
	share.Domain, share.ReadDomains = n.Domain, n.ReadDomain
	share.Trusted, share.TTL, share.ParticipantTTL = n.Trusted, n.Rebroadcast, n.Rebroadcast
	if len(n.Registry) > 0 {
		r, err := filter.JoinRegistry(s.kb, link.(filter.Link), n.Registry, share, &filter.RegistrySettings{Domain: n.Domain})
		if err != nil {
			link.Close()
			return failf(exitUsage, "--registry: %w", err)
		}
		s.net = &connection{link, r, filters, r.Close}
		return nil
	}
	a, err := s.kb.Attach(link, &share)
	if err != nil {
		link.Close()
		return fail(exitIO, err)
	}
	s.net = &connection{link, a, filters, nil}
	return nil
}

func (c *connection) close() { c.link.Close() }

// registered waits until a registry has told of others, or for a moment.
func (s *session) registered(ctx context.Context, n *network) {
	if len(n.Registry) == 0 {
		return
	}
	prefix := "domain." + cmp.Or(n.Domain, "KaRL") + ".endpoints."
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		others := 0
		for range s.kb.All(prefix) {
			others++
		}
		if others > 1 { // one is this
			return
		}
	}
}

// stats adds what the link dropped to what the base's share did.
func (c *connection) stats() transport.Stats {
	total, link := c.share.Stats(), c.link.Stats()
	for i, n := range link.Drops {
		// A link counts the errors of sending too.
		if transport.Drop(i) != transport.DropSendError {
			total.Drops[i] += n
		}
	}
	return total
}

// announce tells the peers that somebody is there who knows nothing yet. Bases
// of this library answer with what they wrote; for MADARA's it is a message
// without variables.
func (s *session) announce(n *network) {
	h := wire.Header{
		Kind: wire.Normal, Size: wire.NormalSize, Type: wire.Register,
		Domain: []byte(n.Domain), Originator: []byte(s.kb.ID()),
	}
	if n.Domain == "" {
		h.Domain = []byte("KaRL")
	}
	if now, err := s.kb.Evaluate("#get_time()", nil); err == nil {
		h.Timestamp = uint64(now.Int())
	}
	message, err := s.net.chain.Encode(h.Append(nil))
	if err == nil {
		_, err = s.net.link.Publish("", message)
	}
	if err != nil {
		fmt.Fprintf(s.p.err, "karl: asking the peers for what they know: %v\n", err)
	}
}

// endsAfter returns a context that ends after a time, nil for none, with errOver.
func endsAfter(ctx context.Context, limit *time.Duration) (context.Context, context.CancelFunc) {
	if limit == nil {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, *limit, errOver)
}

// positive says which of several times is not above 0. Those not given are nil.
func positive(times map[string]*time.Duration) error {
	for flag, t := range times {
		if t != nil && *t <= 0 {
			return fmt.Errorf("%s %v: want a time above 0", flag, *t)
		}
	}
	return nil
}

// logger prints what a knowledge base logs, each message that repeats once.
type logger struct {
	p    *process
	mu   sync.Mutex
	last string
}

func (l *logger) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (l *logger) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *logger) WithGroup(string) slog.Handler                    { return l }

func (l *logger) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += fmt.Sprintf(": %v", a.Value)
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if text == l.last {
		return nil
	}
	l.last = text
	_, err := fmt.Fprintf(l.p.err, "karl: %s\n", text)
	return err
}
