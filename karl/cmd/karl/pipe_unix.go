//go:build unix

package main

import (
	"os/signal"
	"syscall"
)

// ignoreBrokenPipes makes a write to a pipe that nobody reads an error, where
// the signal would end the process.
func ignoreBrokenPipes() { signal.Ignore(syscall.SIGPIPE) }
