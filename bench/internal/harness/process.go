package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrCannotRun is wrapped by errors that mean that nothing could be measured:
// exit code 3.
var ErrCannotRun = errors.New("could not run")

// place is where peers run.
type place struct {
	inside    bool   // goroutines of the runner
	namespace string // network namespace
	remote    string // address of an agent on another host
}

// process is a peer as the runner sees it.
type process struct {
	name   string
	role   string
	in     io.WriteCloser
	lines  chan line
	end    func()
	once   sync.Once
	kill   func()       // nil where there is no process
	wait   func() error // the same
	ending atomic.Bool  // it may end
	lost   func(error)  // unless nil, is told when it ends before
	fate   error        // how it ended before it might; once lines is closed
}

type line struct {
	word string
	text json.RawMessage
	err  error
}

// patience is how long a peer may take for one step.
const patience = 20 * time.Second

// maxLine bounds a line of a peer.
const maxLine = 256 << 20

// startProcess starts a peer. lost, unless nil, is told at once if it fails, or
// ends before it may.
func startProcess(p place, name string, lost func(error)) (*process, error) {
	r := &process{name: name, lines: make(chan line, 16), lost: lost}
	var out io.Reader
	switch {
	case p.inside:
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			RunPeer(inR, outW)
			outW.Close()
			inR.Close()
		}()
		r.in, out = inW, outR
		r.end = func() { inW.Close(); outR.Close(); <-done }
	case p.remote != "":
		conn, err := net.DialTimeout("tcp", p.remote, 5*time.Second)
		if err != nil {
			return nil, fmt.Errorf("--connect %s: %w: %w", p.remote, ErrCannotRun, err)
		}
		r.in, out = conn, conn
		r.end = func() { conn.Close() }
	default:
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		command := exec.Command(self)
		if p.namespace != "" {
			command = exec.Command("ip", "netns", "exec", p.namespace, self)
		}
		command.Env = append(os.Environ(), peerVariable+"=1")
		command.Stderr = os.Stderr
		if r.in, err = command.StdinPipe(); err != nil {
			return nil, err
		}
		if out, err = command.StdoutPipe(); err != nil {
			return nil, err
		}
		if err := command.Start(); err != nil {
			return nil, err
		}
		ended := make(chan struct{})
		r.wait = func() error { defer close(ended); return command.Wait() }
		r.kill = func() { r.ending.Store(true); command.Process.Kill() }
		r.end = func() {
			r.in.Close()
			late := time.AfterFunc(5*time.Second, func() { command.Process.Kill() })
			<-ended // its code says nothing: it said failed, or its result
			late.Stop()
		}
	}
	go r.read(out)
	return r, nil
}

func (r *process) read(out io.Reader) {
	defer close(r.lines)
	s := bufio.NewScanner(out)
	s.Buffer(make([]byte, 0, 1<<16), maxLine)
	for s.Scan() {
		word, text, _ := strings.Cut(s.Text(), " ")
		if word == "failed" {
			r.gone(r.failed(json.RawMessage(text)))
		}
		r.lines <- line{word: word, text: json.RawMessage(text)}
	}
	err := s.Err()
	if err != nil {
		r.lines <- line{err: err}
	}
	if r.wait != nil {
		if e := r.wait(); err == nil {
			err = e
		}
	}
	if err == nil {
		err = io.EOF
	}
	r.gone(fmt.Errorf("%s ended while it was needed: %w", r.name, err))
}

// gone tells that the peer cannot go on, unless it may end.
func (r *process) gone(err error) {
	if r.fate != nil || r.ending.Load() {
		return
	}
	r.fate = err
	if r.lost != nil {
		r.lost(err)
	}
}

func (r *process) say(word string, v any) error {
	text := []byte("{}")
	if v != nil {
		var err error
		if text, err = json.Marshal(v); err != nil {
			return err
		}
	}
	if word == "stop" {
		r.ending.Store(true)
	}
	_, err := fmt.Fprintf(r.in, "%s %s\n", word, text)
	if err != nil {
		// What it said before it ended says more.
		for l := range r.lines {
			if l.word == "failed" {
				return r.failed(l.text)
			}
		}
		return fmt.Errorf("%s ended: %w", r.name, err)
	}
	return nil
}

// failure is what a peer says that cannot go on.
type failure struct {
	Message string `json:"message"`
	Taken   bool   `json:"taken,omitempty"` // the address is in use: another one may do
}

func failureOf(err error) failure {
	return failure{err.Error(), errors.Is(err, syscall.EADDRINUSE)}
}

// errTaken is that somebody else got an address that had been free.
var errTaken = errors.New("the address was taken meanwhile")

func (r *process) failed(text json.RawMessage) error {
	var f failure
	json.Unmarshal(text, &f) // without one the message is empty
	if f.Taken {
		return fmt.Errorf("%s: %s: %w", r.name, f.Message, errTaken)
	}
	return fmt.Errorf("%s: %s", r.name, f.Message)
}

// errSlow is that a peer did not say what it was to say.
var errSlow = errors.New("no answer in time")

// expect waits for a word and decodes what comes with it into v, unless nil.
// Words of steps that are over are passed over.
func (r *process) expect(ctx context.Context, word string, within time.Duration, v any) error {
	t := time.NewTimer(within)
	defer t.Stop()
	for {
		select {
		case l, ok := <-r.lines:
			switch {
			case !ok && r.fate != nil:
				return r.fate
			case !ok:
				return fmt.Errorf("%s ended before %q", r.name, word)
			case l.err != nil:
				return fmt.Errorf("%s: %w", r.name, l.err)
			case l.word == "failed":
				return r.failed(l.text)
			case l.word != word:
				continue
			case v == nil:
				return nil
			}
			return json.Unmarshal(l.text, v)
		case <-t.C:
			return fmt.Errorf("%s: %q: %w", r.name, word, errSlow)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// close ends the peer and waits for it. It may be called again.
func (r *process) close() { r.once.Do(r.finish) }

func (r *process) finish() {
	r.ending.Store(true)
	r.in.Close()
	go func() { // what it still says must not hold it up
		for range r.lines {
		}
	}()
	r.end()
}

// maxPeers is how many peers an agent runs at the same time.
const maxPeers = 64

// Agent lets the runner on another host start peers here: one for each
// connection. Whoever reaches the address can open sockets by it, so it is for
// networks that you trust, while the benchmark runs.
func Agent(ctx context.Context, address string, log io.Writer) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("--listen %s: %w: %w", address, ErrCannotRun, err)
	}
	context.AfterFunc(ctx, func() { l.Close() })
	fmt.Fprintf(log, "listening on %s, end it with ^C\n", l.Addr())
	slots := make(chan struct{}, maxPeers)
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		select {
		case slots <- struct{}{}:
		default:
			conn.Close()
			continue
		}
		go func() {
			defer func() { conn.Close(); <-slots }()
			p, err := startProcess(place{}, "peer", nil)
			if err != nil {
				fmt.Fprintln(log, err)
				return
			}
			defer p.close()
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			defer stop()
			go func() {
				io.Copy(p.in, conn) // ends with the connection, and so the peer
				p.in.Close()
			}()
			for l := range p.lines {
				if _, err := fmt.Fprintf(conn, "%s %s\n", l.word, l.text); err != nil {
					return
				}
			}
			if p.fate != nil {
				text, _ := json.Marshal(failureOf(p.fate)) // which can be written
				fmt.Fprintf(conn, "failed %s\n", text)
			}
		}()
	}
}
