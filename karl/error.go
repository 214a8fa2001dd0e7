package karl

import (
	"errors"
	"fmt"
	"strings"
)

// SyntaxError is one fault in a program's text. Pos is where it begins, End
// behind its last byte.
type SyntaxError struct {
	Name     string // the name given to Parse, "" for a text without a file
	Pos, End Pos
	Msg      string

	line       string // the source line Pos is on
	incomplete bool   // more text could mend it
	limit      bool   // the parser's, and not a fault in itself
}

// ErrLimit is what errors.Is finds in a fault that is a limit of the [Parser].
var ErrLimit = errors.New("limit reached")

// Unwrap returns ErrLimit for a limit, otherwise nil.
func (e *SyntaxError) Unwrap() error {
	if e.limit {
		return ErrLimit
	}
	return nil
}

// Error returns "name:line:column: message" on one line.
func (e *SyntaxError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s: %s", e.Pos, e.Msg)
	}
	return fmt.Sprintf("%s:%s: %s", e.Name, e.Pos, e.Msg)
}

// Snippet returns the source line of the fault and, under it, a caret for each
// column it covers. Tabs stay tabs, so that the carets stand right.
func (e *SyntaxError) Snippet() string { return snippet(e.line, e.Pos, e.End) }

// Snippet returns the line of pos in the program's source with carets up to
// end, as [SyntaxError.Snippet] does.
func (p *Program) Snippet(pos, end Pos) string {
	return snippet(lineAt(p.Source, pos.Offset), pos, end)
}

// snippetWidth is the longest part of a line, in runes, that a snippet shows.
const snippetWidth = 120

func snippet(line string, pos, end Pos) string {
	runes := []rune(line)
	col := min(max(pos.Column-1, 0), len(runes))
	width := 1
	if end.Line == pos.Line {
		width = max(end.Column-pos.Column, 1)
	} else if end.Line > pos.Line {
		width = max(len(runes)-col, 1)
	}
	first := 0
	if col > snippetWidth*2/3 {
		first = col - snippetWidth*2/3
	}
	last := min(first+snippetWidth, len(runes))
	width = min(width, max(last-col, 1))
	var b strings.Builder
	b.WriteString(strings.ToValidUTF8(string(runes[first:last]), "?"))
	b.WriteByte('\n')
	for _, r := range runes[first:col] {
		if r == '\t' {
			b.WriteByte('\t')
		} else {
			b.WriteByte(' ')
		}
	}
	b.WriteString(strings.Repeat("^", width))
	return b.String()
}

// lineAt returns the line of src that contains the offset, without its end.
func lineAt(src string, offset int) string {
	offset = min(max(offset, 0), len(src))
	start := strings.LastIndexByte(src[:offset], '\n') + 1
	line := src[start:]
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	return strings.TrimSuffix(line, "\r")
}

// ErrorList is every fault found in one text, in the order of their places, at
// most 20.
type ErrorList []*SyntaxError

// Error returns the first fault, and how many more there are.
func (l ErrorList) Error() string {
	switch len(l) {
	case 0:
		return "no errors"
	case 1:
		return l[0].Error()
	}
	return fmt.Sprintf("%s (and %d more)", l[0].Error(), len(l)-1)
}

// Unwrap gives errors.Is and errors.As each fault.
func (l ErrorList) Unwrap() []error {
	errs := make([]error, len(l))
	for i, e := range l {
		errs[i] = e
	}
	return errs
}

// IsIncomplete reports whether err is of a text that only ended too early: an
// open bracket, an open string, an operator without its right side. A command
// line asks for another line then.
func IsIncomplete(err error) bool {
	var l ErrorList
	if errors.As(err, &l) {
		return len(l) > 0 && l[0].incomplete
	}
	var e *SyntaxError
	return errors.As(err, &e) && e.incomplete
}
