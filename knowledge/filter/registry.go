package filter

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/wire"
)

// Link is a transport whose peers can be changed, as udp.Unicast opens it.
type Link interface {
	transport.Event
	transport.Peers
}

// RegistrySettings is how a registry, or a client of one, works. The zero value, and
// a nil pointer, is the default. Both ends should agree.
type RegistrySettings struct {
	Domain    string        // whose agents find each other; "" is "KaRL"
	Every     time.Duration // between two messages; 0 is 1s, at least 10ms
	Heartbeat time.Duration // after which one that was not heard is gone; 0 is ten times Every
	Peers     int           // at most so many agents; 0 is 1,024

	// Filters are for ServeRegistry, those of the agents' Sharing: without them it
	// hears nothing of these agents, nor they of it.
	Filters []transport.Filter
}

func (s *RegistrySettings) withDefaults() (RegistrySettings, error) {
	var d RegistrySettings
	if s != nil {
		d = *s
	}
	if d.Domain == "" {
		d.Domain = "KaRL"
	}
	if d.Every == 0 {
		d.Every = time.Second
	}
	if d.Heartbeat == 0 {
		d.Heartbeat = 10 * d.Every
	}
	if d.Peers == 0 {
		d.Peers = 1024
	}
	bad := func(field string, value any, allowed string) error {
		return fmt.Errorf("filter.RegistrySettings.%s is %v, allowed is %s: %w", field, value, allowed, knowledge.ErrSharing)
	}
	switch {
	case d.Every < 10*time.Millisecond:
		return d, bad("Every", d.Every, "0, or 10ms and above")
	case d.Heartbeat < 2*d.Every:
		return d, bad("Heartbeat", d.Heartbeat, "0, or twice Every and above")
	case d.Peers < 0 || d.Peers > maxFound:
		return d, bad("Peers", d.Peers, fmt.Sprint("0 to ", maxFound))
	}
	return d, nil
}

// prefix is of the variables that name the endpoints of a domain.
func (s *RegistrySettings) prefix() string { return "domain." + s.Domain + ".endpoints" }

// Registry is the end of a registry, or of a client of one.
type Registry struct {
	share  *knowledge.Attachment
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// Stats is what the attachment counted.
func (r *Registry) Stats() transport.Stats { return r.share.Stats() }

// Close leaves: nobody is told, and the others forget after the heartbeat.
func (r *Registry) Close() error {
	r.cancel()
	r.done.Wait()
	return r.share.Detach()
}

// run does something at once and then every so often.
func (r *Registry) run(every time.Duration, do func(context.Context)) {
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(context.Background())
	r.done.Go(func() {
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			do(ctx)
			select {
			case <-t.C:
			case <-ctx.Done():
				return
			}
		}
	})
}

// ServeRegistry tells the agents of a domain of each other: every agent that sends
// anything to the link is sent the addresses of all, again and again, as the variables
// domain.NAME.endpoints.IP:PORT. Of what agents send nothing else is kept. kb should be
// a base of the registry's own. An agent is known to the others within two times Every,
// and gone Heartbeat and Every after it was heard last. MADARA knows it as
// UdpRegistryServer with the program madara_registry.
func ServeRegistry(kb *knowledge.Base, link Link, s *RegistrySettings) (*Registry, error) {
	d, err := s.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Registry{}
	prefix := d.prefix()
	noted := Endpoints(kb, prefix, d.Heartbeat)
	r.share, err = kb.Attach(link, &knowledge.Sharing{
		Domain: d.Domain, Filters: d.Filters,
		ReceiveAggregateFilters: []knowledge.AggregateFilter{
			func(c *knowledge.FilterContext, variables map[string]karl.Value) {
				if _, known := kb.Lookup(prefix + "." + c.Source); known || count(kb, prefix) < d.Peers {
					noted(c, variables)
				}
				clear(variables)
			},
		},
	})
	if err != nil {
		return nil, err
	}
	r.run(d.Every, func(ctx context.Context) {
		var peers []netip.AddrPort
		kb.Update(func(g knowledge.Guard) error {
			now, err := g.Evaluate("#get_time()", nil)
			if err != nil {
				return err
			}
			for name, rec := range g.All(prefix + ".") {
				if now.Int()-rec.Value.Int() > int64(d.Heartbeat) {
					g.Delete(name)
					continue
				}
				if peer, err := netip.ParseAddrPort(name[len(prefix)+1:]); err == nil {
					peers = append(peers, peer)
				}
				g.Set(name, rec.Value) // marks it
			}
			return nil
		})
		if link.SetPeers(peers) == nil {
			kb.Send(ctx)
		}
	})
	return r, nil
}

