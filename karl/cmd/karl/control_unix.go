//go:build unix

package main

import (
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/unix"
)

func openPath(listen string) (transport.Control, error) { return unix.NewControl(listen, nil) }
