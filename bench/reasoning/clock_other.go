//go:build !linux

package main

import "time"

// clockName says what now reads.
const clockName = "wall"

var start = time.Now()

// now reads the time since the program started.
func now() time.Duration { return time.Since(start) }
