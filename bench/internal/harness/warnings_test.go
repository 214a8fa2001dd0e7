package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// judged returns the warnings about a run of a fake transport.
func judged(f fake, p Plan, change func(c *Cell, run *Run)) []Warning {
	w := &Workload{Period: time.Duration(p.Period), Count: p.Count, Warmup: p.Warmup, Subscribers: 1}
	c := newCell("case", w)
	run := &Run{Sent: newSent(), Received: []Received{f.run(p)}}
	run.Sent.Sent = p.Count
	if change != nil {
		change(c, run)
	}
	c.add(w, run, nil, NewDistribution())
	c.finish()
	r := &Report{}
	r.warn(c)
	return r.Warnings
}

// TestWarnings has each code where there is a reason for it, and no other.
func TestWarnings(t *testing.T) {
	steady := fake{delay: 50 * us}
	short := plan
	short.Count = 900
	none := fake{delay: us}
	for i := range short.Total() {
		none.lost = append(none.lost, i)
	}
	slow := func(sent int64) int64 { return (sent - plan.Start) / 20 }
	sent := func(change func(*Sent)) func(*Cell, *Run) { return func(_ *Cell, r *Run) { change(r.Sent) } }
	for _, c := range []struct {
		name string
		list []Warning
		want string // codes and severities
	}{
		{"nothing", judged(steady, plan, nil), ""},
		{"drops", judged(fake{delay: us, lost: []int64{500, 501}}, plan, nil), "warning drops"},
		{"all dropped", judged(none, short, nil), "warning drops, warning missing_samples"},
		{"twice", judged(fake{delay: us, twice: []int64{500}}, plan, nil), "warning duplicates"},
		{"swapped", judged(fake{delay: us, swapped: []int64{500}}, plan, nil), "warning reordered"},
		{"clock behind", judged(fake{delay: us, offset: -2 * us}, plan, nil), "warning negative_latency"},
		{"late sender", judged(steady, plan, sent(func(s *Sent) { s.Lag.Add(101 * us) })), "warning publisher_late"},
		{"late sender within a step's limit", judged(steady, plan, func(c *Cell, r *Run) { c.Throughput = &Throughput{Rate: 1}; r.Sent.Lag.Add(101 * us) }), ""},
		{"punctual sender", judged(steady, plan, sent(func(s *Sent) { s.Lag.Add(99 * us) })), ""},
		{"queue", judged(fake{delay: us, stall: slow}, plan, nil), "warning saturated"},
		{"failures", judged(steady, plan, sent(func(s *Sent) { s.Failures++ })), "warning failures"},
		{"errors", judged(steady, plan, sent(func(s *Sent) { s.Errors++ })), "warning failures"},
		{"closed loop", judged(steady, plan, sent(func(s *Sent) { s.Delayed = 3 })), "note closed_loop"},
		{"few samples", judged(steady, short, nil), "note few_samples"},
		{"long pause", judged(steady, plan, func(_ *Cell, r *Run) { r.Others.MaxPause = 51 }), "warning gc_pause"},
		{"short pause", judged(steady, plan, func(_ *Cell, r *Run) { r.Others.MaxPause = 49 }), ""},
		{"wrong answers", judged(steady, plan, sent(func(s *Sent) { s.Cases = []TimeoutCase{{Case: "late", Wrong: 1}} })), "warning failures"},
		{"no rate", judged(steady, plan, func(c *Cell, _ *Run) { c.Throughput = &Throughput{Steps: []Step{{Why: "lost"}}} }), "warning saturated"},
		{"idle host", (&Host{Cores: 2, LoadBefore: 1, Governor: "performance"}).doubts(), ""},
		{"unknown host", (&Host{Cores: 2, LoadBefore: -1}).doubts(), ""},
		{"busy host", (&Host{Cores: 2, LoadBefore: 1.01}).doubts(), "warning high_load"},
		{"saving host", (&Host{Cores: 2, Governor: "powersave"}).doubts(), "warning governor_not_performance"},
		{"languages", languageDoubts(), "note cross_language_not_tested"},
		{"the same release", (&Release{"v1", "abc", false, "go1"}).doubts(&Release{"v1", "abc", false, "go1"}), ""},
		{"other commit", (&Release{"v1", "abc", false, "go1"}).doubts(&Release{"v1", "abd", false, "go1"}), "warning version_mismatch"},
		{"other compiler", (&Release{"v1", "abc", false, "go1"}).doubts(&Release{"v1", "abc", false, "go2"}), "warning version_mismatch"},
		{"steady clock", clockDoubts(Realtime, time.Second+time.Millisecond, time.Second), ""},
		{"set clock", clockDoubts(Monotonic, time.Second, 2*time.Second), "note clock_jump"},
		{"set clock that counts", clockDoubts(Realtime, time.Hour, time.Second), "warning clock_jump"},
		{"clocks agree", (&TimeSync{Accepted: true}).doubts(), ""},
		{"clocks do not", (&TimeSync{}).doubts(), "warning time_sync_not_accepted"},
	} {
		var got []string
		for _, w := range c.list {
			got = append(got, w.Severity+" "+w.Code)
			if w.Message == "" {
				t.Errorf("%s: no message", c.name)
			}
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s: %q, want %q", c.name, s, c.want)
		}
	}
}

