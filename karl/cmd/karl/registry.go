package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/madara-go/madara/knowledge"
	"github.com/madara-go/madara/knowledge/filter"
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/udp"
)

type registryCmd struct {
	UDP       string         `name:"udp" required:"" placeholder:"HOST:PORT" help:"Listen at this address over UDP, as 0.0.0.0:49200."`
	Domain    string         `placeholder:"NAME" help:"Group of agents to bring together; the default is KaRL."`
	Every     *time.Duration `placeholder:"TIME" help:"Tell all agents of all agents each TIME; the default is 1s."`
	Heartbeat *time.Duration `placeholder:"TIME" help:"Forget agents that were not heard for TIME; the default is ten times --every."`
	For       *time.Duration `placeholder:"TIME" help:"Stop after TIME."`

	secrets
}

// Help is shown by kong below the usage.
func (c *registryCmd) Help() string {
	return `Agents that run with --registry, or MADARA's registry clients, send to each other what they learn here. A registry keeps nothing else of what they send. It needs the flags of encryption and compression that the agents have. It ends with an interrupt.`
}

// Validate is called by kong.
func (c *registryCmd) Validate() error {
	if err := c.secrets.check(); err != nil {
		return err
	}
	return positive(map[string]*time.Duration{"--every": c.Every, "--heartbeat": c.Heartbeat, "--for": c.For})
}

// Run is called by kong.
func (c *registryCmd) Run(p *process) error {
	filters, err := c.filters()
	if err != nil {
		return err
	}
	sealer, err := c.sealer()
	if err != nil {
		return err
	}
	link, err := udp.Unicast(c.UDP, nil, &transport.Settings{Sealer: sealer})
	if err != nil {
		return failf(exitIO, "--udp %s: %w", c.UDP, err)
	}
	defer link.Close()
	settings := filter.RegistrySettings{Domain: c.Domain, Filters: filters}
	if c.Every != nil {
		settings.Every = *c.Every
	}
	if c.Heartbeat != nil {
		settings.Heartbeat = *c.Heartbeat
	}
	s := &session{p: p}
	ctx, stop := s.interruptible()
	defer stop()
	ctx, cancel := endsAfter(ctx, c.For)
	defer cancel()
	kb := knowledge.New()
	defer kb.Close()
	r, err := filter.ServeRegistry(kb, link, &settings)
	if err != nil {
		return fail(exitUsage, err)
	}
	defer r.Close()
	return c.report(ctx, p, kb)
}

// report says which agents come and go.
func (c *registryCmd) report(ctx context.Context, p *process, kb *knowledge.Base) error {
	prefix := "domain." + cmp.Or(c.Domain, "KaRL") + ".endpoints."
	here := map[string]bool{}
	for change := range kb.Watch(ctx, prefix+"*") {
		agent := strings.TrimPrefix(change.Name, prefix)
		switch {
		case change.Kind == knowledge.Deleted:
			delete(here, agent)
			fmt.Fprintf(p.out, "%s is gone\n", agent)
		case change.Record.Value.Exists() && !here[agent]:
			here[agent] = true
			fmt.Fprintf(p.out, "%s is here\n", agent)
		}
	}
	return nil
}
