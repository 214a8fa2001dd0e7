package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){"karl": main})
}

// tests removes what they built.
type tests struct{ *testing.M }

func (m tests) Run() int {
	defer func() { os.RemoveAll(builtIn) }()
	return m.M.Run()
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:      "testdata/script",
		Deadline: time.Now().Add(2 * time.Minute),
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":   exits,
			"appears": appears,
			"within":  within,
			"group":   group,
			"port":    port,
			"listens": listens,
			"sleep":   sleep,
			"capture": capture,
		},
		Setup: func(e *testscript.Env) error {
			fixtures, err := filepath.Abs("../../../transport/testdata/wire")
			e.Setenv("WIRE", fixtures)
			e.Setenv("LOOPBACK", loopback())
			e.Setenv("GORACE", "atexit_sleep_ms=10") // the default second makes the scripts slow
			return err
		},
	})
}

// exits CODE COMMAND ARG... runs a command and demands its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// appears FILE waits until a file exists.
func appears(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: appears FILE")
	}
	for range 1000 {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("%s does not appear", args[0])
}

// within LOW HIGH FILE demands that the number in a file is between two.
func within(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: within LOW HIGH FILE")
	}
	var n [3]int
	for i, arg := range args {
		if i == 2 {
			arg = ts.ReadFile(arg)
		}
		var err error
		n[i], err = strconv.Atoi(arg)
		ts.Check(err)
	}
	if n[2] < n[0] || n[2] > n[1] {
		ts.Fatalf("%d is not between %d and %d", n[2], n[0], n[1])
	}
}
