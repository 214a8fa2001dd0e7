// Command priority measures what a higher class of calls gains beside bulk: high
// calls alone, bulk alone, and both together over one shared connection without
// the library, over the library in one class, and in two.
//
//	go run ./bench/transport/priority --count 1000
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

	"github.com/madara-go/madara/bench/internal/harness"
)

type cli struct {
	harness.Common `embed:""`
	Bulk           int `default:"2" help:"Bulk streams, 1 to 64, each with one call under way."`
	BulkSize       int `default:"1048576" help:"Bytes of a bulk request and of its answer, 65536 to 16777216."`
}

func main() {
	harness.PeerMain()
	os.Exit(harness.Main(track(), os.Args[1:], os.Stdout, os.Stderr))
}

func track() *harness.Track {
	c := &cli{}
	return &harness.Track{
		Name: "priority", Description: "Measure priorities of calls beside bulk.", Kinds: harness.ControlKinds, Transport: "tcp", Payload: "8",
		Ends: [2]string{"the caller", "the gateway"}, CLI: c, Common: &c.Common, Validate: c.validate, Mode: func() string { return "contention" }, Measure: c.measure,
	}
}

func (c *cli) validate() error {
	if len(c.PayloadSize) != 1 || c.PayloadSize[0] >= 1<<16 {
		return harness.Usage("--payload-size", c.PayloadSize, "one number, 8 to 65535")
	}
	if c.Transport == "inproc" && !c.NoBare {
		return harness.Usage("--transport", c.Transport, "unix or tcp, which have connections to share; inproc with --no-bare")
	}
	if err := harness.InRange("--period-us", c.PeriodUS, 1, 60_000_000); err != nil {
		return err
	}
	if err := harness.InRange("--bulk", c.Bulk, 1, 64); err != nil {
		return err
	}
	return harness.InRange("--bulk-size", c.BulkSize, 1<<16, harness.MaxPayload)
}

// The arrangements, in the order of a round.
const (
	idle = iota
	bulkAlone
	fifo
	oneClass
	twoClasses
	arrangements
)

var names = [arrangements]string{"high alone", "bulk alone", "one shared FIFO connection", "library, one class", "library, two classes"}

func (c *cli) measure(ctx context.Context, s *harness.Session) error {
	s.Report.Workload["bulk_streams"], s.Report.Workload["bulk_size"] = c.Bulk, c.BulkSize
	w := c.Workload(c.PayloadSize[0])
	w.Reply = w.Payload
	w.Timeout = max(w.Timeout, harness.BulkTimeout)
	w.Call.InFlight = 1
	var cells [arrangements]*harness.Cell
	for i, name := range names {
		if i != bulkAlone && (i != fifo || !c.NoBare) {
			x := w
			if i != idle {
				x.Call.Bulk = c.Bulk
			}
			cells[i] = s.Cell(fmt.Sprintf("%s %s", c.Transport, name), &x)
		}
	}
	var tally harness.Contention
	for range s.Rounds(1, arrangements) {
		var runs [arrangements]*harness.Run
		for i, name := range names {
			if i == fifo && c.NoBare {
				continue
			}
			s.Say(name)
			x := w
			if i != idle {
				x.Call.Bulk, x.Call.BulkSize = c.Bulk, c.BulkSize
			}
			x.Call.Alone = i == bulkAlone
			x.Call.Classes = i == twoClasses || i == bulkAlone
			x.Call.Fifo = i == fifo
			if cells[i] != nil {
				x = s.Sampled(cells[i], x)
			}
			run, err := s.Lab.Call(ctx, x, i == fifo)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			runs[i] = run
		}
		for i, run := range runs {
			if cells[i] != nil {
				s.Add(cells[i], w, run)
			}
		}
		tally.Add(runs[idle], runs[bulkAlone], runs[fifo], map[*harness.Cell]*harness.Run{
			cells[fifo]: runs[fifo], cells[oneClass]: runs[oneClass], cells[twoClasses]: runs[twoClasses],
		})
		tally.Finish()
	}
	return nil
}