func count(kb *knowledge.Base, prefix string) (n int) {
	for range kb.All(prefix + ".") {
		n++
	}
	return n
}

// JoinRegistry attaches a base to a link whose peers are those that registries know.
// It registers with the servers, "ip:port", again and again, and sends what it shares to
// all agents that they name, and to the servers, which keep nothing of it. Only servers
// can name agents. Registrations go through share's Filters as all it sends, but in
// MADARA, whose registries cannot tell agents with filters of each other. share is as for Attach; its domain is that of the settings. MADARA
// knows it as UdpRegistryClient with the filter EndpointClear.
func JoinRegistry(kb *knowledge.Base, link Link, servers []string, share knowledge.Sharing, s *RegistrySettings) (*Registry, error) {
	d, err := s.withDefaults()
	if err != nil {
		return nil, err
	}
	var at []netip.AddrPort
	for _, server := range servers {
		a, err := netip.ParseAddrPort(server)
		if err != nil || a.Port() == 0 {
			return nil, fmt.Errorf("registry %q: want ip:port: %w", server, knowledge.ErrSharing)
		}
		at = append(at, netip.AddrPortFrom(a.Addr().Unmap(), a.Port()))
	}
	if len(at) == 0 {
		return nil, fmt.Errorf("no registry: want the ip:port of one at least: %w", knowledge.ErrSharing)
	}
	if err := link.SetPeers(at); err != nil {
		return nil, err
	}
	prefix := d.prefix()
	var mu sync.Mutex
	current := slices.Clone(at)
	follow := func(c *knowledge.FilterContext, variables map[string]karl.Value) {
		source, err := netip.ParseAddrPort(c.Source)
		trusted := err == nil && slices.Contains(at, source)
		next := slices.Clone(at)
		brought := false
		for name := range variables {
			end, ok := strings.CutPrefix(name, prefix+".")
			if !ok {
				continue
			}
			if !trusted {
				delete(variables, name)
				continue
			}
			brought = true
			peer, err := netip.ParseAddrPort(end)
			if err != nil || peer.Port() == 0 || peer.Addr().IsMulticast() || peer.Addr().IsUnspecified() || len(next)-len(at) >= d.Peers {
				delete(variables, name)
				continue
			}
			if !slices.Contains(next, peer) {
				next = append(next, peer)
			}
		}
		if !brought {
			return
		}
		slices.SortFunc(next[len(at):], netip.AddrPort.Compare)
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(next, current) && link.SetPeers(next) == nil {
			current = next
		}
	}
	share.Domain = d.Domain
	share.ReceiveAggregateFilters = append([]knowledge.AggregateFilter{follow, ForgetEndpoints(kb, prefix)}, share.ReceiveAggregateFilters...)
	// What is known of endpoints came from a server, and is not ours to pass on.
	share.SendFilters = append([]knowledge.RecordFilter{Drop(prefix + ".")}, share.SendFilters...)
	r := &Registry{}
	if r.share, err = kb.Attach(link, &share); err != nil {
		return nil, err
	}
	r.run(d.Every, func(context.Context) {
		h := wire.Header{
			Kind: wire.Normal, Size: wire.NormalSize, Type: wire.Register,
			Domain: []byte(d.Domain), Originator: []byte(kb.ID()),
		}
		if now, err := kb.Evaluate("#get_time()", &knowledge.EvalSettings{Delay: true}); err == nil {
			h.Timestamp = uint64(now.Int())
		}
		if register, err := wire.Chain(share.Filters).Encode(h.Append(nil)); err == nil {
			link.Publish("", register)
		}
	})
	return r, nil
}
