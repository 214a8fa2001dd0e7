package harness

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Where the process's own clock began, by the host's. The process's is
// CLOCK_MONOTONIC through the vDSO, so that one offset relates the two for good;
// reading the host's itself would be a system call each time.
var began, offset = relate()

func relate() (began time.Time, offset int64) {
	began = time.Now()
	best := int64(1) << 62
	for range 64 {
		var ts unix.Timespec
		before := time.Since(began)
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
			break // every Linux has this clock
		}
		after := time.Since(began)
		if width := int64(after - before); width < best {
			best, offset = width, ts.Nano()-int64(before+after)/2
		}
	}
	return began, offset
}

func now() int64 { return offset + int64(time.Since(began)) }

// pacing says how sleep waits.
const pacing = "clock_nanosleep on a locked thread"

// sleep waits until an absolute time, so that being interrupted before it began
// to wait does not add up.
func sleep(d time.Duration) {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		time.Sleep(d)
		return
	}
	ts = unix.NsecToTimespec(ts.Nano() + int64(d))
	unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil) // an interrupted one is repeated by the caller
}

func preciseTimers() { unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) } // refused: the slack stays 50 µs

func clockSource() string {
	text, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

// daemonWord returns what the kernel was told about the clock, nil if it may not
// be asked.
func daemonWord() *Daemon {
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return nil
	}
	return &Daemon{t.Status&unix.STA_UNSYNC == 0, int64(t.Maxerror)}
}
