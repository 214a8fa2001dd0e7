//go:build unix

package harness

import (
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// endings are the signals that end a run with a partial report. What is ignored
// from the start, as by nohup, stays so.
func endings() []os.Signal {
	return slices.DeleteFunc([]os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}, signal.Ignored)
}

// alive reports whether a process is there.
func alive(process int) bool { return !errors.Is(syscall.Kill(process, 0), syscall.ESRCH) }
