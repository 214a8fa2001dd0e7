package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/alecthomas/kong"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1 // a requirement, or a warning with --fail-on-warning
	exitUsage       = 2
	exitCannotRun   = 3
	exitInterrupted = 130 // by ^C, SIGTERM or SIGHUP
)

// Track is one benchmark command.
type Track struct {
	Name        string
	Description string
	Kinds       []string
	Transport   string    // default of --transport
	Payload     string    // default of --payload-size
	Ends        [2]string // what runs here and what on the host of --connect
	CLI         any       // a pointer to a struct with flags, which embeds Common
	Common      *Common
	Prepare     func() // unless nil, sets defaults that depend on other flags
	Validate    func() error
	Mode        func() string
	Fans        func() bool // unless nil, whether there are cases whose fan-out skew is measured
	Measure     func(context.Context, *Session) error
}

// Session is one run of a track.
type Session struct {
	*Common
	Lab     *Lab
	Report  *Report
	stderr  io.Writer
	live    bool
	samples *sampleFile
}

// Main runs a track and returns the exit code.
func Main(t *Track, args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	defer stop()
	return t.run(ctx, args, stdout, stderr)
}

func (t *Track) run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	helped := false
	parser, err := kong.New(t.CLI, kong.Name(t.Name), kong.Description(t.Description), kong.Writers(stdout, stderr),
		kong.Exit(func(int) { helped = true }), kong.UsageOnError(), numbers(), kong.Vars{"transport": t.Transport, "payload": t.Payload})
	if err == nil {
		_, err = parser.Parse(args)
	}
	if helped {
		return exitOK
	}
	fail := func(err error) int {
		fmt.Fprintf(stderr, "%s: %v\n", t.Name, err)
		if usage := (usageError{}); errors.As(err, &usage) {
			return exitUsage
		}
		return exitCannotRun
	}
	if usage := (usageError{}); errors.As(err, &usage) {
		return fail(usage) // without what the parser says before it
	}
	if err != nil {
		return fail(usageError{err})
	}
	if t.Common.Listen != "" {
		if err := t.Common.validateListen(t.Kinds); err != nil {
			return fail(err)
		}
		if err := Agent(ctx, t.Common.Listen, stderr); err != nil {
			return fail(err)
		}
		return exitInterrupted
	}
	if t.Prepare != nil {
		t.Prepare()
	}
	if err := t.Common.validate(t.Kinds); err != nil {
		return fail(err)
	}
	if err := t.Validate(); err != nil {
		return fail(err)
	}
	judges, err := t.judges()
	if err != nil {
		return fail(err)
	}
	var old *Report
	if t.Common.Compare != "" {
		if old, err = ReadReport(t.Common.Compare); err != nil {
			return fail(usageError{err})
		}
		if old.Track != t.Name || old.Mode != t.Mode() {
			return fail(Usage("--compare", fmt.Sprintf("%s of %s %s", t.Common.Compare, old.Track, old.Mode), "a file of "+t.Name+" "+t.Mode()))
		}
	}
	if err := t.Common.writable(); err != nil {
		return fail(err)
	}
	unlock, err := lockHost(ctx, t.Common.Wait)
	if ctx.Err() != nil {
		return exitInterrupted
	}
	if err != nil {
		return fail(err)
	}
	defer unlock()
	s := &Session{Common: t.Common, stderr: stderr, live: isTerminal(stderr)}
	if s.Lab, err = NewLab(t.Common.Transport, t.Common.Topology, t.Common.Connect); err != nil {
		return fail(err)
	}
	defer s.Lab.Close()
	if t.Common.Samples != "" {
		if s.samples, err = createSamples(t.Common.Samples, t.Name); err != nil {
			return fail(err)
		}
	}
	s.Report = t.newReport(s.Lab)
	s.Report.SamplesFile = t.Common.Samples
	began, wall := time.Now(), time.Now().Round(0)
	err = t.Measure(ctx, s)
	s.say("")
	if s.samples != nil {
		if e := s.samples.close(); err == nil {
			err = e
		}
	}
	r := s.Report
	r.Interrupted = ctx.Err() != nil
	if err != nil && !r.Interrupted {
		if errors.Is(err, ErrRoute) {
			r.Warnings = append(r.Warnings, Warning{Code: codeRoute, Severity: severityWarning, Message: err.Error()})
		}
		r.Stopped = err.Error()
		r.Verdict.Failed = append(r.Verdict.Failed, r.Stopped)
		fail(fmt.Errorf("%w: %w", ErrCannotRun, err))
	}
	r.Warnings = append(r.Warnings, clockDoubts(r.Clock.Name, time.Now().Round(0).Sub(wall), time.Since(began))...)
	if s.Lab.there != nil {
		if again, err := s.Lab.askHost(); err == nil { // else its load stays unknown
			r.Host[1].LoadAfter = again.Host.LoadBefore
		}
	}
	changes := r.finish(judges, old, t.Common.FailOnWarning)
	if err := s.write(stdout, changes); err != nil {
		return fail(err)
	}
	return r.Verdict.Exit
}

