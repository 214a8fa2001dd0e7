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
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), asCommand+"=1", "TMPDIR="+dir)
	return c
}

// TestInterrupted interrupts a long run: the report is there and says so. While
// it runs a second one is refused.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "out.json")
	c := command(t, dir, "--count", "300", "--warmup", "5", "--rounds", "100", "--json", file)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2500 * time.Millisecond) // a round is over by then
	out, err := command(t, dir, "--count", "20").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.Contains(string(out), "other_benchmark_running") {
		t.Errorf("a second run: %v: %s", err, out)
	}
	c.Process.Signal(syscall.SIGINT)
	if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("%v, want exit code 130", err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Interrupted bool
		Verdict     struct{ Exit int }
		Results     []struct{ Rounds []any }
	}
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	if !report.Interrupted || report.Verdict.Exit != 130 || len(report.Results[0].Rounds) == 0 {
		t.Errorf("%+v", report)
	}
}

// TestTwoHosts runs subscribers by an agent, which is this host too.
func TestTwoHosts(t *testing.T) {
	dir := t.TempDir()
	agent := command(t, dir, "--listen", "127.0.0.1:0")
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
	address := strings.TrimSuffix(strings.Fields(line)[2], ",")
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
	agent.Process.Signal(syscall.SIGINT)
	var exit *exec.ExitError
	if err := agent.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("the agent: %v, want exit code 130", err)
	}
}
