package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// children are the processes that this one started.
func children(t *testing.T) []int {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", os.Getpid()))
	if err != nil || len(files) == 0 {
		t.Fatalf("no children can be seen: %v", err)
	}
	var list []int
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // of a thread that ended
		}
		for _, word := range strings.Fields(string(text)) {
			id, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, id)
		}
	}
	return list
}

// TestKilled ends a run of ten minutes when one of its processes does.
func TestKilled(t *testing.T) {
	w := Workload{Payload: 8, Reply: 8, Period: time.Millisecond, Count: 600_000, Timeout: time.Second, Subscribers: 3, Processes: 3, Depth: 64, Policy: "drop-oldest", Call: CallPlan{InFlight: 1}}
	for _, c := range []struct {
		name      string
		kind      string
		run       func(*Lab) func(context.Context, Workload, bool) (*Run, error)
		processes int
	}{
		{"event", "tcp", func(l *Lab) func(context.Context, Workload, bool) (*Run, error) { return l.Event }, 4},
		{"event over udp", "udp", func(l *Lab) func(context.Context, Workload, bool) (*Run, error) { return l.Event }, 4},
		{"trip", "udp", func(l *Lab) func(context.Context, Workload, bool) (*Run, error) { return l.Trip }, 2},
		{"call", "tcp", func(l *Lab) func(context.Context, Workload, bool) (*Run, error) { return l.Call }, 2},
	} {
		for victim := range c.processes {
			lab, err := NewLab(c.kind, TopologySameHost, "")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			ended := make(chan error, 1)
			go func() {
				_, err := c.run(lab)(ctx, w, false)
				ended <- err
			}()
			for len(children(t)) < c.processes && ctx.Err() == nil {
				time.Sleep(5 * time.Millisecond)
			}
			time.Sleep(100 * time.Millisecond) // it may have begun to send, or not
			if list := children(t); victim < len(list) {
				syscall.Kill(list[victim], syscall.SIGKILL)
			}
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "ended while it was needed: signal: killed") {
				t.Errorf("%s, process %d: %v", c.name, victim, err)
			}
			cancel()
			lab.Close()
			if list := children(t); len(list) > 0 {
				t.Errorf("%s, process %d: %v are left", c.name, victim, list)
			}
		}
	}
}
