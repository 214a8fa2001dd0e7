package knowledge

import (
	"io"
	"log/slog"
	"os"
	"time"
)

// Option is a choice made when a base is made.
type Option func(*options)

type options struct {
	id       string
	logger   *slog.Logger
	output   io.Writer
	clock    func() time.Duration
	limits   Limits
	nullLock bool
	manual   bool
	exact    bool
	files    *os.Root
	env      bool
	sleep    bool
	sinks    []Sink
	traces   []trace
}

type trace struct {
	pattern  string
	capacity int
}

// WithID names the base among its peers. The default is the host's name, a
// colon and 32 random hexadecimal digits.
func WithID(id string) Option { return func(o *options) { o.id = id } }

// WithLogger sets where the base logs, and where printed text goes if there is
// no WithOutput. The default logs nothing. Handlers run without the base's lock,
// but for printed text as WithOutput says.
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }

// WithOutput sets where #print, Before, After and Print write, verbatim. The
// default writes nowhere. Writes happen one at a time, in order, after the lock
// was released, by the goroutine that printed or by one that was already
// writing. A text of more than 1 MiB printed in one go is written under the lock.
func WithOutput(w io.Writer) Option { return func(o *options) { o.output = w } }

// WithClock replaces the monotonic clock that times of insertion and #get_time
// are read from. The function is called under the lock and must not call the base.
func WithClock(now func() time.Duration) Option { return func(o *options) { o.clock = now } }

// WithLimits sets limits other than the defaults.
func WithLimits(l Limits) Option { return func(o *options) { o.limits = l } }

// WithNullLock leaves the lock out, for a base that one goroutine uses alone.
// Wait polls on such a base; Await returns ErrNullLock.
func WithNullLock() Option { return func(o *options) { o.nullLock = true } }

// WithManualSend makes Send the only call that sends.
func WithManualSend() Option { return func(o *options) { o.manual = true } }

// WithExactTimes makes every write read the clock, so that each value has the
// time of its own write. Without it the time of insertion is that of the first
// write since somebody looked at it, since the last send or since the clock was
// raised.
func WithExactTimes() Option { return func(o *options) { o.exact = true } }

// WithFiles lets programs read and write files below root with #read_file and
// #write_file. The base does not close root.
func WithFiles(root *os.Root) Option { return func(o *options) { o.files = root } }

// WithEnv lets programs read the environment with #expand_env.
func WithEnv() Option { return func(o *options) { o.env = true } }

// WithSleep lets programs sleep with #sleep. They sleep under the base's lock.
func WithSleep() Option { return func(o *options) { o.sleep = true } }

// WithHistory lets the variables whose names match pattern keep their newest n
// values, which [Base.History] returns; in a pattern each * stands for any text.
// n below 1 keeps none, and more than 1,048,576 are not kept. Where several
// patterns match, the last one decides. Each write of such a variable reads the
// clock. MADARA knows it as set_history_capacity.
func WithHistory(pattern string, n int) Option {
	return func(o *options) {
		o.traces = append(o.traces, trace{pattern, min(max(n, 0), 1<<20)})
	}
}

// Sink takes what a base sends: the clock of the message, and the variables
// that changed since the last one, newest values, in the order of their first
// change. The slice is valid until the sink returns. It is called without the
// lock, by one goroutine at a time; it may use the base, but Send and Close from
// inside it panic. What it marks leaves with the next send of
// the base, not at once.
type Sink func(clock uint64, updates []Update)

// Update is a variable to be sent.
type Update struct {
	Name string
	Record

	history []Record // where an attachment sends it
}

// WithSink hands everything the base sends to f, for programs that carry
// updates themselves. It may be given more than once.
func WithSink(f Sink) Option { return func(o *options) { o.sinks = append(o.sinks, f) } }
