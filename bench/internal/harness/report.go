package harness

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"slices"
)

// Schema is the version of the report's form.
const Schema = "bench/1"

// Report is what a benchmark says.
type Report struct {
	Schema      string         `json:"schema"`
	Track       string         `json:"track"`
	Mode        string         `json:"mode"`
	Started     string         `json:"started"`
	Release     Release        `json:"release"`
	Host        []*Host        `json:"host"`
	Topology    string         `json:"topology"`
	Workload    map[string]any `json:"workload"`
	Transport   map[string]any `json:"transport"`
	Clock       ClockInfo      `json:"clock"`
	TimeSync    *TimeSync      `json:"time_sync,omitempty"`
	Results     []*Cell        `json:"results"`
	Resources   map[string]any `json:"resources"`
	Warnings    []Warning      `json:"warnings"`
	Summary     []string       `json:"summary"`
	Verdict     Verdict        `json:"verdict"`
	Interrupted bool           `json:"interrupted,omitempty"` // so that the report is partial
	Stopped     string         `json:"stopped,omitempty"`     // what ended the run early: the report is partial
	Reference   []Reference    `json:"reference"`
	SamplesFile string         `json:"samples_file,omitempty"`
}

// Release is what was measured.
type Release struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Dirty   bool   `json:"dirty"`
	Go      string `json:"go"`
}

func thisRelease() Release {
	r := Release{Version: "unknown", Commit: "unknown", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return r
	}
	r.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			r.Commit = s.Value
		case "vcs.modified":
			r.Dirty = s.Value == "true"
		}
	}
	return r
}

// Verdict is how the command ends.
type Verdict struct {
	OK     bool     `json:"ok"`
	Exit   int      `json:"exit"`
	Failed []string `json:"failed,omitempty"` // requirements and, with --fail-on-warning, warnings
}

// Round is the figures of one round, in microseconds.
type Round struct {
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"` // the greatest one below 1,000 samples
	Bare  float64 `json:"bare_mean,omitempty"`
	Ratio float64 `json:"ratio,omitempty"` // of the means
}

// Cell is one combination of the workload, of all rounds.
type Cell struct {
	Case        string  `json:"case"`
	NotMeasured bool    `json:"not_measured,omitempty"` // the run ended before a round of it
	Payload     int     `json:"payload_size"`
	Reply       int     `json:"reply_size,omitempty"`
	Subscribers int     `json:"subscribers,omitempty"`
	Processes   int     `json:"processes,omitempty"` // of the subscribers
	Unit        string  `json:"unit"`
	Mean        float64 `json:"mean"`   // median of the rounds' means
	Spread      float64 `json:"spread"` // largest less smallest mean, in parts of the median
	Ratio       float64 `json:"ratio,omitempty"`
	FloorMean   float64 `json:"floor_mean"`
	Rounds      []Round `json:"rounds"`

	Latency     Summary   `json:"latency"`
	Schedule    Summary   `json:"schedule_latency"`
	PublishCost *Summary  `json:"publish_cost,omitempty"`
	Lag         Summary   `json:"schedule_lag"`
	Penalised   *Summary  `json:"penalised,omitempty"`
	Skew        *Summary  `json:"fan_out_skew,omitempty"`
	Bare        *Summary  `json:"bare,omitempty"`
	Floor       *Summary  `json:"floor,omitempty"`
	Histogram   string    `json:"histogram"`
	Peaks       []float64 `json:"latency_peaks"` // of equal parts of the last round, 0 where nothing came

	Sent       int64             `json:"sent"`
	Expected   int64             `json:"expected"` // by all subscribers
	Received   int64             `json:"received"`
	Dropped    int64             `json:"dropped"`
	Duplicates int64             `json:"duplicates"`
	Reordered  int64             `json:"out_of_order"`
	Late       int64             `json:"late"`
	Negative   int64             `json:"negative"`
	Missing    int               `json:"missing"` // subscribers that received nothing measured
	SendErrors int64             `json:"send_errors"`
	Failures   int64             `json:"failures"`
	Kinds      map[string]int64  `json:"failure_kinds,omitempty"`
	LateReply  int64             `json:"late_replies"`
	Delayed    int64             `json:"delayed"` // sent late since the one before was not answered
	Drops      map[string]uint64 `json:"drops_by_stage,omitempty"`
	Ready      int               `json:"endpoints_ready,omitempty"`
	Completed  int               `json:"endpoints_completed,omitempty"`
	Partial    int               `json:"endpoints_partial,omitempty"`
	ReadyMS    float64           `json:"ready_ms,omitempty"`
	Saturated  bool              `json:"saturated"`
	Growth     float64           `json:"growth_us"`          // of latency through the run
	Allocs     float64           `json:"allocs_per_message"` // of the sending process
	BareDrops  int64             `json:"bare_dropped"`
	BareAllocs float64           `json:"bare_allocs_per_message"` // what is more is the library's
	CPU        float64           `json:"cpu_percent"`
	RSS        int64             `json:"rss_bytes"`
	MaxPause   float64           `json:"max_gc_pause_us"`

	Each       []Subscriber  `json:"subscribers_each,omitempty"`
	Timeouts   []TimeoutCase `json:"timeouts,omitempty"`
	Bulk       *BulkFigures  `json:"bulk,omitempty"`
	Throughput *Throughput   `json:"throughput,omitempty"`

	pooled, schedule, cost, lag, penalised, skew, bare, floor *Distribution
	period, first, count                                      int64
	wall                                                      float64
	withBulk                                                  bool // the case has bulk beside
}

