// Command control measures request and response: latency, time-outs. The caller
// and the gateway are processes of their own, but for inproc; an echo over the
// bare Go socket of the same kind is measured in turn.
//
//	go run ./bench/transport/control --count 100 --warmup 10
//	go run ./bench/transport/control --payload-size 8 --period-us 1000
//	go run ./bench/transport/control --payload-size 1048576 --period-us 33333 --count 150
//	go run ./bench/transport/control --mode throughput --max-in-flight 16
//	go run ./bench/transport/control --timeouts
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
	"time"

	"github.com/madara-go/madara/bench/internal/harness"
)

type cli struct {
	harness.Common `embed:""`
	Mode           string `default:"latency" help:"latency, or throughput: the largest rate without failures and with p99 below --limit-us, and what goes through as fast as possible."`
	LimitUS        int64  `name:"limit-us" default:"1000" help:"Microseconds that p99 from the time due may take with --mode throughput, 1 to 60,000,000."`
	ReplySize      int    `default:"0" help:"Bytes of an answer, 8 to 16777216; 0 is as many as the request has."`
	MaxInFlight    int    `default:"1" help:"Calls at the same time, 1 to 1024: a late answer does not delay the calls after it, up to so many."`
	Timeouts       bool   `help:"See how callers of gateways that do not answer, answer late, die and restart are told."`
	TimeoutCalls   int    `default:"0" help:"Calls of each kind that are to time out with --timeouts, 1 to 1,000,000; 0 is 10,000."`
}

func main() {
	harness.PeerMain()
	os.Exit(harness.Main(track(), os.Args[1:], os.Stdout, os.Stderr))
}

func track() *harness.Track {
	c := &cli{}
	return &harness.Track{
		Name: "control", Description: "Measure request and response.", Kinds: harness.ControlKinds, Transport: "tcp", Payload: "8",
		Ends: [2]string{"the caller", "the gateway"}, CLI: c, Common: &c.Common, Validate: c.validate, Mode: c.mode, Measure: c.measure,
		Prepare: func() {
			if c.Timeouts && c.Timeout == 0 {
				c.Timeout = 50 * time.Millisecond
			}
			if c.Timeouts && c.TimeoutCalls == 0 {
				c.TimeoutCalls = 10_000
			}
		},
	}
}

func (c *cli) mode() string {
	if c.Timeouts {
		return "timeouts"
	}
	return c.Mode
}

func (c *cli) validate() error {
	if c.ReplySize != 0 {
		if err := harness.InRange("--reply-size", c.ReplySize, harness.MinPayload, harness.MaxPayload); err != nil {
			return err
		}
	}
	switch c.Mode {
	case "latency":
	case "throughput":
		if c.Timeouts {
			return harness.Usage("--mode", c.Mode, "latency with --timeouts")
		}
		if err := c.ValidateThroughput(c.LimitUS); err != nil {
			return err
		}
	default:
		return harness.Usage("--mode", c.Mode, "latency, throughput")
	}
	if c.Timeouts && c.Samples != "" {
		return harness.Usage("--samples", c.Samples, "without --timeouts, which measures no latencies")
	}
	if !c.Timeouts && c.TimeoutCalls != 0 {
		return harness.Usage("--timeout-calls", c.TimeoutCalls, "with --timeouts only")
	}
	if err := harness.InRange("--timeout-calls", c.TimeoutCalls, 0, 1_000_000); err != nil {
		return err
	}
	return harness.InRange("--max-in-flight", c.MaxInFlight, 1, 1024)
}

func (c *cli) measure(ctx context.Context, s *harness.Session) error {
	s.Report.Workload["in_flight"] = c.MaxInFlight
	if c.Timeouts {
		return c.timeouts(ctx, s)
	}
	rounds := 1
	if c.Mode == "throughput" {
		s.Report.Workload["limit_us"] = c.LimitUS
	} else {
		rounds = s.Rounds(len(c.PayloadSize), 2)
	}
	type testCase struct {
		cell     *harness.Cell
		workload harness.Workload
	}
	var cases []testCase
	for _, size := range c.PayloadSize {
		t := testCase{workload: c.workload(size)}
		t.cell = s.Cell(fmt.Sprintf("%s %d B, answer %d B", c.Transport, size, t.workload.Reply), &t.workload)
		cases = append(cases, t)
	}
	for range rounds {
		for _, t := range cases {
			if c.Mode == "throughput" {
				if err := s.Throughput(ctx, t.cell, t.workload, time.Duration(c.LimitUS)*time.Microsecond, s.Lab.Call); err != nil {
					return err
				}
				continue
			}
			if err := s.Round(ctx, t.cell, t.workload, s.Lab.Call); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *cli) workload(size int) harness.Workload {
	w := c.Workload(size)
	w.Reply = c.ReplySize
	if w.Reply == 0 {
		w.Reply = size
	}
	w.Call.InFlight = c.MaxInFlight
	return w
}

// timeouts measures no latencies, so there is nothing bare beside.
func (c *cli) timeouts(ctx context.Context, s *harness.Session) error {
	s.Report.Workload["timeout_calls"] = c.TimeoutCalls
	for _, size := range c.PayloadSize {
		w := c.workload(size)
		cell := s.Cell(fmt.Sprintf("%s %d B, time-outs", c.Transport, size), &w)
		w.Call.Timeouts = c.TimeoutCalls
		s.Say(cell.Case)
		run, err := s.Lab.Call(ctx, w, false)
		if err != nil {
			return err
		}
		s.Add(cell, w, run)
		w.Call.Timeouts, w.Call.Dies = 0, true
		if run, err = s.Lab.Call(ctx, w, false); err != nil {
			return err
		}
		s.AddCases(cell, run)
	}
	return nil
}
