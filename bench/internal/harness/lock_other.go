//go:build !unix || solaris

package harness

import (
	"fmt"
	"net"
)

// lockPort is held by the benchmark that runs.
const lockPort = "127.0.0.1:47899"

// lockHost sees that no other benchmark of the transports runs. The lock ends
// with the process, however that ends.
func lockHost() (unlock func(), err error) {
	l, err := net.Listen("tcp4", lockPort)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCannotRun, codeOther, err)
	}
	return func() { l.Close() }, nil
}
