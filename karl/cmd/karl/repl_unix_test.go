//go:build linux || darwin

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// terminal is the command at a pseudo-terminal.
type terminal struct {
	t    *testing.T
	tty  *os.File
	mu   sync.Mutex
	seen bytes.Buffer // what was not expected yet
	done chan error
}

func startTerminal(t *testing.T, args ...string) *terminal {
	t.Helper()
	cmd := exec.Command(built(t), args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "TERM=xterm", "HOME="+cmd.Dir, "XDG_CONFIG_HOME="+cmd.Dir)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, tty: tty, done: make(chan error, 1)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			term.mu.Lock()
			term.seen.Write(buf[:n])
			term.mu.Unlock()
			if err != nil { // the command has ended
				return
			}
		}
	}()
	go func() { term.done <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		tty.Close()
		<-read
	})
	return term
}

func (term *terminal) send(keys string) {
	term.t.Helper()
	if _, err := term.tty.WriteString(keys); err != nil {
		term.t.Fatal(err)
	}
}

// expect waits for a text and forgets all up to its end.
func (term *terminal) expect(text string) {
	term.t.Helper()
	for range 2000 {
		term.mu.Lock()
		i := bytes.Index(term.seen.Bytes(), []byte(text))
		if i >= 0 {
			term.seen.Next(i + len(text))
		}
		term.mu.Unlock()
		if i >= 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	term.mu.Lock()
	defer term.mu.Unlock()
	term.t.Fatalf("%q does not come; there is %q", text, term.seen.String())
}

func (term *terminal) ended() {
	term.t.Helper()
	select {
	case err := <-term.done:
		if err != nil {
			term.t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		term.t.Fatal("the command does not end")
	}
}

const ctrlC, ctrlD, up = "\x03", "\x04", "\x1b[A"

func TestREPL(t *testing.T) {
	dir := t.TempDir()
	history := filepath.Join(dir, "sub", "history")
	term := startTerminal(t, "repl", "--history", history, "--set", "speed_limit=7")
	term.expect("karl> ")

	// A value, a text printed, and a program over two lines.
	term.send("41 + 1\r")
	term.expect("\r\n42\r\n")
	term.expect("karl> ")
	term.send("total = [1,\r")
	term.expect("  ... ")
	term.send("2.5]\r")
	term.expect("\r\n[1.0, 2.5]\r\n")
	term.expect("karl> ")

	// Completion of a variable, a system call and a command.
	term.send("spe\t + 1\r")
	term.expect("speed_limit")
	term.expect("\r\n8\r\n")
	term.send("#sq\t16)\r")
	term.expect("#sqrt(")
	term.expect("\r\n4.0\r\n")
	term.send(":va\ttot\r")
	term.expect("total = [1.0, 2.5]\r\n")

	// What was typed comes back.
	term.expect("karl> ")
	term.send("6 * 7 + 100\r")
	term.expect("\r\n142\r\n")
	term.expect("karl> ")
	term.send(up + "0\r")
	term.expect("\r\n1042\r\n")

	// Ctrl-C stops a program, and drops one that is not complete.
	term.expect("karl> ")
	term.send("turns = 0; .i[0 -> 1](.i = 0; ++turns)\r")
	time.Sleep(300 * time.Millisecond)
	term.send(ctrlC)
	term.expect("interrupt")
	term.expect("karl> ")
	term.send("turns > 0\r")
	term.expect("\r\n1\r\n")
	term.expect("karl> ")
	term.send("(1 +\r")
	term.expect("  ... ")
	term.send(ctrlC)
	term.expect("karl> ")
	term.send("5\r")
	term.expect("\r\n5\r\n")
	term.expect("karl> ")

	term.send(ctrlD)
	term.ended()
	kept, err := os.ReadFile(history)
	if err != nil || !strings.Contains(string(kept), "total = [1, 2.5]\n") || !strings.Contains(string(kept), ":vars tot\n") {
		t.Errorf("the history has %q, %v", kept, err)
	}
	if info, err := os.Stat(history); err == nil && info.Mode().Perm() != 0o600 {
		t.Errorf("the history has the mode %v", info.Mode())
	}

	// The next session has it.
	term = startTerminal(t, "repl", "--history", history)
	term.expect("karl> ")
	term.send(up + "\r")
	term.expect("\r\n5\r\n")
	term.expect("karl> ")
	term.send(":quit\r")
	term.ended()
}
