package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/madara-go/madara/karl"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"", "", true}, {"*", "", true}, {"*", "a.b", true},
		{"a.*", "a.b", true}, {"a.*", "a", false}, {"*.b", "a.b", true}, {"a*a", "a", false},
		{"a*b*c", "a1b2c", true}, {"a*b*c", "acb", false}, {"*b*b*", "b", false}, {"a**b", "ab", true},
	} {
		if got := match(c.pattern, c.name); got != c.want {
			t.Errorf("match(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
}

// TestShow keeps what arrives on one line and away from the terminal.
func TestShow(t *testing.T) {
	long := show(karl.String(strings.Repeat("\x1b", 10_000)))
	if len(long) > 300 || strings.Contains(long, "\x1b") || !strings.HasSuffix(long, "… (10000 in all)") {
		t.Errorf("long text: %q", long)
	}
	if got := show(karl.Ints(make([]int64, 10_000))); len(got) > 300 || !strings.HasSuffix(got, "… (10000 in all)") {
		t.Errorf("long array: %q", got)
	}
	if got := plain("a\nb"); got != `"a\nb"` {
		t.Errorf("name: %s", got)
	}
}

// FuzzPacket decodes any bytes.
func FuzzPacket(f *testing.F) {
	files, err := os.ReadDir("../../../transport/testdata/wire")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if b, err := os.ReadFile("../../../transport/testdata/wire/" + file.Name()); err == nil && len(b) < 2000 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a := assembly{sets: map[setKey]*fragmentSet{}}
		m := decodePacket([]string{"a"}, b)
		list := append(a.incomplete(), m)
		if whole := a.add(m, b); whole != nil {
			list = append(list, whole)
		}
		for _, m := range append(list, a.incomplete()...) {
			m.text()
			m.json()
		}
	})
}

func loopback() string {
	faces, _ := net.Interfaces()
	for _, face := range faces {
		if face.Flags&net.FlagLoopback != 0 {
			return face.Name
		}
	}
	return ""
}

func freePort(ts *testscript.TestScript) int {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	ts.Check(err)
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).Port
}

// port NAME sets a variable to a port that nobody uses.
func port(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: port NAME")
	}
	ts.Setenv(args[0], strconv.Itoa(freePort(ts)))
}

// group NAME sets a variable to a multicast group with a port that nobody uses.
func group(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: group NAME")
	}
	ts.Setenv(args[0], fmt.Sprint("239.255.41.8:", freePort(ts)))
}

// listens ADDRESS N waits until N sockets are open on the port of an address.
func listens(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: listens ADDRESS N")
	}
	_, number, err := net.SplitHostPort(args[0])
	ts.Check(err)
	n, err := strconv.Atoi(number)
	ts.Check(err)
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	field := fmt.Sprintf(":%04X", n)
	for range 1000 {
		time.Sleep(10 * time.Millisecond)
		sockets, err := os.ReadFile("/proc/net/udp")
		if err != nil { // not Linux: time must do
			time.Sleep(time.Second)
			return
		}
		if open := strings.Count(string(sockets), field+" "); open >= want {
			time.Sleep(100 * time.Millisecond) // until the base is attached
			return
		}
	}
	ts.Fatalf("nobody listens on %s", args[0])
}

// sleep TIME waits.
func sleep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sleep TIME")
	}
	d, err := time.ParseDuration(args[0])
	ts.Check(err)
	time.Sleep(d)
}

// capture NAME DIR sets a variable to a port of UDP, and writes each datagram that
// comes to it to a file, from DIR/0.bin on, until the script ends.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture NAME DIR")
	}
	dir := ts.MkAbs(args[1])
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	ts.Check(err)
	done := make(chan bool)
	go func() {
		defer close(done)
		buffer := make([]byte, 1<<16)
		for i := 0; ; i++ {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			file := filepath.Join(dir, strconv.Itoa(i)+".bin")
			if os.WriteFile(file+".part", buffer[:n], 0o600) == nil {
				os.Rename(file+".part", file) // it appears whole
			}
		}
	}()
	ts.Defer(func() {
		conn.Close()
		<-done
	})
	ts.Setenv(args[0], strconv.Itoa(conn.LocalAddr().(*net.UDPAddr).Port))
}