// Subscriber is what one subscriber of the last round received.
type Subscriber struct {
	Subscriber int     `json:"subscriber"`
	Received   int64   `json:"received"`
	Dropped    int64   `json:"dropped"`
	Gaps       []Gap   `json:"gaps,omitempty"`
	MoreGaps   int64   `json:"more_gaps,omitempty"`
	Latency    Summary `json:"latency"`
}

func newCell(name string, w *Workload) *Cell {
	c := &Cell{Case: name, Payload: w.Payload, Reply: w.Reply, Subscribers: w.Subscribers, Processes: w.Processes, Unit: "us", Kinds: map[string]int64{}, Drops: map[string]uint64{}, period: w.Period.Nanoseconds(), first: w.Warmup, count: w.Count, withBulk: w.Call.Bulk > 0}
	for _, d := range []**Distribution{&c.pooled, &c.schedule, &c.cost, &c.lag, &c.penalised, &c.skew, &c.bare, &c.floor} {
		*d = NewDistribution()
	}
	return c
}

// add takes a round of the library; bare and floor may be nil.
func (c *Cell) add(w *Workload, lib, bare *Run, floor *Distribution) {
	one := lib.latency()
	c.pooled.Merge(one)
	s := one.Summary()
	r := Round{Mean: s.Mean, P50: s.P50, P99: s.Max}
	if s.P99 != nil {
		r.P99 = *s.P99
	}
	if bare != nil {
		b := bare.latency()
		c.bare.Merge(b)
		r.Bare = b.Mean() / 1000
		if r.Bare > 0 {
			r.Ratio = r.Mean / r.Bare
		}
		for _, x := range bare.Received {
			c.BareDrops += x.Dropped
		}
		c.BareAllocs = bare.Sent.Allocs
		c.BareDrops += bare.Sent.Failures
	}
	c.floor.Merge(floor)
	c.Rounds = append(c.Rounds, r)

	c.cost.Merge(lib.Sent.Cost)
	c.lag.Merge(lib.Sent.Lag)
	c.penalised.Merge(lib.Sent.Penalised)
	c.skew.Merge(lib.Skew)
	c.Sent += lib.Sent.Sent
	c.SendErrors += lib.Sent.Errors
	c.Failures += lib.Sent.Failures
	c.LateReply += lib.Sent.LateReplies
	c.Delayed += lib.Sent.Delayed
	c.Allocs = lib.Sent.Allocs
	for k, n := range lib.Sent.Kinds {
		c.Kinds[k] += n
	}
	for k, n := range lib.Drops {
		c.Drops[k] += n
	}
	c.Timeouts = append(c.Timeouts, lib.Sent.Cases...)
	c.Peaks = lib.Peaks.microseconds()
	if lib.Received == nil {
		c.schedule.Merge(lib.Sent.Schedule)
		c.Expected += lib.Sent.Sent
		c.Received += lib.Sent.Sent - lib.Sent.Failures
	}
	c.Each = c.Each[:0]
	c.Ready, c.Completed, c.Partial = len(lib.Received), 0, 0
	var sums, counts [segments]float64
	for _, x := range lib.Received {
		c.schedule.Merge(x.Schedule)
		c.Expected += w.Count
		c.Received += x.Received
		c.Dropped += x.Dropped
		c.Duplicates += x.Duplicates
		c.Reordered += x.OutOfOrder
		c.Late += x.Late
		c.Negative += x.Negative
		switch {
		case x.Received == 0:
			c.Missing++
		case x.Dropped == 0:
			c.Completed++
		default:
			c.Partial++
		}
		for i, m := range x.Segments {
			if i < segments && m != 0 {
				sums[i] += m
				counts[i]++
			}
		}
		c.Each = append(c.Each, Subscriber{x.Subscriber, x.Received, x.Dropped, x.Gaps, x.MoreGaps, x.Latency.Summary()})
	}
	means := make([]float64, segments)
	for i := range means {
		if counts[i] > 0 {
			means[i] = sums[i] / counts[i]
		}
	}
	growth, yes := Saturated(means, c.period)
	c.Growth = max(c.Growth, growth)
	c.Saturated = c.Saturated || yes
	c.ReadyMS = max(c.ReadyMS, float64(lib.Ready.Microseconds())/1000)
	seconds := lib.Sent.Seconds
	c.wall += seconds
	if seconds > 0 {
		c.CPU = 100 * (lib.Publisher.CPUSeconds + lib.Others.CPUSeconds) / seconds
	}
	c.RSS = max(c.RSS, lib.Publisher.MaxRSS+lib.Others.MaxRSS)
	c.MaxPause = max(c.MaxPause, lib.Publisher.MaxPause, lib.Others.MaxPause)
}

