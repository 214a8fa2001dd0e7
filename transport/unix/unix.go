//go:build unix

// Package unix is links between processes of one host over unix sockets:
// [NewEvent] publishes and subscribes, [NewControl] calls and serves. Who is at
// the other end is known from the system: unless Settings.Allow says otherwise,
// it must be a process of the same user, or of root.
//
//	gateway, err := unix.NewControl("/run/robot/gateway", nil)
//	…
//	defer gateway.Close()
//	gateway.Serve("stop", nil, stop)
//
// An address is the path of a socket, which is made with the mode 0600, or on
// Linux @ and a name. The protocol is that of transport/tcp, see
// transport/doc/stream.md.
package unix

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/internal/stream"
)

// Settings is how a link works. The zero value, and a nil pointer, is the default.
type Settings struct {
	// Settings is used as far as it is about streams: WriteBuffer bounds what
	// waits for one peer (1 MiB at least), Sealer seals the payloads of an Event,
	// NoSending and NoReceiving are as everywhere.
	transport.Settings

	// Allow decides who may be at the other end. nil allows processes of the same
	// user and of root. With an Allow sockets are made with the mode 0666.
	Allow func(Credentials) bool
}

// Credentials is who a process is, as the system says. PID is 0 where it does
// not tell.
type Credentials struct{ PID, UID, GID int }

// NewEvent accepts peers at listen, the path of a socket, unless it is "", and
// keeps a connection to each of peers. It makes them in the background, again and
// again; Ready waits for those that matter. What is published goes to all peers
// that subscribe to its topic, and to its own subscriptions. s may be nil.
func NewEvent(listen string, peers []string, s *Settings) (Event, error) {
	l, n, err := open(listen, peers, s)
	if err != nil {
		return Event{}, err
	}
	return Event{stream.NewEvent(n, l, peers, s.base())}, nil
}

// NewControl serves at listen, the path of a socket, unless it is "". The
// targets of its calls are paths as well. s may be nil.
func NewControl(listen string, s *Settings) (Control, error) {
	l, n, err := open(listen, nil, s)
	if err != nil {
		return Control{}, err
	}
	return Control{stream.NewControl(n, l, s.base())}, nil
}

// Event is a [transport.Event] over unix sockets.
type Event struct{ *stream.Event }

// Control is a [transport.Control] over unix sockets.
type Control struct{ *stream.Control }

func (s *Settings) base() transport.Settings {
	if s == nil {
		s = &Settings{}
	}
	return s.WithDefaults()
}

// maxPath is the longest path that all systems take, in bytes.
const maxPath = 103

func checkPath(path, wanted string) error {
	if path == "" || len(path) > maxPath || strings.ContainsRune(path, 0) {
		return fmt.Errorf("%s %q: want a path of 1 to %d bytes: %w", wanted, path, maxPath, transport.ErrSettings)
	}
	return nil
}

func open(listen string, peers []string, s *Settings) (net.Listener, *stream.Network, error) {
	if s == nil {
		s = &Settings{}
	}
	if err := s.Validate(); err != nil {
		return nil, nil, err
	}
	for _, peer := range peers {
		if err := checkPath(peer, "peer"); err != nil {
			return nil, nil, err
		}
	}
	allow := s.Allow
	if allow == nil {
		allow = func(c Credentials) bool { return c.UID == os.Getuid() || c.UID == 0 }
	}
	n := &stream.Network{
		Name: "unix",
		Dial: func(ctx context.Context, path string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
		Admit: func(conn net.Conn) (string, error) {
			c, err := credentials(conn.(*net.UnixConn))
			if err != nil {
				return "", fmt.Errorf("%w: who it is cannot be found out: %w", stream.ErrRefused, err)
			}
			if !allow(c) {
				return "", fmt.Errorf("%w: process %d of user %d", stream.ErrRefused, c.PID, c.UID)
			}
			return fmt.Sprintf("unix:%d/%d", c.PID, c.UID), nil
		},
	}
	if listen == "" {
		return nil, n, nil
	}
	if err := checkPath(listen, "path to listen on"); err != nil {
		return nil, nil, err
	}
	mode := os.FileMode(0o600)
	if s.Allow != nil {
		mode = 0o666
	}
	l, err := bind(listen, mode)
	return l, n, err
}

// bind makes a socket. One that a dead process left behind is replaced.
func bind(path string, mode os.FileMode) (net.Listener, error) {
	l, err := listenAt(path, mode)
	if !errors.Is(err, syscall.EADDRINUSE) || strings.HasPrefix(path, "@") {
		return l, err
	}
	if info, e := os.Lstat(path); e != nil || info.Mode()&os.ModeSocket == 0 {
		return nil, err
	}
	conn, e := net.Dial("unix", path)
	if e == nil {
		conn.Close()
		return nil, err
	}
	if !errors.Is(e, syscall.ECONNREFUSED) {
		return nil, err
	}
	if e := os.Remove(path); e != nil {
		return nil, e
	}
	return listenAt(path, mode)
}

// listenAt listens at a path.
func listenAt(path string, mode os.FileMode) (net.Listener, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(path, "@") {
		if err := os.Chmod(path, mode); err != nil {
			l.Close()
			return nil, err
		}
	}
	return l, nil
}
