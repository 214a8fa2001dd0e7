//go:build unix

package harness

import (
	"runtime"
	"syscall"
)

func (r *Resources) usage() {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return
	}
	r.CPUSeconds = float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
	r.MaxRSS = int64(u.Maxrss)
	if runtime.GOOS != "darwin" {
		r.MaxRSS <<= 10 // kilobytes elsewhere
	}
	r.Switches = int64(u.Nvcsw) + int64(u.Nivcsw)
}
