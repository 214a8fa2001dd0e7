//go:build unix && !solaris

package harness

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lockFile is the same for all who measure on a host, wherever their temporary
// files are.
func lockFile() string {
	dir := "/tmp"
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "madara-bench.lock")
}

func tryLock() (unlock func(), err error) {
	name := lockFile()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o644)
	if os.IsPermission(err) {
		f, err = os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW, 0) // another user's, which can be locked as well
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: %s is locked", errLocked, name)
	}
	return func() { f.Close() }, nil
}
