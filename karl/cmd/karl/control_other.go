//go:build !unix

package main

import (
	"errors"

	"github.com/madara-go/madara/transport"
)

func openPath(string) (transport.Control, error) {
	return nil, errors.New("this system has no unix sockets here; use HOST:PORT")
}
