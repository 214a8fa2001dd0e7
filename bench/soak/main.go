// Command soak keeps one knowledge base under a mixed load for a while, with
// everything at once: evaluations by text and compiled, floods of texts, waits,
// hand-shakes, watches, functions that change, deletes, resets, histories,
// guards, sinks.
//
//	go run ./bench/soak -for 10m
//	go run ./bench/soak -for 30s -seed 7
//
// It prints a line now and then: operations per second of each kind, the heap
// after a collection, goroutines, hand-shakes. In the end it compares the heap
// with that after the warm-up, which is a tenth of the time but at least three
// seconds, closes everything, and looks at what is left.
//
// Exit codes: 0 ok; 1 memory grew, goroutines are left, a hand-shake was lost, a
// watch missed a last value, or an operation did something unexpected; 2 usage.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

type config struct {
	length   time.Duration
	every    time.Duration
	patience time.Duration // beyond it a hand-shake or a value is lost
	workers  int
	seed     uint64
}

// warmUp is how long the load runs before the heap is what it may be.
func (c *config) warmUp() time.Duration {
	return min(max(c.length/10, 3*time.Second), c.length/2)
}

func run(args []string, stdout, stderr io.Writer) int {
	c, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	fmt.Fprintf(stdout, "soak for %v, warm-up %v, %d workers, -seed %d\n", c.length, c.warmUp(), c.workers, c.seed)
	if faults := soakBase(c, stdout); len(faults) > 0 {
		for _, f := range faults {
			fmt.Fprintf(stderr, "soak: %s\n", f)
		}
		return 1
	}
	fmt.Fprintln(stdout, "ok")
	return 0
}

// parse reads the flags; what is wrong with them is printed already.
func parse(args []string, stderr io.Writer) (*config, error) {
	c := &config{patience: 20 * time.Second}
	fs := flag.NewFlagSet("soak", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.DurationVar(&c.length, "for", 30*time.Second, "how `long` to run, 2s to 24h")
	fs.DurationVar(&c.every, "every", 5*time.Second, "how `often` to print a line, 100ms to 1h")
	fs.IntVar(&c.workers, "workers", 4, "how many goroutines do mixed operations, 1 to 64")
	fs.Uint64Var(&c.seed, "seed", 0, "the `number` that the random choices follow from, 0 for another one each time")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	wrong := func(format string, args ...any) error {
		err := fmt.Errorf("soak: "+format, args...)
		fmt.Fprintln(stderr, err)
		fs.Usage()
		return err
	}
	switch {
	case fs.NArg() > 0:
		return nil, wrong("unexpected argument %q", fs.Arg(0))
	case c.length < 2*time.Second || c.length > 24*time.Hour:
		return nil, wrong("-for is %v, it must be from 2s to 24h", c.length)
	case c.every < 100*time.Millisecond || c.every > time.Hour:
		return nil, wrong("-every is %v, it must be from 100ms to 1h", c.every)
	case c.workers < 1 || c.workers > 64:
		return nil, wrong("-workers is %d, it must be from 1 to 64", c.workers)
	}
	if c.seed == 0 {
		c.seed = uint64(time.Now().UnixNano())
	}
	return c, nil
}
