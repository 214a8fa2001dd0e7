//go:build !linux

package knowledge

import "time"

// hostClock stands in for the host's monotonic clock where it is not read: times
// of one process can be compared with each other.
func hostClock() time.Duration { return time.Duration(time.Now().UnixNano()) }
