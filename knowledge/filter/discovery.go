package filter

import (
	"strings"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// maxFound is how many peers or endpoints a discovery keeps.
const maxFound = 4096

// Peers notes in the base when each originator was heard: the variable prefix.NAME
// holds the host's monotonic time in nanoseconds. Those that were not heard for the
// time of a heartbeat are deleted; 0 keeps them for ever. At most 4,096 are kept. With
// a prefix that begins with a dot, ".peers" in MADARA, they stay in the base
// (PeerDiscovery).
func Peers(kb *knowledge.Base, prefix string, heartbeat time.Duration) knowledge.AggregateFilter {
	return func(c *knowledge.FilterContext, _ map[string]karl.Value) {
		note(kb, prefix, c.Originator, c.Now, heartbeat)
	}
}

// Endpoints does the same with the addresses "ip:port" that messages came from
// (EndpointDiscovery).
func Endpoints(kb *knowledge.Base, prefix string, heartbeat time.Duration) knowledge.AggregateFilter {
	return func(c *knowledge.FilterContext, _ map[string]karl.Value) {
		note(kb, prefix, c.Source, c.Now, heartbeat)
	}
}

func note(kb *knowledge.Base, prefix, who string, now, heartbeat time.Duration) {
	if who == "" || strings.ContainsAny(who, "{}") {
		return
	}
	kb.Update(func(g knowledge.Guard) error {
		name := prefix + "." + who
		n := 0
		for other, r := range g.All(prefix + ".") {
			if heartbeat > 0 && now-time.Duration(r.Value.Int()) > heartbeat {
				g.Delete(other)
			} else if n++; n >= maxFound && other != name {
				return nil
			}
		}
		return g.Set(name, karl.Int(int64(now)))
	})
}

// ForgetEndpoints deletes the variables of the base that begin with prefix when a
// message brings such variables, so that those of the message are all there are
// (EndpointClear).
func ForgetEndpoints(kb *knowledge.Base, prefix string) knowledge.AggregateFilter {
	return func(_ *knowledge.FilterContext, variables map[string]karl.Value) {
		for name := range variables {
			if strings.HasPrefix(name, prefix+".") {
				kb.Update(func(g knowledge.Guard) error {
					for old := range g.All(prefix + ".") {
						if _, stays := variables[old]; !stays {
							g.Delete(old)
						}
					}
					return nil
				})
				return
			}
		}
	}
}
