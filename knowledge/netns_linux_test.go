package knowledge_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/madara-go/madara/knowledge"
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/udp"
)

const namespaceRole = "MADARA_TEST_NAMESPACE_ROLE"

// TestAcrossNamespaces lets two processes in network namespaces of their own
// share over a pair of virtual interfaces, unicast and multicast. It needs the
// right to make namespaces, and is skipped, with the reason, where it has not.
func TestAcrossNamespaces(t *testing.T) {
	if role := os.Getenv(namespaceRole); role != "" {
		namespaceAgent(t, role)
		return
	}
	ip := func(args ...string) error {
		out, err := exec.Command("ip", args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %v: %s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	names := [2]string{fmt.Sprint("madara-a", os.Getpid()), fmt.Sprint("madara-b", os.Getpid())}
	for i, name := range names {
		if err := ip("netns", "add", name); err != nil {
			t.Skipf("no network namespaces here: %v", err)
		}
		defer ip("netns", "del", names[i])
	}
	faces := [2]string{fmt.Sprint("mda", os.Getpid()), fmt.Sprint("mdb", os.Getpid())}
	if err := ip("link", "add", faces[0], "type", "veth", "peer", "name", faces[1]); err != nil {
		t.Skipf("no virtual interfaces here: %v", err)
	}
	for i, name := range names {
		for _, args := range [][]string{
			{"link", "set", faces[i], "netns", name},
			{"-n", name, "addr", "add", fmt.Sprintf("10.99.0.%d/24", i+1), "dev", faces[i]},
			{"-n", name, "link", "set", faces[i], "up"},
			{"-n", name, "link", "set", "lo", "up"},
			{"-n", name, "route", "add", "224.0.0.0/4", "dev", faces[i]},
		} {
			if err := ip(args...); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, link := range []string{"unicast", "multicast"} {
		done := make(chan error, 2)
		for i, name := range names {
			command := exec.Command("ip", "netns", "exec", name, os.Args[0], "-test.run", "^TestAcrossNamespaces$", "-test.timeout", "60s")
			command.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", namespaceRole, link, i+1, faces[i]))
			go func() {
				out, err := command.CombinedOutput()
				if err != nil {
					err = fmt.Errorf("%v: %s", err, out)
				}
				done <- err
			}()
		}
		for range names {
			if err := <-done; err != nil {
				t.Errorf("%s: %v", link, err)
			}
		}
	}
}

// namespaceAgent is one of the two processes.
func namespaceAgent(t *testing.T, role string) {
	var kind, face string
	var me int
	fmt.Sscan(role, &kind, &me, &face)
	var link transport.Event
	var err error
	if kind == "unicast" {
		link, err = udp.Unicast(fmt.Sprintf("10.99.0.%d:4150", me), []string{fmt.Sprintf("10.99.0.%d:4150", 3-me)}, nil)
	} else {
		link, err = udp.Multicast("239.255.0.9:4151", &transport.Settings{Interface: face})
	}
	kb := join(t, link, err, fmt.Sprint("agent", me), nil)
	eval(t, kb, fmt.Sprintf("agent.%d = %d", me, me))
	// A newcomer is told what was sent before it came, so each hears the other
	// though they start at different moments.
	deadline := time.Now().Add(20 * time.Second)
	for !kb.Get(fmt.Sprint("agent.", 3-me)).Exists() || !kb.Get(fmt.Sprint("heard.", 3-me)).Exists() {
		if time.Now().After(deadline) {
			t.Fatalf("agent %d knows\n%s", me, dump(kb))
		}
		kb.Wait(t.Context(), fmt.Sprintf("agent.%d && heard.%d", 3-me, 3-me), &knowledge.WaitSettings{Timeout: 500 * time.Millisecond})
		if kb.Get(fmt.Sprint("agent.", 3-me)).Exists() {
			eval(t, kb, fmt.Sprintf("heard.%d = 1", me))
		} else {
			eval(t, kb, fmt.Sprintf("agent.%d = %d", me, me))
		}
	}
	for range 5 { // the other one may still wait for this
		eval(t, kb, fmt.Sprintf("heard.%d = 1", me))
		time.Sleep(100 * time.Millisecond)
	}
}
