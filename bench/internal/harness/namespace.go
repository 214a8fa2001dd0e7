package harness

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// namespaces are two network namespaces with a pair of virtual interfaces
// between them.
type namespaces struct {
	names, faces, addresses [2]string
}

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %v: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// spacePrefix begins the names of all; a letter and the runner's process follow.
const spacePrefix = "madara-bench-"

// removeStale removes the namespaces of runners that were killed before they could.
func removeStale() {
	out, err := exec.Command("ip", "netns", "list").Output()
	if err != nil {
		return // newNamespaces says what is wrong
	}
	for _, name := range staleNames(string(out), alive) {
		ip("netns", "del", name)
	}
}

// staleNames returns which of the listed namespaces are of processes that are no
// more.
func staleNames(list string, alive func(process int) bool) []string {
	var stale []string
	for line := range strings.Lines(list) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ") // an (id: 0) may follow
		rest, ok := strings.CutPrefix(name, spacePrefix)
		if !ok || len(rest) < 2 || rest[0] != 'a' && rest[0] != 'b' {
			continue
		}
		if id, err := strconv.Atoi(rest[1:]); err == nil && id > 0 && !alive(id) {
			stale = append(stale, name)
		}
	}
	return stale
}

// newNamespaces makes them; what is missing for it is in the error.
func newNamespaces() (*namespaces, error) {
	id := os.Getpid()
	n := &namespaces{addresses: [2]string{"10.98.0.1", "10.98.0.2"}}
	missing := func(what string, err error) error {
		n.close()
		return fmt.Errorf("--topology netns: %w: %s: %w", ErrCannotRun, what, err)
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return nil, missing("the command ip (iproute2) is missing", err)
	}
	removeStale()
	for i, side := range []string{"a", "b"} {
		name := fmt.Sprintf("%s%s%d", spacePrefix, side, id)
		if err := ip("netns", "add", name); err != nil {
			return nil, missing("the right to make network namespaces is missing", err)
		}
		n.names[i] = name
		n.faces[i] = fmt.Sprintf("mb%s%d", side, id)
	}
	if err := ip("link", "add", n.faces[0], "type", "veth", "peer", "name", n.faces[1]); err != nil {
		return nil, missing("virtual interfaces (veth) are missing", err)
	}
	for i, name := range n.names {
		for _, args := range [][]string{
			{"link", "set", n.faces[i], "netns", name},
			{"-n", name, "addr", "add", n.addresses[i] + "/24", "dev", n.faces[i]},
			{"-n", name, "link", "set", n.faces[i], "up"},
			{"-n", name, "link", "set", "lo", "up"},
			{"-n", name, "route", "add", "224.0.0.0/4", "dev", n.faces[i]},
		} {
			if err := ip(args...); err != nil {
				return nil, missing("the namespaces cannot be connected", err)
			}
		}
	}
	return n, nil
}

func (n *namespaces) close() {
	for _, name := range n.names {
		if name != "" {
			ip("netns", "del", name) // the interfaces go with them
		}
	}
}
