// Command reasoning measures how fast programs of the language run, and prints
// the throughput table of MADARA's test_reasoning_throughput for this library,
// the locks compared.
//
//	go run ./bench/reasoning
//	go run ./bench/reasoning -run Compiled -rounds 12 -json -
//
// Times on a shared machine are noise; what can be compared is the ratio of a
// row to a native sync.Mutex increment measured beside it, in the column M. The
// last value of every row's counter is verified. Exit codes: 0 ok, 1 a row
// failed or a file could not be written, 2 usage.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// minRounds is the least whose medians are worth printing.
const minRounds = 6

type config struct {
	pattern *regexp.Regexp
	rounds  int
	each    time.Duration
	json    string
	quick   bool
}

func run(args []string, stdout, stderr io.Writer) int {
	c, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	rows := slices.DeleteFunc(allRows(), func(r row) bool { return !c.pattern.MatchString(r.name) })
	if len(rows) == 0 {
		fmt.Fprintf(stderr, "reasoning: no row matches -run %q\n", c.pattern)
		return 2
	}
	if err := c.measure(rows, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "reasoning: %v\n", err)
		return 1
	}
	return 0
}

func (c *config) measure(rows []row, stdout, stderr io.Writer) error {
	var file *os.File
	if c.json != "" && c.json != "-" {
		// Opened before the rows run, so that a wrong path is told at once.
		var err error
		if file, err = os.OpenFile(c.json, os.O_WRONLY|os.O_CREATE, 0o666); err != nil {
			return err
		}
		defer file.Close()
	}
	about := time.Duration(c.rounds*len(rows)) * (c.each + c.each/mutexShare)
	fmt.Fprintf(stderr, "measuring %d rows, %v or more\n", len(rows), about.Round(100*time.Millisecond))
	r, err := measure(rows, c.rounds, c.each)
	if err != nil {
		return err
	}
	r.Env.Quick = c.quick
	text, err := r.json()
	if err != nil {
		return err
	}
	if c.json == "-" {
		_, err := stdout.Write(text)
		return err
	}
	if err := writeTables(stdout, r); err != nil || file == nil {
		return err
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	if _, err := file.Write(text); err != nil {
		return err
	}
	return file.Close()
}

// parse reads the flags; what is wrong with them is printed already.
func parse(args []string, stderr io.Writer) (*config, error) {
	c := &config{}
	fs := flag.NewFlagSet("reasoning", flag.ContinueOnError)
	fs.SetOutput(stderr)
	pattern := fs.String("run", "", "measure only the rows whose names match this `regexp`")
	fs.IntVar(&c.rounds, "rounds", 7, "how many `times` each row is measured, at least 6")
	fs.DurationVar(&c.each, "time", 50*time.Millisecond, "how long each row runs per round")
	fs.StringVar(&c.json, "json", "", "write the figures to this `file` as JSON, - for standard output instead of the tables")
	fs.BoolVar(&c.quick, "quick", false, "two rounds of 2 ms, to see that all rows work")
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
	if c.quick {
		c.rounds, c.each = 2, 2*time.Millisecond
	}
	switch {
	case fs.NArg() > 0:
		return nil, wrong("unexpected argument %q", fs.Arg(0))
	case c.rounds < minRounds && !c.quick:
		return nil, wrong("-rounds is %d, at least %d are needed for medians", c.rounds, minRounds)
	case c.each < time.Millisecond:
		return nil, wrong("-time is %v, at least 1ms is needed", c.each)
	}
	return c, nil
}
