//go:build !unix || solaris

package harness

import (
	"fmt"
	"net"
)

// lockPort is held by the benchmark that runs.
const lockPort = "127.0.0.1:47899"

func tryLock() (unlock func(), err error) {
	l, err := net.Listen("tcp4", lockPort)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errLocked, err)
	}
	return func() { l.Close() }, nil
}
