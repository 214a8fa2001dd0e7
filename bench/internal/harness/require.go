package harness

import (
	"fmt"
	"slices"
	"strings"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// judge is a requirement in KaRL over the figures of a case.
type judge struct {
	text  string
	reads []string
}

// figuresOf returns the variables of a case. Latencies are in microseconds.
func figuresOf(c *Cell) map[string]karl.Value {
	v := map[string]karl.Value{}
	times := func(prefix string, s *Summary) {
		if s == nil {
			s = &Summary{}
		}
		p99, p999 := s.Max, s.Max // of too few samples: the largest is no less
		if s.P99 != nil {
			p99 = *s.P99
		}
		if s.P999 != nil {
			p999 = *s.P999
		}
		for name, t := range map[string]float64{
			"min": s.Min, "mean": s.Mean, "stddev": s.StdDev, "p50": s.P50, "p90": s.P90, "p95": s.P95, "p99": p99, "p999": p999, "max": s.Max,
		} {
			v[prefix+name] = karl.Float(t)
		}
	}
	times("", &c.Latency)
	times("schedule_", &c.Schedule)
	times("lag_", &c.Lag)
	times("cost_", c.PublishCost)
	times("skew_", c.Skew)
	times("bare_", c.Bare)
	times("floor_", c.Floor)
	v["mean"] = karl.Float(c.Mean)
	for name, n := range map[string]int64{
		"payload_size": int64(c.Payload), "reply_size": int64(c.Reply), "subscribers": int64(c.Subscribers), "sent": c.Sent, "expected": c.Expected,
		"received": c.Received, "dropped": c.Dropped, "duplicates": c.Duplicates, "reordered": c.Reordered, "late": c.Late,
		"missing": int64(c.Missing), "errors": c.SendErrors, "failures": c.Failures, "late_replies": c.LateReply, "delayed": c.Delayed,
		"completed": int64(c.Completed), "partial": int64(c.Partial), "timeouts": c.Kinds["timeout"], "rss": c.RSS,
	} {
		v[name] = karl.Int(n)
	}
	v["saturated"] = karl.Int(0)
	if c.Saturated {
		v["saturated"] = karl.Int(1)
	}
	for name, x := range map[string]float64{"ratio": c.Ratio, "spread": c.Spread, "allocs": c.Allocs, "bare_allocs": c.BareAllocs, "cpu": c.CPU, "growth": c.Growth} {
		v[name] = karl.Float(x)
	}
	t := c.Throughput
	if t == nil {
		t = &Throughput{}
	}
	v["rate"], v["unpaced_sent"], v["unpaced_received"] = karl.Float(t.Rate), karl.Float(t.Unpaced.Sent), karl.Float(t.Unpaced.Received)
	b := c.Bulk
	if b == nil {
		b = &BulkFigures{}
	}
	v["bulk_rate"], v["bulk_share"], v["starvation"] = karl.Float(b.MiB), karl.Float(b.Share), karl.Float(b.Longest)
	v["fifo_ratio"], v["idle_p50_ratio"], v["inversions"] = karl.Float(b.FifoRatio), karl.Float(b.IdleP50Ratio), karl.Int(b.Inversions)
	var outside, wrong, left int64
	for _, x := range c.Timeouts {
		outside, wrong, left = outside+x.Outside, wrong+x.Wrong, left+int64(x.Left)
	}
	v["outside"], v["wrong"], v["left"] = karl.Int(outside), karl.Int(wrong), karl.Int(left)
	return v
}

func newJudges(texts []string) ([]*judge, error) {
	var list []*judge
	known := figuresOf(newCell("", &Workload{}))
	for _, text := range texts {
		kb := knowledge.New()
		e, err := kb.Compile(text)
		kb.Close()
		if err != nil {
			return nil, usageError{fmt.Errorf("--require: %w", err)}
		}
		if w := e.Writes(); len(w) > 0 {
			return nil, Usage("--require", text, "without assignments")
		}
		for _, name := range e.Reads() {
			if _, ok := known[name]; !ok {
				var names []string
				for n := range known {
					names = append(names, n)
				}
				slices.Sort(names)
				return nil, Usage("--require", fmt.Sprintf("%s, which reads %s", text, name), strings.Join(names, " "))
			}
		}
		list = append(list, &judge{text, e.Reads()})
	}
	return list, nil
}

// holds evaluates the requirement over a case, and says what it read.
func (j *judge) holds(c *Cell) (bool, string) {
	kb := knowledge.New()
	defer kb.Close()
	var evidence []string
	for name, v := range figuresOf(c) {
		if err := kb.Set(name, v); err != nil {
			return false, err.Error()
		}
	}
	for _, name := range j.reads {
		evidence = append(evidence, fmt.Sprintf("%s = %v", name, kb.Get(name)))
	}
	v, err := kb.Evaluate(j.text, nil)
	if err != nil {
		return false, err.Error()
	}
	return v.IsTrue(), strings.Join(evidence, ", ")
}
