package karl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Class says how sure a finding is.
type Class uint8

// The classes of findings.
const (
	ClassError   Class = iota // surely wrong
	ClassWarning              // likely wrong
)

// String returns "error" or "warning".
func (c Class) String() string {
	if c == ClassError {
		return "error"
	}
	return "warning"
}

// Diagnostic is a finding of [Check] in a program that parses.
type Diagnostic struct {
	Name     string // the program's
	Pos, End Pos    // End is behind the last byte
	Code     string // a stable name of the kind of finding, as assign-in-condition; doc/check.md explains each
	Class    Class
	Msg      string // what is wrong
	Fix      string // a sentence that says what to write instead
	Edit     *Edit  // the same as a change of the text, where there is a single one that helps; else nil
}

// String returns "name:line:column: class: message (code)" on one line.
func (d Diagnostic) String() string {
	at := d.Pos.String()
	if d.Name != "" {
		at = d.Name + ":" + at
	}
	return fmt.Sprintf("%s: %s: %s (%s)", at, d.Class, d.Msg, d.Code)
}

// Edit replaces a part of a text, from byte From up to, not including, byte To.
type Edit struct {
	From, To int
	Text     string
}

// CheckOptions tell [Check] what is known from outside the programs. A nil
// pointer is as good as a pointer to the zero value.
type CheckOptions struct {
	// Functions are the names of the functions that the host defines. If it is
	// nil they are not known, and calls are not looked at.
	Functions []string
	// Variables are the names that the host and other agents write. If it is nil
	// they are not known, and only names that begin with a dot, which never leave
	// a base, are expected to be written by the programs themselves.
	Variables []string
}

// maxFindings is the greatest number of findings in a program that [Check] returns.
const maxFindings = 1000

// Check returns what is likely wrong in a program, in the order of the places,
// up to 1,000 findings. What [Parse] refuses it does not say again. Findings are
// left out where a comment with check:ignore and their codes stands on their
// first line, or alone on the line before:
//
//	a = 1 => b // check:ignore assign-in-condition
func Check(p *Program, options *CheckOptions) []Diagnostic {
	return CheckAll([]*Program{p}, options)
}

// CheckAll checks programs that run in one knowledge base, as [Check] does: what
// one of them writes the others may read. The findings are in the order of the
// programs.
func CheckAll(programs []*Program, options *CheckOptions) []Diagnostic {
	if options == nil {
		options = &CheckOptions{}
	}
	c := checker{options: options, names: map[string]*usage{}, functions: map[string]bool{}}
	for _, f := range options.Functions {
		c.functions[f] = true
	}
	for i, p := range programs {
		c.file = i
		c.p = p
		if p.Body != nil {
			c.visit(p.Body, useResult)
		}
		c.comments()
	}
	c.checkNames()
	slices.SortStableFunc(c.findings, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.from, b.from), cmp.Compare(a.code, b.code))
	})
	var list []Diagnostic
	for i := 0; i < len(c.findings); {
		file := c.findings[i].file
		n := i
		for n < len(c.findings) && c.findings[n].file == file {
			n++
		}
		list = c.diagnostics(list, programs[file], c.findings[i:n], c.ignores[file])
		i = n
	}
	return list
}

// checker checks programs.
type checker struct {
	options   *CheckOptions
	functions map[string]bool

	file     int // the program being checked
	p        *Program
	findings []finding
	ignores  map[int]map[int][]string // the codes that are ignored from comments, by file and line

	names    map[string]*usage
	patterns []pattern
	unknown  bool // names are read and written that the text does not tell
}

// finding is a Diagnostic before its lines and columns are known.
type finding struct {
	file, from, to int
	code           string
	msg, fix       string
	edit           *Edit
}

// codes has the class of each finding.
var codes = map[string]Class{
	"array-arithmetic":    ClassWarning,
	"assign-in-condition": ClassWarning,
	"comparison-chain":    ClassWarning,
	"divide-by-zero":      ClassWarning,
	"element-not-number":  ClassWarning,
	"endless-loop":        ClassError,
	"foreign-keyword":     ClassWarning,
	"implies-value":       ClassWarning,
	"loop-never-runs":     ClassWarning,
	"mixed-logic":         ClassWarning,
	"never-read":          ClassWarning,
	"never-written":       ClassWarning,
	"semicolon-value":     ClassWarning,
	"string-number":       ClassWarning,
	"unclosed-comment":    ClassWarning,
	"unknown-code":        ClassWarning,
	"unknown-function":    ClassError,
	"unresolved-braces":   ClassWarning,
	"value-unused":        ClassWarning,
}

