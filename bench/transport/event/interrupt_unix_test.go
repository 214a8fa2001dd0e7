//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asCommand makes the test's binary the command.
const asCommand = "MADARA_TEST_EVENT"

func init() {
	if os.Getenv(asCommand) != "" || os.Getenv("MADARA_BENCH_PEER") != "" {
		main()
	}
}

func command(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), asCommand+"=1", "MADARA_BENCH_WAIT=5m", "TMPDIR="+dir)
	return c
}

// report is what tests read of one.
type report struct {
	Interrupted bool
	Stopped     string
	Verdict     struct{ Exit int }
	Results     []struct {
		NotMeasured bool `json:"not_measured"`
		Rounds      []any
	}
}

func readReport(t *testing.T, file string) *report {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := &report{}
	if err := json.Unmarshal(text, r); err != nil {
		t.Fatal(err)
	}
	return r
}

// until waits until a file of --samples has so many lines.
func until(t *testing.T, file string, lines int) {
	t.Helper()
	for range 6000 {
		if text, err := os.ReadFile(file); err == nil && strings.Count(string(text), "\n") >= lines {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s does not have %d lines", file, lines)
}

// exitCode waits for a command.
func exitCode(c *exec.Cmd) int {
	c.Wait() // the code says what it returns
	return c.ProcessState.ExitCode()
}

// TestInterrupted interrupts a long run: the report is there and says so. While
// it runs a second one is refused, wherever its temporary files are.
func TestInterrupted(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		dir := t.TempDir()
		file, samples := filepath.Join(dir, "out.json"), filepath.Join(dir, "samples.csv")
		c := command(t, dir, "--count", "100", "--warmup", "5", "--rounds", "100", "--json", file, "--samples", samples)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		until(t, samples, 1+2*100) // one round is over for sure
		var exit *exec.ExitError
		out, err := command(t, t.TempDir(), "--count", "20", "--wait", "0s").CombinedOutput()
		if !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.Contains(string(out), "other_benchmark_running") {
			t.Errorf("a second run: %v: %s", err, out)
		}
		c.Process.Signal(s)
		if code := exitCode(c); code != 130 {
			t.Errorf("%v: exit code %d, want 130", s, code)
		}
		if r := readReport(t, file); !r.Interrupted || r.Verdict.Exit != 130 || len(r.Results[0].Rounds) == 0 || r.Results[0].NotMeasured {
			t.Errorf("%v: %+v", s, r)
		}
	}
}

// TestInterruptedAtOnce interrupts the first round: nothing looks as if measured.
func TestInterruptedAtOnce(t *testing.T) {
	dir := t.TempDir()
	file, samples := filepath.Join(dir, "out.json"), filepath.Join(dir, "samples.csv")
	c := command(t, dir, "--count", "600000", "--json", file, "--samples", samples, "--csv", filepath.Join(dir, "out.csv"), "--require", "p99 < 1")
	var text strings.Builder
	c.Stdout = &text
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, samples, 1)
	c.Process.Signal(syscall.SIGINT)
	if code := exitCode(c); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if !strings.Contains(text.String(), "INTERRUPTED: nothing was measured, it ended in the first round") || !strings.Contains(text.String(), "tcp 64 B N=1: not measured") || strings.Contains(text.String(), " 0.00") {
		t.Errorf("%s", &text)
	}
	if r := readReport(t, file); !r.Interrupted || !r.Results[0].NotMeasured {
		t.Errorf("%+v", r)
	}
	if table, err := os.ReadFile(filepath.Join(dir, "out.csv")); err != nil || !strings.Contains(string(table), "\ntcp 64 B N=1,,,,,,") {
		t.Errorf("%v: %s", err, table)
	}
}

// TestAgentKilled ends a run of ten minutes when the other host does.
func TestAgentKilled(t *testing.T) {
	dir := t.TempDir()
	file, samples := filepath.Join(dir, "out.json"), filepath.Join(dir, "samples.csv")
	agent, address := startAgent(t, dir)
	c := command(t, dir, "--connect", address, "--count", "600000", "--json", file, "--samples", samples)
	var text, log strings.Builder
	c.Stdout, c.Stderr = &text, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, samples, 1)
	time.Sleep(500 * time.Millisecond) // it may have begun to send, or not
	agent.Process.Kill()
	agent.Wait() // it was killed
	late := time.AfterFunc(time.Minute, func() { c.Process.Kill() })
	defer late.Stop()
	if code := exitCode(c); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	if r := readReport(t, file); r.Interrupted || r.Stopped == "" || r.Verdict.Exit != 3 || !r.Results[0].NotMeasured {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(text.String(), "STOPPED, ") || !strings.Contains(text.String(), "nothing was measured") || !strings.Contains(log.String(), "could not run: ") {
		t.Errorf("%s%s", &text, &log)
	}
}

// startAgent starts the other host, which is this one too.
func startAgent(t *testing.T, dir string) (agent *exec.Cmd, address string) {
	t.Helper()
	agent = command(t, dir, "--listen", "127.0.0.1:0")
	stderr, err := agent.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stderr).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return agent, strings.TrimSuffix(strings.Fields(line)[2], ",")
}

// TestTwoHosts runs subscribers by an agent, which is this host too.
func TestTwoHosts(t *testing.T) {
	dir := t.TempDir()
	agent, address := startAgent(t, dir)
	for _, args := range [][]string{{"--subscribers", "2"}, {"--mode", "rtt"}, {"--transport", "tcp"}} {
		out, err := command(t, dir, append(args, "--connect", address, "--count", "50", "--warmup", "5", "--rounds", "1", "--json", "-")...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		if !strings.Contains(string(out), `"topology": "cross-host"`) || !strings.Contains(string(out), `"dropped": 0`) {
			t.Errorf("%v: %s", args, out)
		}
		if !strings.Contains(string(out), `"ends": "the publisher"`) || !strings.Contains(string(out), `"ends": "the subscribers"`) || strings.Contains(string(out), "version_mismatch") {
			t.Errorf("%v: the hosts of both ends: %s", args, out)
		}
		if oneway := args[0] != "--mode"; oneway != strings.Contains(string(out), `"bound_ns"`) {
			t.Errorf("%v: time_sync is there: %t", args, !oneway)
		}
	}
	agent.Process.Signal(syscall.SIGTERM)
	if code := exitCode(agent); code != 130 {
		t.Errorf("the agent: exit code %d, want 130", code)
	}
}
