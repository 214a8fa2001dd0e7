package karl

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A chunk file holds programs separated by lines of ---. A fault that a program
// must have is told at the end of its line, by ### column "message", where the
// message is a regular expression. Faults must be all of a program's.
var expectedFault = regexp.MustCompile(`\s*### (\d+) ("(?:[^"\\]|\\.)*")`)

type place struct{ line, column int }

// splitExpectations takes the expected faults out of a program.
func splitExpectations(t *testing.T, chunk string) (src string, want map[place]string) {
	want = map[place]string{}
	lines := strings.Split(chunk, "\n")
	for i, line := range lines {
		for _, m := range expectedFault.FindAllStringSubmatch(line, -1) {
			column, _ := strconv.Atoi(m[1])
			message, err := strconv.Unquote(m[2])
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
			want[place{i + 1, column}] = message
		}
		lines[i] = expectedFault.ReplaceAllString(line, "")
	}
	return strings.Join(lines, "\n"), want
}

func TestChunks(t *testing.T) {
	files, err := filepath.Glob("testdata/*.karl")
	if err != nil || len(files) == 0 {
		t.Fatal("no chunk files", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		line := 1
		for _, chunk := range strings.Split(string(data), "\n---\n") {
			src, want := splitExpectations(t, chunk)
			name := filepath.Base(file) + ":" + strconv.Itoa(line)
			t.Run(name, func(t *testing.T) { checkFaults(t, src, want) })
			line += strings.Count(chunk, "\n") + 2
		}
	}
}

func checkFaults(t *testing.T, src string, want map[place]string) {
	p, err := Parse("", src)
	if err == nil {
		checkRoundTrip(t, p)
	} else {
		for _, e := range err.(ErrorList) {
			at := place{e.Pos.Line, e.Pos.Column}
			pattern, ok := want[at]
			if !ok {
				t.Errorf("unexpected fault in\n%s\n%v", src, e)
				continue
			}
			delete(want, at)
			if !regexp.MustCompile(pattern).MatchString(e.Msg) {
				t.Errorf("in\n%s\n%v, want a message like %s", src, e, pattern)
			}
		}
	}
	for at, pattern := range want {
		t.Errorf("in\n%s\nno fault at %d:%d, want one like %s", src, at.line, at.column, pattern)
	}
}
