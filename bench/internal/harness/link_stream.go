package harness

import (
	"fmt"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/inproc"
	"github.com/madara-go/madara/transport/tcp"
)

// openStream opens an Event over unix or tcp: the publisher listens, the
// subscribers dial it.
func openStream(e *Endpoint, publisher bool, s *transport.Settings) (transport.Event, error) {
	listen, peers := e.Address, []string(nil)
	if !publisher {
		listen, peers = "", []string{e.Address}
	}
	switch e.Kind {
	case "unix":
		return openUnixEvent(listen, peers, s)
	case "tcp":
		l, err := tcp.NewEvent(listen, peers, &tcp.Settings{Settings: *s, Plain: e.Plain})
		return l, err
	}
	return nil, fmt.Errorf("--transport %s has no Event", e.Kind)
}

// openControl opens a Control; listen is "" for a caller.
func openControl(e *Endpoint, listen string) (transport.Control, error) {
	switch e.Kind {
	case "inproc":
		n, _ := networks.LoadOrStore(e.Address, inproc.New())
		if listen == "" {
			listen = e.Address + " caller"
		}
		return n.(*inproc.Network).OpenControl(listen, nil)
	case "unix":
		return openUnixControl(listen)
	case "tcp":
		l, err := tcp.NewControl(listen, &tcp.Settings{Plain: e.Plain})
		return l, err
	}
	return nil, fmt.Errorf("--transport %s has no Control", e.Kind)
}
