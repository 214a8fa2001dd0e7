package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/karl/karltest"
)

type testCmd struct {
	File  []string `arg:"" help:"Files of programs with what they must do; - is standard input."`
	JUnit string   `name:"junit" placeholder:"FILE" help:"Write the results to a file as JUnit XML, too."`
}

// Help is shown by kong below the usage.
func (c *testCmd) Help() string {
	return `A file holds programs between lines of three dashes. Comments below a program say what it must leave, comments above what it needs, and a mark ### at the end of a line which error it must have there:

  // file rules.karl
  // stub distance: 5.0
  battery = 30 ;> rules()
  // .returning = 1
  // called distance = 1

The exit code is 1 if a program does not do as it says. "karl doc testing" has all of it.`
}

// Run is called by kong.
func (c *testCmd) Run(p *process) error {
	var suites []junitSuite
	var chunks [][]karltest.Chunk
	for _, file := range c.File {
		text, err := p.read(file, karl.DefaultMaxSource)
		if err != nil {
			return err
		}
		parsed, err := karltest.Parse(file, string(text))
		if err != nil {
			return fail(exitCompile, err)
		}
		chunks = append(chunks, parsed)
	}
	failed := false
	for i, file := range c.File {
		suite := junitSuite{Name: filepath.ToSlash(file)}
		for _, chunk := range chunks[i] {
			suite.run(&chunk, p.out)
		}
		verdict := "ok  "
		if suite.Failures > 0 {
			verdict, failed = "FAIL", true
		}
		fmt.Fprintf(p.out, "%s %s: %d of %d programs do as they say\n", verdict, file, suite.Tests-suite.Failures, suite.Tests)
		suites = append(suites, suite)
	}
	if c.JUnit != "" {
		text, err := xml.MarshalIndent(junitSuites{Suites: suites}, "", "  ")
		if err == nil {
			err = os.WriteFile(c.JUnit, append([]byte(xml.Header), append(text, '\n')...), 0o666)
		}
		if err != nil {
			return fail(exitIO, err)
		}
	}
	if failed {
		return fail(exitUnreached)
	}
	return nil
}

// The elements of a JUnit report that its readers agree on.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class    string         `xml:"classname,attr"`
		Name     string         `xml:"name,attr"`
		Seconds  string         `xml:"time,attr"`
		Failures []junitFailure `xml:"failure"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Place   string `xml:",chardata"`
	}
)

// run runs a chunk and writes what it did not do as it says.
func (s *junitSuite) run(c *karltest.Chunk, w io.Writer) {
	name := c.Name
	if c.Title != "" {
		name += " " + c.Title
	}
	start := time.Now()
	failures := c.Run()
	result := junitCase{Class: s.Name, Name: name, Seconds: fmt.Sprintf("%.6f", time.Since(start).Seconds())}
	for _, f := range failures {
		fmt.Fprintln(w, f)
		result.Failures = append(result.Failures, junitFailure{f.Message, f.Error()})
	}
	if failures != nil {
		s.Failures++
	}
	s.Tests++
	s.Cases = append(s.Cases, result)
}