// TestNotesDoNotFail sees that only warnings fail a command that asks for it.
func TestNotesDoNotFail(t *testing.T) {
	for _, c := range []struct {
		list []Warning
		exit int
	}{{languageDoubts(), exitOK}, {(&TimeSync{}).doubts(), exitFailed}} {
		r := &Report{Host: []*Host{{}}, Resources: map[string]any{}, Warnings: c.list}
		if r.finish(nil, nil, true); r.Verdict.Exit != c.exit {
			t.Errorf("%v: exit code %d, want %d", c.list, r.Verdict.Exit, c.exit)
		}
		r = &Report{Host: []*Host{{}}, Resources: map[string]any{}, Warnings: c.list}
		if r.finish(nil, nil, false); r.Verdict.Exit != exitOK {
			t.Errorf("%v: exit code %d though nobody asked", c.list, r.Verdict.Exit)
		}
	}
}

// TestOtherBenchmark is refused while one runs.
func TestOtherBenchmark(t *testing.T) {
	ctx := context.Background()
	unlock, err := lockHost(ctx, 5*time.Minute) // others may measure here
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir()) // which makes it no other host
	for _, wait := range []time.Duration{0, 50 * time.Millisecond} {
		if _, err := lockHost(ctx, wait); !errors.Is(err, ErrCannotRun) || !strings.Contains(err.Error(), codeOther) {
			t.Errorf("a second one that waits %v: %v", wait, err)
		}
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	if _, err := lockHost(stopped, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("one that is interrupted while it waits: %v", err)
	}
	waits := make(chan error)
	go func() {
		unlock, err := lockHost(ctx, 5*time.Minute)
		if err == nil {
			unlock()
		}
		waits <- err
	}()
	select {
	case err := <-waits:
		t.Errorf("one that waits did not: %v", err)
	case <-time.After(60 * time.Millisecond):
	}
	unlock()
	if err := <-waits; err != nil {
		t.Errorf("one that waited: %v", err)
	}
}

