package knowledge_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/udp"
	"github.com/madara-go/madara/transport/unix"
)

// More links, of which not every system has each.
func init() {
	links["multicast"] = func(t *testing.T, a, b transport.Settings) (from, to transport.Event) {
		for _, s := range []*transport.Settings{&a, &b} {
			s.Interface, s.Pacing = "lo", time.Millisecond // this host only
		}
		group := fmt.Sprint("239.255.41.9:", freePort(t))
		return good(udp.Multicast(group, &a)), good(udp.Multicast(group, &b))
	}
	links["broadcast"] = func(t *testing.T, a, b transport.Settings) (from, to transport.Event) {
		a.Pacing = time.Millisecond
		address := fmt.Sprint("127.255.255.255:", freePort(t))
		return good(udp.Broadcast(address, &a)), good(udp.Broadcast(address, &b))
	}
	links["unix"] = func(t *testing.T, a, b transport.Settings) (from, to transport.Event) {
		dir := good(os.MkdirTemp("", "s")) // the paths of sockets are short
		t.Cleanup(func() { os.RemoveAll(dir) })
		path := filepath.Join(dir, "s")
		return good(unix.NewEvent(path, nil, &unix.Settings{Settings: a})), good(unix.NewEvent("", []string{path}, &unix.Settings{Settings: b}))
	}
}

// freePort returns a port of UDP that nobody uses.
func freePort(t *testing.T) int {
	t.Helper()
	conn, err := net.ListenUDP("udp4", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).Port
}
