package knowledge

import (
	"time"

	"golang.org/x/sys/unix"
)

// hostClock reads the host's monotonic clock, which messages and files count in.
func hostClock() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(ts.Nano())
}
