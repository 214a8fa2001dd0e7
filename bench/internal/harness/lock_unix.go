//go:build unix && !solaris

package harness

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lockHost sees that no other benchmark of the transports runs. The lock ends
// with the process, however that ends.
func lockHost() (unlock func(), err error) {
	name := filepath.Join(os.TempDir(), "madara-bench.lock")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if os.IsPermission(err) {
		f, err = os.Open(name) // another user's, which can be locked as well
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCannotRun, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: %s: %s is locked", ErrCannotRun, codeOther, name)
	}
	return func() { f.Close() }, nil
}