// latency pools the latencies of a run.
func (r *Run) latency() *Distribution {
	if r.Received == nil {
		return r.Sent.Latency
	}
	d := NewDistribution()
	for _, x := range r.Received {
		d.Merge(x.Latency)
	}
	return d
}

// measured reports whether there is anything of the case: a round, or a part of a
// search.
func (c *Cell) measured() bool {
	return len(c.Rounds) > 0 || c.Throughput != nil && c.Throughput.Unpaced.Count > 0
}

// finish makes figures of what was added.
func (c *Cell) finish() {
	c.NotMeasured = !c.measured()
	c.Latency, c.Schedule, c.Lag = c.pooled.Summary(), c.schedule.Summary(), c.lag.Summary()
	optional := func(d *Distribution) *Summary {
		if d.count == 0 {
			return nil
		}
		s := d.Summary()
		return &s
	}
	c.PublishCost, c.Penalised, c.Skew = optional(c.cost), optional(c.penalised), optional(c.skew)
	c.Bare, c.Floor = optional(c.bare), optional(c.floor)
	c.FloorMean = c.floor.Mean() / 1000
	if c.pooled.count > 0 {
		c.Histogram = c.pooled.Histogram()
	}
	var means, ratios []float64
	for _, r := range c.Rounds {
		if r.Mean != 0 { // else it measured nothing
			means = append(means, r.Mean)
		}
		if r.Ratio > 0 {
			ratios = append(ratios, r.Ratio)
		}
	}
	c.Mean, c.Ratio = median(means), median(ratios)
	if len(means) > 1 && c.Mean > 0 {
		c.Spread = (slices.Max(means) - slices.Min(means)) / c.Mean
	}
}

// median returns the middle one, 0 of none.
func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2
}

// JSON returns the report as a file.
func (r *Report) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	return append(b, '\n'), err
}

// partial says what the report lacks, "" if nothing.
func (r *Report) partial() string {
	why := ""
	switch {
	case r.Interrupted:
		why = "INTERRUPTED: "
	case r.Stopped != "":
		why = "STOPPED, " + r.Stopped + ": "
	default:
		return ""
	}
	if !slices.ContainsFunc(r.Results, (*Cell).measured) {
		return why + "nothing was measured, it ended in the first round"
	}
	return why + "what follows is partial, rounds that had ended"
}
