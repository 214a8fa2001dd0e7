package main

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/madara-go/madara/karl"
)

// The protocol counts lines and UTF-16 units from 0.
type (
	lspPosition struct {
		Line      int `json:"line"`
		Character int `json:"character"`
	}
	lspRange struct {
		Start lspPosition `json:"start"`
		End   lspPosition `json:"end"`
	}
	lspLocation struct {
		URI   string   `json:"uri"`
		Range lspRange `json:"range"`
	}
	lspEdit struct {
		Range   lspRange `json:"range"`
		NewText string   `json:"newText"`
	}
	lspDiagnostic struct {
		Range    lspRange `json:"range"`
		Severity int      `json:"severity"`
		Code     string   `json:"code,omitempty"`
		Source   string   `json:"source"`
		Message  string   `json:"message"`
	}
	lspCompletion struct {
		Label  string `json:"label"`
		Kind   int    `json:"kind"`
		Detail string `json:"detail,omitempty"`
	}
)

// document is a text that is open in the editor.
type document struct {
	uri, text string
	lines     []int         // offsets of their beginnings
	program   *karl.Program // nil if the text does not parse
	err       error
}

func newDocument(uri, text string) *document {
	d := &document{uri: uri}
	d.set(text)
	return d
}

func (d *document) set(text string) {
	d.text, d.lines = text, []int{0}
	for i := range len(text) {
		if text[i] == '\n' {
			d.lines = append(d.lines, i+1)
		}
	}
}

func (d *document) parse() { d.program, d.err = karl.Parse("", withoutShebang(d.text)) }

func units(r rune) int {
	if r > 0xffff {
		return 2
	}
	return 1
}

// offset returns the byte of a place; one beyond a line is its end.
func (d *document) offset(p lspPosition) int {
	if p.Line < 0 {
		return 0
	}
	if p.Line >= len(d.lines) {
		return len(d.text)
	}
	at := d.lines[p.Line]
	for n := 0; n < p.Character && at < len(d.text) && d.text[at] != '\n'; {
		r, size := utf8.DecodeRuneInString(d.text[at:])
		n += units(r)
		at += size
	}
	return at
}

// position returns the place of a byte.
func (d *document) position(offset int) lspPosition {
	offset = min(max(offset, 0), len(d.text))
	line := sort.SearchInts(d.lines, offset+1) - 1
	p := lspPosition{Line: line}
	for _, r := range d.text[d.lines[line]:offset] {
		p.Character += units(r)
	}
	return p
}

func (d *document) span(from, to int) lspRange { return lspRange{d.position(from), d.position(to)} }

// maxDiagnostics bounds what is sent of one text.
const maxDiagnostics = 500

// diagnostics returns what is wrong in the text.
func (d *document) diagnostics() []lspDiagnostic {
	list := []lspDiagnostic{} // not null in JSON
	var faults karl.ErrorList
	switch {
	case errors.As(d.err, &faults):
		for _, f := range faults {
			list = append(list, lspDiagnostic{d.span(f.Pos.Offset, f.End.Offset), 1, "", "karl", f.Msg})
		}
	case d.program != nil:
		for _, f := range karl.Check(d.program, nil) {
			severity := 1
			if f.Class == karl.ClassWarning {
				severity = 2
			}
			list = append(list, lspDiagnostic{d.span(f.Pos.Offset, f.End.Offset), severity, f.Code, "karl", f.Msg + "\n" + f.Fix})
			if len(list) == maxDiagnostics {
				break
			}
		}
	}
	return list
}

// nodeAt returns the innermost variable, call or literal at a place, nil for none.
func (d *document) nodeAt(offset int) karl.Node {
	if d.program == nil {
		return nil
	}
	var found karl.Node
	karl.Walk(d.program.Body, func(n karl.Node) bool {
		if offset < n.Pos() || offset > n.End() {
			return false
		}
		switch n := n.(type) {
		case *karl.Name, *karl.Literal:
			found = n
		case *karl.Call:
			if offset <= n.Pos()+len(n.Name) {
				found = n
			}
		case *karl.SystemCall:
			if offset <= n.Pos()+1+len(n.Name) {
				found = n
			}
		}
		return true
	})
	return found
}

