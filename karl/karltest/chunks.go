// Package karltest reads programs with what they must do from files, for tests
// of the language's packages.
//
// A chunk file holds programs separated by lines of three dashes. A fault that a
// program must have is told at the end of the line it is on:
//
//	a = 1; b = ;      ### 10 "^= has no right operand$"
//
// with the column, which may be left out, and a regular expression in Go's
// quotes that the message must match. Such marks are cut out of the program.
//
// Comments at the end of a chunk, on lines of their own, say what the program
// must leave behind. What stands right of = is an expression without variables,
// so that it gives the kind too, or "nothing":
//
//	// = 5.0                the value of the program
//	// x = [1, 2]           the value of a variable
//	// y = nothing          a variable that has no value
//	// prints "x is 5\n"    what it prints, all together
//
// Comments at the beginning of a chunk prepare its run:
//
//	// with strict, steps 100     settings and limits
//	// function f: #arg(0) + 1    a function of the knowledge base
//
// Any other comment there is one for people.
package karltest

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/madara-go/madara/karl"
)

// Chunk is one program of a chunk file.
type Chunk struct {
	Name   string // "file.karl:12", the line it begins on
	Source string // without the marks of faults

	Faults    []Fault
	Functions []Function
	With      []string // settings, as written

	Result *karl.Value // nil: not checked
	Vars   []Variable
	Prints *string // nil: not checked
}

// Fault is a fault that the program must have.
type Fault struct {
	Line, Column int // Column is 0 if any will do
	Message      *regexp.Regexp
}

// Function is a function that the program calls.
type Function struct{ Name, Body string }

// Variable is the value that a variable must have.
type Variable struct {
	Name  string
	Value karl.Value
}

var (
	faultMark    = regexp.MustCompile(`\s*###(?: (\d+))? ("(?:[^"\\]|\\.)*")`)
	functionLine = regexp.MustCompile(`^// function (\S+): (.*)$`)
	withLine     = regexp.MustCompile(`^// with (.*)$`)
	valueLine    = regexp.MustCompile(`^//( .+?)? = (.*)$`)
	printsLine   = regexp.MustCompile(`^// prints (".*")$`)
)

// Read reads the chunks of all files that match a pattern. There must be some.
func Read(t testing.TB, pattern string) []Chunk {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no file matches %s: %v", pattern, err)
	}
	var chunks []Chunk
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		line := 1
		text := strings.TrimSuffix(string(data), "\n")
		for _, part := range strings.Split(text, "\n---\n") {
			name := filepath.Base(file) + ":" + strconv.Itoa(line)
			chunks = append(chunks, parse(t, name, part))
			line += strings.Count(part, "\n") + 2
		}
	}
	return chunks
}

func parse(t testing.TB, name, text string) Chunk {
	t.Helper()
	c := Chunk{Name: name}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		for _, m := range faultMark.FindAllStringSubmatch(line, -1) {
			f := Fault{Line: i + 1}
			f.Column, _ = strconv.Atoi(m[1])
			pattern, err := strconv.Unquote(m[2])
			if err == nil {
				f.Message, err = regexp.Compile(pattern)
			}
			if err != nil {
				t.Fatalf("%s: %s: %v", name, line, err)
			}
			c.Faults = append(c.Faults, f)
		}
		lines[i] = faultMark.ReplaceAllString(line, "")
	}
	c.Source = strings.Join(lines, "\n")
	for _, line := range lines {
		if !strings.HasPrefix(line, "//") {
			break
		}
		c.prepare(line)
	}
	for i := len(lines) - 1; i >= 0 && strings.HasPrefix(lines[i], "//"); i-- {
		if !c.expect(t, lines[i]) {
			t.Fatalf("%s: %s says nothing that can be checked", name, lines[i])
		}
	}
	return c
}

func (c *Chunk) prepare(line string) {
	if m := functionLine.FindStringSubmatch(line); m != nil {
		c.Functions = append(c.Functions, Function{m[1], m[2]})
	}
	if m := withLine.FindStringSubmatch(line); m != nil {
		c.With = append(c.With, strings.Split(m[1], ", ")...)
	}
}

func (c *Chunk) expect(t testing.TB, line string) bool {
	t.Helper()
	if m := printsLine.FindStringSubmatch(line); m != nil {
		s, err := strconv.Unquote(m[1])
		c.Prints = &s
		return err == nil
	}
	m := valueLine.FindStringSubmatch(line)
	if m == nil {
		return false
	}
	v, ok := constant(m[2])
	if m[1] == "" {
		c.Result = &v
	} else {
		c.Vars = append(c.Vars, Variable{m[1][1:], v})
	}
	return ok
}

// constant returns the value of an expression without variables.
func constant(text string) (karl.Value, bool) {
	if text == "nothing" {
		return karl.Value{}, true
	}
	p, err := karl.Parse("", text)
	if err != nil {
		return karl.Value{}, false
	}
	l, ok := karl.Unparen(karl.Fold(p.Body)).(*karl.Literal)
	if !ok {
		return karl.Value{}, false
	}
	return l.Value, true
}
