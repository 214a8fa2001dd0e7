// Package karltest tests programs in KaRL: files hold programs with what they
// must do, and [Run] runs them in a Go test, as the command karl test does. The
// format is described in karl/doc/testing.md. In short:
//
//	// a low battery sends the robot home
//	// file rules.karl
//	// stub distance: 5.0
//	battery = 30 ;> rules()
//	// .returning = 1
//	---
//	nothing() ### 1 "not defined"
package karltest

import (
	"fmt"
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
	Title  string // the first comment that is for people; "" for none
	File   string // as it was given
	Line   int    // in the file
	Source string // without the marks of faults

	Faults    []Fault
	Functions []Function
	Stubs     []Stub
	With      []string // settings, as written

	Result *karl.Value // nil: not checked
	Vars   []Variable
	Calls  []Calls
	Prints *string // nil: not checked
}

// Fault is a fault that the program must have.
type Fault struct {
	Line, Column int // Column is 0 if any will do
	Message      *regexp.Regexp
}

// Function is a function that the program calls, written in KaRL. Path is the
// file its body was read from, "" for one that stands in the chunk.
type Function struct{ Name, Body, Path string }

// Stub stands for a function of the host program: it returns its values in turn
// and the last one again and again, or fails.
type Stub struct {
	Name   string
	Values []karl.Value
	Fails  string // unless "", the message of the error
}

// Calls is how often a stub must have been called.
type Calls struct {
	Name  string
	Count int64
}

// Variable is the value that a variable must have.
type Variable struct {
	Name  string
	Value karl.Value
}

var (
	faultMark    = regexp.MustCompile(`\s*###(?: (\d+))? ("(?:[^"\\]|\\.)*")`)
	functionLine = regexp.MustCompile(`^// function (\S+): (.*)$`)
	fileLine     = regexp.MustCompile(`^// file (\S+\.karl)$`)
	stubLine     = regexp.MustCompile(`^// stub (\S+): (.*)$`)
	failsLine    = regexp.MustCompile(`^// stub (\S+) fails (".*")$`)
	withLine     = regexp.MustCompile(`^// with (.*)$`)
	valueLine    = regexp.MustCompile(`^//( .+?)? = (.*)$`)
	calledLine   = regexp.MustCompile(`^// called (\S+) = (\d+)$`)
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
		more, err := Parse(file, string(data))
		if err != nil {
			t.Fatal(err)
		}
		chunks = append(chunks, more...)
	}
	return chunks
}

// Parse returns the chunks of a file with that name. Files that they name are
// looked for beside it. The error says which line says nothing that is understood.
func Parse(file, text string) ([]Chunk, error) {
	var chunks []Chunk
	line := 1
	text = strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for _, part := range strings.Split(text, "\n---\n") {
		c := Chunk{File: file, Line: line, Name: filepath.Base(file) + ":" + strconv.Itoa(line)}
		if at, err := c.parse(part); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, line+at, err)
		}
		chunks = append(chunks, c)
		line += strings.Count(part, "\n") + 2
	}
	return chunks, nil
}

// parse returns the line within text of an error, from 0.
func (c *Chunk) parse(text string) (int, error) {
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
				return i, err
			}
			c.Faults = append(c.Faults, f)
		}
		lines[i] = faultMark.ReplaceAllString(line, "")
	}
	c.Source = strings.Join(lines, "\n")
	first := 0
	for ; first < len(lines) && strings.HasPrefix(lines[first], "//"); first++ {
		if err := c.prepare(lines[first]); err != nil {
			return first, err
		}
	}
	for i := len(lines) - 1; i >= 0 && strings.HasPrefix(lines[i], "//"); i-- {
		if i < first { // a chunk of comments alone
			return i, fmt.Errorf("no program between comments")
		}
		if !c.expect(lines[i]) {
			return i, fmt.Errorf("%s says nothing that can be checked", lines[i])
		}
	}
	return 0, nil
}

func (c *Chunk) prepare(line string) error {
	if m := functionLine.FindStringSubmatch(line); m != nil {
		c.Functions = append(c.Functions, Function{Name: m[1], Body: m[2]})
		return nil
	}
	if m := withLine.FindStringSubmatch(line); m != nil {
		c.With = append(c.With, strings.Split(m[1], ", ")...)
		return nil
	}
	if m := fileLine.FindStringSubmatch(line); m != nil {
		path := filepath.Join(filepath.Dir(c.File), filepath.FromSlash(m[1]))
		body, err := os.ReadFile(path)
		name := strings.TrimSuffix(filepath.Base(path), ".karl")
		text := string(body)
		if strings.HasPrefix(text, "#!") { // as the command does
			text = "//" + text[2:]
		}
		c.Functions = append(c.Functions, Function{name, text, path})
		return err
	}
	if m := failsLine.FindStringSubmatch(line); m != nil {
		message, err := strconv.Unquote(m[2])
		c.Stubs = append(c.Stubs, Stub{Name: m[1], Fails: message})
		return err
	}
	if m := stubLine.FindStringSubmatch(line); m != nil {
		values, ok := constants(m[2])
		c.Stubs = append(c.Stubs, Stub{Name: m[1], Values: values})
		if !ok {
			return fmt.Errorf("%s: want values without variables, with commas between", line)
		}
		return nil
	}
	if c.Title == "" {
		c.Title = strings.TrimSpace(strings.TrimPrefix(line, "//"))
	}
	return nil
}

func (c *Chunk) expect(line string) bool {
	if m := printsLine.FindStringSubmatch(line); m != nil {
		s, err := strconv.Unquote(m[1])
		c.Prints = &s
		return err == nil
	}
	if m := calledLine.FindStringSubmatch(line); m != nil {
		n, err := strconv.ParseInt(m[2], 10, 64)
		c.Calls = append(c.Calls, Calls{m[1], n})
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

// constants returns the values of a list of such expressions.
func constants(text string) ([]karl.Value, bool) {
	p, err := karl.Parse("", "f("+text+")")
	if err != nil {
		return nil, false
	}
	call, ok := p.Body.(*karl.Call)
	if !ok || len(call.Args) == 0 {
		return nil, false
	}
	var values []karl.Value
	for _, arg := range call.Args {
		v, ok := constant(p.Source[arg.Pos():arg.End()])
		if !ok {
			return nil, false
		}
		values = append(values, v)
	}
	return values, true
}
