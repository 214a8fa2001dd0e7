// Command reasoning measures how fast programs of the language run, and prints
// the throughput table of MADARA's test_reasoning_throughput for this library,
// the locks compared, and what the reference does not measure: large programs
// over many variables, goroutines that share a base, waits, a million
// variables, compiling.
//
//	go run ./bench/reasoning
//	go run ./bench/reasoning -run Compiled -rounds 12 -json -
//	go run ./bench/reasoning -cpu 1,2 -json new.json -compare old.json
//
// Times on a shared machine are noise; what can be compared is the ratio of a
// row to a native sync.Mutex increment measured beside it, in the column M. The
// last value of every row's counter is verified. Some rows have a gate, which
// is what they must reach; the table ends with those missed. -compare tells
// what changed since a run that -json wrote.
//
// Exit codes: 0 ok, 1 a row failed or a file could not be read or written, 2
// usage, 3 a row is slower under -fail or misses its gate under -gates.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// The ranges of flags. Six rounds are the least whose medians are worth printing.
const (
	minRounds, maxRounds = 6, 1_000
	minTime, maxTime     = time.Millisecond, 10 * time.Second
	maxProcessors        = 1_024
)

type config struct {
	pattern *regexp.Regexp
	rounds  int
	size    size
	cpus    []int // empty for the present number
	json    string
	compare string
	fail    bool
	gates   bool
}

// Exit codes.
const (
	exitOK = iota
	exitFailed
	exitUsage
	exitSlow
)

// errSlow is what -fail and -gates make of what was measured.
var errSlow = errors.New("too slow")

func run(args []string, stdout, stderr io.Writer) int {
	c, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	}
	if len(c.rows()) == 0 {
		fmt.Fprintf(stderr, "reasoning: no row matches -run %q\n", c.pattern)
		return exitUsage
	}
	switch err := c.measure(stdout, stderr); {
	case errors.Is(err, errSlow):
		fmt.Fprintf(stderr, "reasoning: %v\n", err)
		return exitSlow
	case err != nil:
		fmt.Fprintf(stderr, "reasoning: %v\n", err)
		return exitFailed
	}
	return exitOK
}

// rows returns the rows that -run chooses.
func (c *config) rows() []row {
	return slices.DeleteFunc(allRows(), func(r row) bool { return !c.pattern.MatchString(r.name) })
}

func (c *config) measure(stdout, stderr io.Writer) error {
	var old *results
	var err error
	if c.compare != "" {
		if old, err = readResults(c.compare); err != nil {
			return fmt.Errorf("-compare: %w", err)
		}
	}
	var file *os.File
	if c.json != "" && c.json != "-" {
		// Opened before the rows run, so that a wrong path is told at once.
		if file, err = os.OpenFile(c.json, os.O_WRONLY|os.O_CREATE, 0o666); err != nil {
			return fmt.Errorf("-json: %w", err)
		}
		defer file.Close()
	}
	cpus := c.cpus
	if len(cpus) == 0 {
		cpus = []int{runtime.GOMAXPROCS(0)}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	tables := stdout
	if c.json == "-" {
		tables = stderr // where the comparison goes, too
	}
	var all *results
	missed, slower := 0, 0
	for _, n := range cpus {
		runtime.GOMAXPROCS(n)
		r, err := c.table(stderr)
		if err != nil {
			return err
		}
		if all == nil {
			all = r
		} else {
			all.More = append(all.More, r)
		}
		missed += r.judge()
		if c.json != "-" {
			if err := writeTables(stdout, r); err != nil {
				return err
			}
		}
		if old != nil {
			slower += writeComparison(tables, c.compare, old, r)
		}
	}
	if err := all.write(c.json, file, stdout); err != nil {
		return err
	}
	switch {
	case c.gates && missed > 0:
		return fmt.Errorf("%w: %d gates missed", errSlow, missed)
	case c.fail && slower > 0:
		return fmt.Errorf("%w: %d rows slower than in %s", errSlow, slower, c.compare)
	}
	return nil
}

// table measures the rows with the present number of processors.
func (c *config) table(stderr io.Writer) (*results, error) {
	rows := c.rows()
	about := time.Duration(c.rounds*len(rows)) * (c.size.each + c.size.each/mutexShare)
	fmt.Fprintf(stderr, "measuring %d rows, %v or more\n", len(rows), about.Round(100*time.Millisecond))
	return measure(rows, c.rounds, c.size)
}

// parse reads the flags; what is wrong with them is printed already.
func parse(args []string, stderr io.Writer) (*config, error) {
	c := &config{}
	fs := flag.NewFlagSet("reasoning", flag.ContinueOnError)
	fs.SetOutput(stderr)
	pattern := fs.String("run", "", "measure only the rows whose names match this `regexp`")
	fs.IntVar(&c.rounds, "rounds", 7, "how many `times` each row is measured, 6 to 1000")
	fs.DurationVar(&c.size.each, "time", 50*time.Millisecond, "how long each row runs per round, 1ms to 10s")
	cpus := fs.String("cpu", "", "measure with each of these `numbers` of processors (GOMAXPROCS), as 1,2; each 1 to 1024")
	fs.StringVar(&c.json, "json", "", "write the figures to this `file` as JSON, - for standard output instead of the tables")
	fs.StringVar(&c.compare, "compare", "", "tell what changed since this `file` of -json")
	fs.BoolVar(&c.fail, "fail", false, "exit with 3 if a row is slower than in the file of -compare")
	fs.BoolVar(&c.gates, "gates", false, "exit with 3 if a row misses its gate")
	fs.BoolVar(&c.size.quick, "quick", false, "two rounds of 2 ms with small bases, to see that all rows work")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	wrong := func(format string, args ...any) error {
		err := fmt.Errorf("reasoning: "+format, args...)
		fmt.Fprintln(stderr, err)
		fs.Usage()
		return err
	}
	var err error
	if c.pattern, err = regexp.Compile(*pattern); err != nil {
		return nil, wrong("-run: %v", err)
	}
	if *cpus != "" {
		for s := range strings.SplitSeq(*cpus, ",") {
			n, err := strconv.Atoi(s)
			if err != nil || n < 1 || n > maxProcessors {
				return nil, wrong("-cpu has %q, each must be a number from 1 to %d", s, maxProcessors)
			}
			c.cpus = append(c.cpus, n)
		}
	}
	if c.size.quick {
		c.rounds, c.size.each = 2, 2*time.Millisecond
	}
	switch {
	case fs.NArg() > 0:
		return nil, wrong("unexpected argument %q", fs.Arg(0))
	case (c.rounds < minRounds || c.rounds > maxRounds) && !c.size.quick:
		return nil, wrong("-rounds is %d, at least %d are needed for medians and at most %d are taken", c.rounds, minRounds, maxRounds)
	case c.size.each < minTime || c.size.each > maxTime:
		return nil, wrong("-time is %v, at least %v is needed and at most %v is taken", c.size.each, minTime, maxTime)
	case c.fail && c.compare == "":
		return nil, wrong("-fail needs -compare")
	}
	return c, nil
}
