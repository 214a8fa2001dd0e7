//go:build !unix

package harness

import (
	"errors"

	"github.com/madara-go/madara/transport"
)

var errNoUnix = errors.New("--transport unix: this system has no unix sockets for it")

func openUnixEvent(string, []string, *transport.Settings) (transport.Event, error) {
	return nil, errNoUnix
}

func openUnixControl(string) (transport.Control, error) { return nil, errNoUnix }
