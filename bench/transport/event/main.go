// Command event measures publish and subscribe: latency, fan-out, drops. The
// publisher and the subscribers are processes of their own, but for inproc; the
// bare Go socket of the same kind is measured in turn.
//
//	go run ./bench/transport/event --count 100 --warmup 10
//	go run ./bench/transport/event --subscribers 1,2,4,8,16 --payload-size 64,4096 --count 2000 --json out.json
//	go run ./bench/transport/event --mode rtt --payload-size 64,65536 --count 10000
//	go run ./bench/transport/event --mode throughput --limit-us 1000
//	go run ./bench/transport/event --transport multicast --subscribers 512 --processes 8 --payload-size 8
//	go run ./bench/transport/event --require 'p99 < 200 && dropped == 0' --fail-on-warning
//
// Exit codes: 0 ok; 1 a requirement does not hold, or there is a warning and
// --fail-on-warning; 2 usage; 3 it could not run, or ended early, with a partial
// report if it had begun; 130 interrupted by ^C, SIGTERM or SIGHUP, with a partial
// report.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/madara-go/madara/bench/internal/harness"
	"github.com/madara-go/madara/transport"
)

type cli struct {
	harness.Common `embed:""`
	Mode           string `default:"oneway" help:"oneway; rtt: messages that come back; throughput: the largest rate without drops and with p99 below --limit-us, and what goes through as fast as possible."`
	LimitUS        int64  `name:"limit-us" default:"1000" help:"Microseconds that p99 from the time due may take with --mode throughput, 1 to 60,000,000."`
	Subscribers    []int  `default:"1" help:"How many subscribe, 1 to 4096; several with commas."`
	Processes      int    `default:"0" help:"Processes that the subscribers share, 1 to 64; 0 is one for each, as far as 64 for each allow."`
	QueueDepth     int    `default:"256" help:"Messages that wait for a subscriber's handler, 1 to 65536."`
	QueuePolicy    string `default:"drop-oldest" help:"What a full queue does: drop-oldest, drop-newest, keep-last."`
}

func main() {
	harness.PeerMain()
	os.Exit(harness.Main(track(), os.Args[1:], os.Stdout, os.Stderr))
}

func track() *harness.Track {
	c := &cli{}
	return &harness.Track{
		Name: "event", Description: "Measure publish and subscribe.", Kinds: harness.Kinds, Transport: defaultTransport, Payload: "64",
		Ends: [2]string{"the publisher", "the subscribers"}, CLI: c, Common: &c.Common, Validate: c.validate, Mode: func() string { return c.Mode }, Fans: c.fans, Measure: c.measure,
	}
}

// defaultTransport is a link that all hosts have and that carries all payloads.
const defaultTransport = "tcp"

// Bounds of the flags.
const (
	maxSubscribers = 4096
	maxProcesses   = 64
	maxPerProcess  = 64
)

func (c *cli) validate() error {
	switch c.Mode {
	case "oneway", "rtt":
	case "throughput":
		if err := c.ValidateThroughput(c.LimitUS); err != nil {
			return err
		}
	default:
		return harness.Usage("--mode", c.Mode, "oneway, rtt, throughput")
	}
	if len(c.Subscribers) == 0 {
		return harness.Usage("--subscribers", "empty", "at least one number")
	}
	if _, ok := harness.Policies[c.QueuePolicy]; !ok {
		return harness.Usage("--queue-policy", c.QueuePolicy, "drop-oldest, drop-newest, keep-last")
	}
	if err := harness.InRange("--queue-depth", c.QueueDepth, 1, transport.MaxDepth); err != nil {
		return err
	}
	if err := harness.InRange("--processes", c.Processes, 0, maxProcesses); err != nil {
		return err
	}
	if c.Transport == "inproc" && c.Processes > 1 {
		return harness.Usage("--processes", c.Processes, "1 over inproc, which is one process")
	}
	if err := harness.Distinct("--subscribers", c.Subscribers); err != nil {
		return err
	}
	if most := slices.Max(c.Subscribers); c.Processes > most && most > 0 {
		return harness.Usage("--processes", c.Processes, fmt.Sprintf("at most %d, as many as --subscribers", most))
	}
	for _, n := range c.Subscribers {
		if err := harness.InRange("--subscribers", n, 1, maxSubscribers); err != nil {
			return err
		}
		if c.Samples != "" && int64(n)*c.Count > harness.MaxSamples {
			return harness.Usage("--subscribers", fmt.Sprintf("%d with --count %d and --samples", n, c.Count), fmt.Sprintf("%d samples together", harness.MaxSamples))
		}
		if c.Mode == "rtt" && n != 1 {
			return harness.Usage("--subscribers", n, "1 with --mode rtt")
		}
		if p := c.processes(n); c.Transport != "inproc" && (n+p-1)/p > maxPerProcess {
			return harness.Usage("--processes", c.Processes, fmt.Sprintf("at least %d for %d subscribers, %d a process", (n+maxPerProcess-1)/maxPerProcess, n, maxPerProcess))
		}
	}
	return nil
}

// fans reports whether there are cases whose fan-out skew is measured.
func (c *cli) fans() bool {
	return c.Mode != "rtt" && slices.ContainsFunc(c.Subscribers, func(n int) bool { return n > 1 && int64(n)*c.Count <= harness.MaxSkew })
}

// processes is how many processes so many subscribers share.
func (c *cli) processes(subscribers int) int {
	switch {
	case c.Transport == "inproc":
		return 1
	case c.Processes > 0:
		return min(c.Processes, subscribers)
	case subscribers <= 16:
		return subscribers
	}
	return max((subscribers+maxPerProcess-1)/maxPerProcess, min(8, subscribers))
}

type testCase struct {
	cell     *harness.Cell
	workload harness.Workload
}

func (c *cli) measure(ctx context.Context, s *harness.Session) error {
	w := s.Report.Workload
	w["subscribers"], w["queue_depth"], w["queue_policy"] = c.Subscribers, c.QueueDepth, c.QueuePolicy
	run := s.Lab.Event
	if c.Mode == "rtt" {
		run = s.Lab.Trip
	}
	rounds := 1
	if c.Mode == "throughput" {
		w["limit_us"] = c.LimitUS
	} else {
		rounds = s.Rounds(len(c.Subscribers)*len(c.PayloadSize), 2)
	}
	var cases []testCase
	var processes []int
	for _, size := range c.PayloadSize {
		for _, n := range c.Subscribers {
			t := testCase{workload: s.Workload(size)}
			t.workload.Depth, t.workload.Policy = c.QueueDepth, c.QueuePolicy
			name := fmt.Sprintf("%s %d B rtt", c.Transport, size)
			if c.Mode != "rtt" {
				t.workload.Subscribers, t.workload.Processes = n, c.processes(n)
				name = fmt.Sprintf("%s %d B N=%d", c.Transport, size, n)
				processes = append(processes, c.processes(n))
			}
			t.cell = s.Cell(name, &t.workload)
			cases = append(cases, t)
		}
	}
	w["processes"] = slices.Compact(processes)
	for range rounds {
		for i := range cases {
			if c.Mode == "throughput" {
				if err := s.Throughput(ctx, cases[i].cell, cases[i].workload, time.Duration(c.LimitUS)*time.Microsecond, run); err != nil {
					return err
				}
				continue
			}
			if err := s.Round(ctx, cases[i].cell, cases[i].workload, run); err != nil {
				return err
			}
		}
	}
	return nil
}
