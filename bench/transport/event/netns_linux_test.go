package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

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
		if list, err := exec.Command("ip", "netns", "list").Output(); err != nil || strings.Contains(string(list), fmt.Sprint("madara-bench-a", c.Process.Pid)) {
			t.Errorf("namespaces are left: %v: %s", err, list)
		}
	}
}