// use is a place where a variable is written.
type use struct {
	name *karl.Name
	kind string // of the value, "" where the text does not tell
}

// writes returns the places where a variable is written.
func (d *document) writes(name string) []use {
	var uses []use
	if d.program == nil {
		return nil
	}
	add := func(target karl.Node, kind string) {
		switch n := karl.Unparen(target).(type) {
		case *karl.Name:
			if n.Text == name {
				uses = append(uses, use{n, kind})
			}
		case *karl.Index:
			if n.X.Text == name {
				uses = append(uses, use{n.X, "array"})
			}
		}
	}
	karl.Walk(d.program.Body, func(n karl.Node) bool {
		switch n := n.(type) {
		case *karl.Assign:
			kind := ""
			if n.Op == karl.OpAssign {
				kind = kindOf(n.Y)
			}
			add(n.X, kind)
		case *karl.IncDec:
			add(n.X, "")
		case *karl.Loop:
			add(n.Var, "")
		}
		return true
	})
	return uses
}

// kindOf returns the kind of value that an expression has whatever variables hold.
func kindOf(n karl.Node) string {
	switch n := karl.Unparen(karl.Fold(n)).(type) {
	case *karl.Literal:
		return n.Value.Kind().String()
	case *karl.Array:
		return "array"
	case *karl.Binary:
		if n.Op == karl.OpAnd || n.Op >= karl.OpEqual && n.Op <= karl.OpGreaterEqual {
			return "integer, 0 or 1"
		}
	case *karl.Unary:
		if n.Op == karl.OpNot {
			return "integer, 0 or 1"
		}
	}
	return ""
}

// hover describes what is at a place, in Markdown; from and to are where it is.
func (d *document) hover(offset int) (text string, from, to int) {
	switch n := d.nodeAt(offset).(type) {
	case *karl.SystemCall:
		return karl.SystemCallHelp(n.Func), n.Pos(), n.Pos() + 1 + len(n.Name)
	case *karl.Call:
		return fmt.Sprintf("`%s`: a function of the host program, or one defined in KaRL; arguments here: %d", n.Name, len(n.Args)), n.Pos(), n.Pos() + len(n.Name)
	case *karl.Literal:
		return fmt.Sprintf("%s `%s`", n.Value.Kind(), strings.ReplaceAll(show(n.Value), "`", "'")), n.Pos(), n.End()
	case *karl.Name:
		scope := "a variable, shared with the peers"
		if strings.HasPrefix(n.Text, ".") {
			scope = "a local variable, which never leaves the base"
		}
		var lines, kinds []string
		for _, u := range d.writes(n.Text) {
			if line := fmt.Sprint(d.position(u.name.Pos()).Line + 1); !slices.Contains(lines, line) && len(lines) < 20 {
				lines = append(lines, line)
			}
			if u.kind != "" && !slices.Contains(kinds, u.kind) {
				kinds = append(kinds, u.kind)
			}
		}
		text = fmt.Sprintf("`%s`: %s", n.Text, scope)
		if kinds != nil {
			text += "\n\nIs given: " + strings.Join(kinds, "; ")
		}
		if lines == nil {
			return text + "\n\nNot written in this file", n.Pos(), n.End()
		}
		return text + "\n\nWritten in line " + strings.Join(lines, ", "), n.Pos(), n.End()
	}
	return "", 0, 0
}

// words calls yield for the names in the text, those of comments and strings too.
func (d *document) words(yield func(word string, at int)) {
	for i := 0; i < len(d.text); {
		if !isWordByte(d.text[i]) {
			i++
			continue
		}
		from := i
		for i < len(d.text) && isWordByte(d.text[i]) {
			i++
		}
		yield(d.text[from:i], from)
	}
}
