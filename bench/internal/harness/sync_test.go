package harness

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// TestClockOfOtherHost corrects times that another host took, whose clock is five
// seconds ahead.
func TestClockOfOtherHost(t *testing.T) {
	const ahead = 5 * time.Second
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var peers sync.WaitGroup
	peers.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			peers.Go(func() {
				defer conn.Close()
				runPeer(conn, conn, func(name string) Clock {
					clock := ClockNamed(name)
					return func() int64 { return clock() + int64(ahead) }
				})
			})
		}
	})
	defer peers.Wait()
	defer l.Close()
	lab, err := NewLab("udp", TopologyCrossHost, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer lab.Close()
	lab.Topology = TopologySameHost // for ports that are free, beside other tests
	w := Workload{Payload: 64, Period: time.Millisecond, Count: 50, Subscribers: 2, Processes: 1, Depth: 64, Policy: "drop-oldest"}
	run, err := lab.Event(context.Background(), w, false)
	if err != nil {
		t.Fatal(err)
	}
	if s := run.Sync; abs(s.Offset-int64(ahead)) > s.Bound+int64(time.Millisecond) {
		t.Errorf("the clock is %d ns ahead within %d, want %d", s.Offset, s.Bound, int64(ahead))
	}
	d := run.latency()
	if d.Count() != 100 || d.Mean() > float64(ahead/2) || d.Mean() < -float64(ahead/2) {
		t.Errorf("%d latencies, mean %.0f ns, as if the clock were not corrected", d.Count(), d.Mean())
	}
}
