package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/madara-go/madara/karl"
)

// framed returns messages with their headers.
func framed(messages ...string) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(m), m)
	}
	return b.String()
}

// serveLSP returns the messages that answer an input.
func serveLSP(t testing.TB, input string) ([]string, error) {
	t.Helper()
	var out bytes.Buffer
	s := &languageServer{conn: &rpcConn{bufio.NewReader(strings.NewReader(input)), &out}, documents: map[string]*document{}}
	failed := s.serve()
	var answers []string
	for c := (&rpcConn{r: bufio.NewReader(&out)}); ; {
		body, err := c.read()
		if errors.Is(err, io.EOF) {
			return answers, failed
		}
		if err != nil || !json.Valid(body) {
			t.Fatalf("the server wrote %q, %v", body, err)
		}
		answers = append(answers, string(body))
	}
}

// TestLSPSessions replays sessions: lines with > are what the editor said, those
// with < what it was answered, in order; lines with # are for people.
func TestLSPSessions(t *testing.T) {
	files, err := filepath.Glob("testdata/lsp/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no sessions", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var said, want []string
		for line := range strings.Lines(string(text)) {
			if m, ok := strings.CutPrefix(line, "> "); ok {
				said = append(said, strings.TrimSpace(m))
			} else if m, ok := strings.CutPrefix(line, "< "); ok {
				want = append(want, strings.TrimSpace(m))
			} else if !strings.HasPrefix(line, "#") && strings.TrimSpace(line) != "" {
				t.Errorf("%s: %q", file, line)
			}
		}
		got, err := serveLSP(t, framed(said...))
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for i := range max(len(got), len(want)) {
			g, w := "nothing", "nothing"
			if i < len(got) {
				g = got[i]
			}
			if i < len(want) {
				w = want[i]
			}
			if g != w {
				t.Errorf("%s: answer %d is\n< %s\nwant\n< %s", file, i+1, g, w)
			}
		}
	}
}

// TestLSPStream checks streams that are no messages.
func TestLSPStream(t *testing.T) {
	for input, want := range map[string]string{
		"":                                        "",
		"Content-Length: 2\n\n{}":                 "",
		"content-length:2\r\nX: y\r\n\r\n{}":      "",
		"Content-Length: 20\r\n\r\n{}":            "unexpected EOF",
		"Content-Length: 2":                       "unexpected EOF",
		"\r\n":                                    "without Content-Length",
		"Content-Length: -1\r\n\r\n":              "want 0 to",
		"Content-Length: 999999999999\r\n\r\n":    "want 0 to",
		"Content-Length: x\r\n\r\n":               "want 0 to",
		strings.Repeat("x", maxHeader+1) + "\r\n": "longer than",
	} {
		_, err := serveLSP(t, input)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", input, err, want)
		}
	}
}

// TestLSPPlaces checks that places in UTF-16 and bytes are the same ones.
func TestLSPPlaces(t *testing.T) {
	d := newDocument("", "aä😀b\n\nz")
	for offset, want := range map[int]lspPosition{0: {0, 0}, 1: {0, 1}, 3: {0, 2}, 7: {0, 4}, 8: {0, 5}, 9: {1, 0}, 10: {2, 0}, 11: {2, 1}} {
		if got := d.position(offset); got != want {
			t.Errorf("byte %d is at %v, want %v", offset, got, want)
		}
		if got := d.offset(want); got != offset {
			t.Errorf("%v is byte %d, want %d", want, got, offset)
		}
	}
	for p, want := range map[lspPosition]int{{0, 99}: 8, {9, 0}: 11, {-1, 5}: 0, {2, -5}: 10} {
		if got := d.offset(p); got != want {
			t.Errorf("%v is byte %d, want %d", p, got, want)
		}
	}
}

func FuzzLSP(f *testing.F) {
	const doc = `{"uri":"a","text":"x = 1; ++x; #size(x)"}`
	hello := `{"id":1,"method":"initialize","params":{}}`
	opened := `{"method":"textDocument/didOpen","params":{"textDocument":` + doc + `}}`
	f.Add(framed(hello, opened, `{"id":2,"method":"textDocument/hover","params":{"textDocument":`+doc+`,"position":{"line":0,"character":1}}}`))
	f.Add(framed(hello, opened, `{"method":"textDocument/didChange","params":{"textDocument":`+doc+`,"contentChanges":[{"range":{"start":{"line":0,"character":3},"end":{"line":5,"character":0}},"text":"é('"}]}}`))
	f.Add(framed(hello, opened, `{"id":2,"method":"textDocument/completion","params":{"textDocument":`+doc+`,"position":{"line":0,"character":15}}}`))
	f.Add(framed(hello, opened, `{"id":2,"method":"textDocument/definition","params":{"textDocument":`+doc+`,"position":{"line":0,"character":0}}}`, `{"id":3,"method":"shutdown"}`, `{"method":"exit"}`))
	f.Fuzz(func(t *testing.T, input string) {
		if len(input) < 64<<10 {
			serveLSP(t, input)
		}
	})
}

// program10000 is a program of so many statements that has no findings.
func program10000() string {
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, "battery.%d < 40 && !home => goal.%d = 'charger %d';\n", i%500, i, i)
	}
	return b.String()
}

// BenchmarkLSPEdit is one key pressed in the middle of 10,000 statements: the
// change read, parsed, checked, and the findings written.
func BenchmarkLSPEdit(b *testing.B) {
	s := &languageServer{initialized: true, conn: &rpcConn{nil, io.Discard}, documents: map[string]*document{}}
	d := newDocument("a", program10000())
	s.documents["a"] = d
	m := &rpcMessage{
		Method: "textDocument/didChange",
		Params: json.RawMessage(`{"textDocument":{"uri":"a"},"contentChanges":[{"range":{"start":{"line":5000,"character":0},"end":{"line":5000,"character":0}},"text":" "}]}`),
	}
	for b.Loop() {
		if _, err := s.handle(m); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := karl.Parse("", d.text); err != nil {
		b.Fatal(err)
	}
}
