//go:build !linux

package stream

import "net"

// shrinkUnsent reports that only the send buffer can be made small.
func shrinkUnsent(*net.TCPConn) bool { return false }