func (t *Track) newReport(l *Lab) *Report {
	c := t.Common
	h, release := thisHost(), thisRelease()
	hosts, doubts := []*Host{h}, languageDoubts()
	if l.there != nil {
		other := l.there.Host
		h.Ends, other.Ends, other.LoadAfter = t.Ends[0], t.Ends[1], -1
		hosts = append(hosts, other)
		doubts = append(doubts, release.doubts(&l.there.Release)...)
	}
	for _, h := range hosts {
		doubts = append(doubts, h.doubts()...)
	}
	clock := Monotonic
	if t.Name == "event" && t.Mode() != "rtt" {
		clock = l.Clock() // both ends read it; round trips are one end's
	}
	transport := map[string]any{
		"kind": c.Transport, "socket_buffer": socketBuffer, "filters": []string{}, "addresses": l.hosts,
		"baseline": map[string]string{"inproc": "Go channels", "unix": "unix stream socket", "tcp": "TCP socket", "udp": "UDP socket", "multicast": "UDP socket on a group"}[c.Transport],
	}
	return &Report{
		Schema: Schema, Track: t.Name, Mode: t.Mode(), Started: time.Now().UTC().Format(time.RFC3339), Release: release,
		Host: hosts, Topology: l.Topology, Transport: transport, Clock: Describe(clock), Warnings: doubts,
		Results: []*Cell{}, Summary: []string{}, Reference: referencesOf(t.Name), Resources: map[string]any{},
		Workload: map[string]any{
			"payload_size": c.PayloadSize, "period_us": c.PeriodUS, "count": c.Count, "warmup": c.Warmup,
			"timeout_us": c.Timeout.Microseconds(), "languages": []string{"go", "go"},
		},
	}
}

// Cell begins a case.
func (s *Session) Cell(name string, w *Workload) *Cell {
	c := newCell(name, w)
	s.Report.Results = append(s.Report.Results, c)
	return c
}

// Rounds returns how often cases are measured, each with sides.
func (s *Session) Rounds(cases, sides int) int {
	n := s.Common.rounds(cases, sides)
	s.Report.Workload["rounds"] = n
	return n
}

// Round measures a case once: the library, the bare socket, and the floor, in
// turn.
func (s *Session) Round(ctx context.Context, c *Cell, w Workload, run func(context.Context, Workload, bool) (*Run, error)) error {
	s.say("%s: round %d", c.Case, len(c.Rounds)+1)
	lib, err := run(ctx, s.Sampled(c, w), false)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Case, err)
	}
	var bare *Run
	if !s.NoBare {
		s.say("%s: round %d, bare", c.Case, len(c.Rounds)+1)
		if bare, err = run(ctx, w, true); err != nil {
			return fmt.Errorf("%s, bare: %w", c.Case, err)
		}
	}
	s.synchronised(lib)
	c.add(&w, lib, bare, s.floor(w))
	return nil
}

