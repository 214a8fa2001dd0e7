//go:build !linux

package harness

import "time"

var began = time.Now()

// origin makes the clocks of the processes of a host comparable as far as the
// time of day is.
var origin = began.UnixNano()

func now() int64 { return origin + int64(time.Since(began)) }

// pacing says how sleep waits.
const pacing = "portable sleep, a millisecond or more late"

func sleep(d time.Duration) { time.Sleep(d) }

func preciseTimers() {}

func clockSource() string { return "unknown" }

func daemonWord() *Daemon { return nil }