// report adds a finding at a node.
func (c *checker) report(n Node, code, fix string, edit *Edit, format string, args ...any) {
	c.reportAt(n.Pos(), n.End(), code, fix, edit, format, args...)
}

func (c *checker) reportAt(from, to int, code, fix string, edit *Edit, format string, args ...any) {
	c.findings = append(c.findings, finding{c.file, from, to, code, fmt.Sprintf(format, args...), fix, edit})
}

// text returns the source text of a node for a message, cut if it is long.
func (c *checker) text(n Node) string {
	text := c.p.Source[n.Pos():n.End()]
	if len(text) > 2*maxEdit { // long chains have a finding for each part
		text = text[:maxEdit] + "…" + text[len(text)-maxEdit:]
	}
	return shorten(text)
}

// maxEdit is the length of the longest text that a finding repeats.
const maxEdit = 500

// ignoreMark begins the codes in a comment that suppresses findings.
const ignoreMark = "check:ignore"

// comments looks at the comments of the program.
func (c *checker) comments() {
	src := c.p.Source
	marked := strings.Contains(src, ignoreMark)
	if !marked && !strings.Contains(src, "/*") {
		return
	}
	l := layout{src: src}
	l.scan(0)
	for _, comment := range l.comments {
		from, to := int(comment.from), int(comment.to)
		text := src[from:to]
		if text[1] == '*' && (len(text) < 3 || !strings.HasSuffix(text[1:], "*/")) {
			c.reportAt(from, from+2, "unclosed-comment", "Write */ where the comment ends.", nil,
				"/* is never closed, so the rest of the text is a comment")
		}
		if marked {
			c.ignore(text, from)
		}
	}
}

// ignore reads the codes that a comment suppresses.
func (c *checker) ignore(text string, from int) {
	_, list, ok := strings.Cut(text, ignoreMark)
	if !ok {
		return
	}
	list, _, _ = strings.Cut(strings.TrimSuffix(list, "*/"), "\n")
	line := strings.Count(c.p.Source[:from], "\n") + 1
	before, after := c.p.Source[:from], c.p.Source[from+len(text):]
	before = before[strings.LastIndexByte(before, '\n')+1:]
	after, _, _ = strings.Cut(after, "\n")
	if strings.TrimSpace(before+after) == "" {
		line += strings.Count(text, "\n") + 1
	}
	ignored := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\r' })
	if len(ignored) == 0 {
		c.reportAt(from, from+len(text), "unknown-code", "Write the code behind it, as check:ignore never-read.", nil, "check:ignore without a code ignores nothing")
	}
	for _, code := range ignored {
		if _, ok := codes[code]; !ok {
			c.reportAt(from, from+len(text), "unknown-code", "The codes are those in parentheses behind findings.", nil, "there is no finding %s to ignore", shorten(code))
		}
	}
	if c.ignores == nil {
		c.ignores = map[int]map[int][]string{}
	}
	if c.ignores[c.file] == nil {
		c.ignores[c.file] = map[int][]string{}
	}
	lines := c.ignores[c.file]
	lines[line] = append(lines[line], ignored...)
}

// diagnostics appends the findings of one program that are not ignored.
func (c *checker) diagnostics(list []Diagnostic, p *Program, findings []finding, ignores map[int][]string) []Diagnostic {
	position := p.Positions()
	n := 0
	for _, f := range findings {
		pos := position(f.from)
		if slices.Contains(ignores[pos.Line], f.code) {
			continue
		}
		if n++; n > maxFindings {
			break
		}
		list = append(list, Diagnostic{
			Name: p.Name, Pos: pos, End: position(f.to), Code: f.code, Class: codes[f.code], Msg: f.msg, Fix: f.fix, Edit: f.edit,
		})
	}
	return list
}