// synchronised takes how the clocks of two hosts agreed in a run. A report has
// the last run, or one that is not accepted.
func (s *Session) synchronised(run *Run) {
	if run.Sync == nil {
		return
	}
	negative := int64(0)
	for _, x := range run.Received {
		negative += x.Negative
	}
	run.Sync.Accept(run.latency().Min(), negative)
	if t := s.Report.TimeSync; t == nil || t.Accepted {
		s.Report.TimeSync = run.Sync
	}
}

// Add takes one run of the library, without a bare one beside it.
func (s *Session) Add(c *Cell, w Workload, run *Run) { c.add(&w, run, nil, s.floor(w)) }

// AddCases takes what callers were told in another run.
func (s *Session) AddCases(c *Cell, run *Run) { c.Timeouts = append(c.Timeouts, run.Sent.Cases...) }

// Say shows what goes on, on a terminal.
func (s *Session) Say(what string) { s.say("%s", what) }

// floorCount is how many messages measure the floor.
const floorCount = 200

func (s *Session) floor(w Workload) *Distribution {
	_, list := Floor(Plan{Period: min(w.Period, time.Millisecond).Nanoseconds(), Count: floorCount}, w.Payload, max(w.Subscribers, 1))
	d := NewDistribution()
	for _, r := range list {
		d.Merge(r.Latency)
	}
	return d
}

// say shows what goes on, on a terminal.
func (s *Session) say(format string, args ...any) {
	if s.live {
		fmt.Fprintf(s.stderr, "\r\x1b[K"+format, args...)
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// finish makes the figures, the warnings and the verdict. It returns the text of
// a comparison.
func (r *Report) finish(judges []*judge, old *Report, failOnWarning bool) []string {
	r.Host[0].LoadAfter = load()
	for _, c := range r.Results {
		if c.finish(); c.measured() {
			r.warn(c)
		}
	}
	if r.TimeSync != nil {
		r.Warnings = append(r.Warnings, r.TimeSync.doubts()...)
	}
	var total Resources
	var cpu float64
	for _, c := range r.Results {
		total.MaxRSS = max(total.MaxRSS, c.RSS)
		total.MaxPause = max(total.MaxPause, c.MaxPause)
		cpu = max(cpu, c.CPU)
	}
	r.Resources["max_rss_bytes"], r.Resources["max_gc_pause_us"], r.Resources["max_cpu_percent"] = total.MaxRSS, total.MaxPause, cpu
	var changes []string
	if old != nil {
		c := compare(old, r)
		if changes = c.table; c.worse > 0 {
			r.Warnings = append(r.Warnings, Warning{Code: codeSlower, Severity: severityWarning, Message: fmt.Sprintf("%d figures are worse than before", c.worse)})
		}
		if c.judged == 0 {
			r.Warnings = append(r.Warnings, Warning{Code: codeNotCompared, Severity: severityWarning, Message: "nothing could be judged against the older file"})
		}
	}
	if r.Warnings == nil {
		r.Warnings = []Warning{}
	}
	for _, j := range judges {
		judged := false
		for _, c := range r.Results {
			if !j.concerns(c) || !c.measured() {
				continue
			}
			judged = true
			if ok, evidence := j.holds(c); !ok {
				r.Verdict.Failed = append(r.Verdict.Failed, fmt.Sprintf("%s: %s does not hold: %s", c.Case, j.text, evidence))
			}
		}
		if !judged {
			r.Verdict.Failed = append(r.Verdict.Failed, j.text+" does not hold: no case was measured that it concerns")
		}
	}
	if failOnWarning {
		for _, w := range r.Warnings {
			if w.Severity == severityWarning {
				r.Verdict.Failed = append(r.Verdict.Failed, "warning "+w.Code)
			}
		}
	}
	r.Summary = append(r.Summary, r.sentences()...)
	r.Verdict.OK = len(r.Verdict.Failed) == 0 && !r.Interrupted
	switch {
	case r.Interrupted:
		r.Verdict.Exit = exitInterrupted
	case r.Stopped != "":
		r.Verdict.Exit = exitCannotRun
	case !r.Verdict.OK:
		r.Verdict.Exit = exitFailed
	}
	return changes
}
