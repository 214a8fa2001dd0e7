//go:build unix

package harness

import (
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/unix"
)

func openUnixEvent(listen string, peers []string, s *transport.Settings) (transport.Event, error) {
	l, err := unix.NewEvent(listen, peers, &unix.Settings{Settings: *s})
	if err != nil {
		return nil, err
	}
	return l, nil
}

func openUnixControl(listen string) (transport.Control, error) {
	l, err := unix.NewControl(listen, nil)
	if err != nil {
		return nil, err
	}
	return l, nil
}
