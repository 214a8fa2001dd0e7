package harness

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Common is the flags of all tracks.
type Common struct {
	Transport     string        `default:"${transport}" help:"Link: inproc, unix, tcp, udp or multicast; Control has inproc, unix and tcp."`
	Topology      string        `default:"" help:"process (inproc only), same-host, or netns: two network namespaces that are made for the run."`
	Connect       string        `placeholder:"HOST:PORT" help:"Run the subscribers or the gateway on another host, where the same benchmark runs with --listen."`
	Listen        string        `placeholder:"ADDRESS" help:"Be the other host for --connect, until ^C. For networks that you trust."`
	Count         int64         `default:"1000" help:"Messages that are measured, 1 to 10,000,000."`
	Warmup        int64         `default:"100" help:"Messages before them, 0 to 10,000,000."`
	PayloadSize   []int         `default:"${payload}" help:"Bytes of a message, 8 to 16777216, over udp and multicast to 65507; several with commas."`
	PeriodUS      int64         `name:"period-us" default:"1000" help:"Microseconds between two messages, 0 to 60,000,000; 0 is as fast as possible."`
	Rounds        int           `default:"0" help:"How often everything is measured, 1 to 100; 0 is as often as a minute allows, at most 5."`
	Timeout       time.Duration `default:"0" help:"How long an answer may take, 1ms to 1m; 0 is 1s, and 50ms with --timeouts."`
	JSON          string        `name:"json" placeholder:"FILE" help:"Write the report there, - is standard output instead of the text."`
	CSV           string        `name:"csv" placeholder:"FILE" help:"Write a line for each case there."`
	Samples       string        `placeholder:"FILE" help:"Write a line for each measured message there, as CSV."`
	Markdown      string        `placeholder:"FILE" help:"Write a table there."`
	HTML          string        `name:"html" placeholder:"FILE" help:"Write a page with plots there, which needs nothing else."`
	Compare       string        `placeholder:"FILE" help:"Compare with an older file of --json."`
	Require       []string      `sep:"none" placeholder:"KARL" help:"Fail unless this holds of each case, as in 'p99 < 200 && dropped == 0'; times in microseconds. May be repeated. --help-require lists what it may read."`
	HelpRequire   helpRequire   `help:"List the figures for --require."`
	FailOnWarning bool          `help:"Fail if the report has a warning; notes are none."`
	NoBare        bool          `help:"Leave out the bare sockets beside, and so the ratio: the median of the rounds' mean divided by bare mean."`
	Wait          time.Duration `default:"0" env:"MADARA_BENCH_WAIT" help:"How long to wait for another benchmark on this host to end, 0 to 1h."`
}

// maxRounds is how often cases can be measured.
const maxRounds = 100

// usageError is an error of usage: exit code 2.
type usageError struct{ error }

// Usage returns an error that names a flag, its value and what is allowed.
func Usage(flag string, value any, allowed string) error {
	return usageError{fmt.Errorf("%s is %v, allowed is %s", flag, value, allowed)}
}

// InRange checks a flag.
func InRange[T int | int64 | time.Duration](flag string, value, least, most T) error {
	if value < least || value > most {
		return Usage(flag, value, fmt.Sprintf("%v to %v", least, most))
	}
	return nil
}

// validate checks the flags of all tracks and fills in the topology.
func (c *Common) validate(kinds []string) error {
	if !slices.Contains(kinds, c.Transport) {
		return Usage("--transport", c.Transport, strings.Join(kinds, ", "))
	}
	inside := c.Transport == "inproc"
	switch c.Topology {
	case "":
		c.Topology = TopologySameHost
		if inside {
			c.Topology = TopologyProcess
		}
		if c.Connect != "" {
			c.Topology = TopologyCrossHost
		}
	case TopologyProcess, TopologySameHost, TopologyNetns:
		if inside != (c.Topology == TopologyProcess) || c.Connect != "" {
			return Usage("--topology", c.Topology, "process for inproc, same-host or netns for the others, none with --connect")
		}
	default:
		return Usage("--topology", c.Topology, "process, same-host, netns")
	}
	if c.Transport == "unix" && c.Topology == TopologyCrossHost || inside && c.Connect != "" {
		return Usage("--transport", c.Transport, "tcp, udp or multicast with --connect")
	}
	if c.Timeout == 0 {
		c.Timeout = time.Second
	}
	for _, err := range []error{
		InRange("--count", c.Count, 1, MaxCount), InRange("--warmup", c.Warmup, 0, MaxCount),
		InRange("--period-us", c.PeriodUS, 0, 60_000_000), InRange("--rounds", c.Rounds, 0, maxRounds),
		InRange("--timeout", c.Timeout, time.Millisecond, time.Minute), InRange("--wait", c.Wait, 0, time.Hour),
	} {
		if err != nil {
			return err
		}
	}
	if len(c.PayloadSize) == 0 {
		return Usage("--payload-size", "empty", "at least one number")
	}
	if err := Distinct("--payload-size", c.PayloadSize); err != nil {
		return err
	}
	for _, size := range c.PayloadSize {
		if err := Available(c.Transport, size); err != nil {
			return usageError{err}
		}
	}
	return nil
}

// Distinct refuses a list that has a number twice: its cases would be one.
func Distinct(flag string, list []int) error {
	for i, n := range list {
		if slices.Contains(list[:i], n) {
			return Usage(flag, fmt.Sprintf("%d twice", n), "each number once")
		}
	}
	return nil
}

// validateListen checks the flags of an agent.
func (c *Common) validateListen(kinds []string) error {
	between := slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return kind == "inproc" || kind == "unix" })
	if !slices.Contains(between, c.Transport) {
		return Usage("--transport", c.Transport, strings.Join(between, ", ")+" with --listen")
	}
	if c.Connect != "" {
		return Usage("--listen", c.Listen, "without --connect only")
	}
	return nil
}

// ValidateThroughput checks the flags of a search for the largest rate.
func (c *Common) ValidateThroughput(limitUS int64) error {
	if c.Samples != "" {
		return Usage("--samples", c.Samples, "without --mode throughput")
	}
	if c.Rounds > 1 {
		return Usage("--rounds", c.Rounds, "1 with --mode throughput")
	}
	return InRange("--limit-us", limitUS, 1, 60_000_000)
}

// period is the time between two messages.
func (c *Common) period() time.Duration { return time.Duration(c.PeriodUS) * time.Microsecond }

// Workload returns the workload of a payload.
func (c *Common) Workload(payload int) Workload {
	return Workload{Payload: payload, Period: c.period(), Count: c.Count, Warmup: c.Warmup, Timeout: c.Timeout}
}

// budget is how long a run with its own choice of rounds may take.
const budget = time.Minute

// rounds returns how often cases are measured, each with sides.
func (c *Common) rounds(cases, sides int) int {
	if c.Rounds > 0 {
		return c.Rounds
	}
	one := time.Duration(cases*sides) * (time.Duration(c.Count+c.Warmup)*c.period() + 500*time.Millisecond)
	return int(min(max(budget/max(one, 1), 1), 5))
}
