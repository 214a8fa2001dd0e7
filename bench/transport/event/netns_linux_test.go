package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// spaces are the network namespaces that there are.
func spaces(t *testing.T) string {
	t.Helper()
	list, err := exec.Command("ip", "netns", "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(list)
}

// TestNamespacesKilled ends runs across namespaces by signals: none is left, but
// by one that cannot be handled, and those the next run removes.
func TestNamespacesKilled(t *testing.T) {
	dir := t.TempDir()
	probe := command(t, dir, "--topology", "netns", "--count", "20", "--warmup", "0", "--rounds", "1", "--no-bare")
	if out, err := probe.CombinedOutput(); err != nil {
		if probe.ProcessState.ExitCode() == 3 && strings.Contains(string(out), "missing") {
			t.Skipf("no network namespaces here: %s", out)
		}
		t.Fatalf("%v: %s", err, out)
	}
	killed := ""
	for i, c := range []struct {
		signal syscall.Signal
		code   int
		left   bool
	}{{syscall.SIGTERM, 130, false}, {syscall.SIGKILL, -1, true}, {syscall.SIGHUP, 130, false}} {
		samples := filepath.Join(dir, fmt.Sprint("samples", i))
		run := command(t, dir, "--topology", "netns", "--count", "600000", "--samples", samples)
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		until(t, samples, 1)
		name := fmt.Sprint("madara-bench-a", run.Process.Pid)
		if !strings.Contains(spaces(t), name) {
			t.Errorf("%s is not there", name)
		}
		if killed != "" && strings.Contains(spaces(t), killed) {
			t.Errorf("%s of a killed run is left", killed)
		}
		run.Process.Signal(c.signal)
		if code := exitCode(run); code != c.code {
			t.Errorf("%v: exit code %d, want %d", c.signal, code, c.code)
		}
		if left := strings.Contains(spaces(t), name); left != c.left {
			t.Errorf("%v: %s is left: %t", c.signal, name, left)
		}
		if killed = ""; c.left {
			killed = name
		}
	}
}

// TestNamespaces runs across namespaces, or is told what is missing for them;
// none is left.
func TestNamespaces(t *testing.T) {
	dir := t.TempDir()
	for _, kind := range []string{"udp", "multicast", "tcp"} {
		c := command(t, dir, "--topology", "netns", "--transport", kind, "--count", "50", "--warmup", "5", "--rounds", "1")
		out, err := c.CombinedOutput()
		if err != nil {
			if c.ProcessState.ExitCode() == 3 && strings.Contains(string(out), "missing") {
				t.Skipf("no network namespaces here: %s", out)
			}
			t.Fatalf("%s: %v: %s", kind, err, out)
		}
		if !strings.Contains(string(out), "over "+kind+", netns") || !strings.Contains(string(out), "lossless") {
			t.Errorf("%s: %s", kind, out)
		}
		if list := spaces(t); strings.Contains(list, fmt.Sprint("madara-bench-a", c.Process.Pid)) {
			t.Errorf("namespaces are left: %s", list)
		}
	}
}