// TestOtherHost asks an agent of another release on a busy host, and reports both.
func TestOtherHost(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	asked := make(chan string, 4)
	go func() {
		defer close(asked)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			line, err := bufio.NewReader(conn).ReadString('\n')
			if err == nil { // NewLab looks for addresses first, and says nothing
				asked <- line
				fmt.Fprintln(conn, `host {"host": {"arch": "arm64", "cores": 4, "load_before": 3.5}, "release": {"version": "v0.0.1"}}`)
			}
			conn.Close()
		}
	}()
	lab, err := NewLab("tcp", TopologyCrossHost, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer lab.Close()
	if line := <-asked; line != "host {}\n" {
		t.Errorf("it was asked %q", line)
	}
	c := &Common{Transport: "tcp"}
	track := &Track{Name: "event", Common: c, Mode: func() string { return "oneway" }, Ends: [2]string{"the publisher", "the subscribers"}}
	r := track.newReport(lab)
	if len(r.Host) != 2 || r.Host[0].Ends != "the publisher" || r.Host[1].Ends != "the subscribers" || r.Host[1].Arch != "arm64" {
		t.Errorf("hosts %+v", r.Host)
	}
	if r.Clock.Name != Realtime {
		t.Errorf("clock %s", r.Clock.Name)
	}
	found := map[string]Warning{}
	for _, w := range r.Warnings {
		found[w.Code+w.Case] = w
	}
	if found[codeVersion].Severity != severityWarning || found[codeCrossLanguage].Severity != severityNote || found[codeLoad+"host of the subscribers"].Evidence != "3.50" {
		t.Errorf("warnings %+v", r.Warnings)
	}
	lab.places[1].remote = "127.0.0.1:1"
	if _, err := lab.askHost(); !errors.Is(err, ErrCannotRun) {
		t.Errorf("a host that does not answer: %v", err)
	}
	track.Mode = func() string { return "rtt" }
	if r := track.newReport(lab); r.Clock.Name != Monotonic {
		t.Errorf("clock %s of round trips", r.Clock.Name)
	}
}

// TestEstimate is right within its bound, whatever the two ways take, and no
// worse than half the shortest round trip.
func TestEstimate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offset := rapid.Int64Range(-1e15, 1e15).Draw(t, "offset")
		way := rapid.Int64Range(0, 1e6)
		var list []ping
		shortest, now := int64(1e9), int64(1.7e18)
		for range rapid.IntRange(1, syncPings).Draw(t, "pings") {
			out, back := way.Draw(t, "out"), way.Draw(t, "back")
			list = append(list, ping{now, now + out + offset, now + out + back})
			now += out + back
			shortest = min(shortest, out+back)
		}
		s := estimate(list)
		if abs(s.Offset-offset) > s.Bound || s.Bound > (shortest+1)/2 {
			t.Fatalf("offset %d within %d, is %d; the shortest round trip is %d", s.Offset, s.Bound, offset, shortest)
		}
		// A word of the daemons that is true makes it no worse.
		most := abs(offset) + rapid.Int64Range(0, 1e6).Draw(t, "more")
		before := s.Bound
		s.narrow(most)
		if s.Disagree || abs(s.Offset-offset) > s.Bound || s.Bound > before {
			t.Fatalf("with daemons: offset %d within %d, is %d", s.Offset, s.Bound, offset)
		}
	})
	s := estimate([]ping{{0, 300 * us, 20 * us}})
	if s.narrow(100 * us); !s.Disagree {
		t.Errorf("an offset of 290 us, daemons that say 100: %+v", s)
	}
	// A clock that was set between two pings leaves no offset that both allow.
	s = estimate([]ping{{0, 10 * us, 20 * us}, {100 * us, 100*us + 900*us, 130 * us}, {200 * us, 1200 * us, 300 * us}, {0, 0, ms}, {0, 0, ms}, {0, 0, ms}, {0, 0, ms}, {0, 0, ms}})
	if s.Bound != 10*us {
		t.Errorf("%+v, want the bound of one ping", s)
	}
}

// TestWorstRound keeps the round whose clocks did not agree.
func TestWorstRound(t *testing.T) {
	s := &Session{Report: &Report{}}
	for i, c := range []struct {
		run  fake
		want bool
	}{{fake{delay: 100 * us}, true}, {fake{delay: 100 * us, offset: -101 * us}, false}, {fake{delay: 100 * us}, false}} {
		s.synchronised(&Run{Received: []Received{c.run.run(plan)}, Sync: &TimeSync{Bound: us}})
		if s.Report.TimeSync.Accepted != c.want {
			t.Errorf("after round %d: %+v", i, s.Report.TimeSync)
		}
	}
}

// TestOldAgent refuses an agent that does not know what it is asked for.
func TestOldAgent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
				fmt.Fprintln(conn, `failed {"message": "not known"}`)
			}
			conn.Close()
		}
	}()
	if lab, err := NewLab("tcp", TopologyCrossHost, l.Addr().String()); !errors.Is(err, ErrCannotRun) || !strings.Contains(err.Error(), "not known") {
		t.Errorf("%v, %v", lab, err)
	}
}
