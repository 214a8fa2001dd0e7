package karl

import (
	"bytes"
	"strings"

	"github.com/alecthomas/participle/v2/lexer"
)

// Format returns a text in the layout that all programs share. Only blanks and
// line ends change, apart from separators that stand side by side, of which the
// last is kept, and those before the first statement; so the program stays the
// same, and so do its comments. An error is that of [Parse], or nil.
//
// The layout is this:
//
//   - Each statement of the program has a line of its own. So have those of a
//     block, which is parentheses with ;, ;> or , in them, indented by a tab; but
//     a block that was on one line and takes up to 60 bytes stays on it.
//   - Parentheses with one statement keep to one line unless a line ended behind
//     their ( or a block in them has several lines.
//   - A line may end behind an operator or the comma of a list. Where it did
//     beside one, it still does, and the next line is indented.
//   - Operators between operands have a blank on both sides, prefixes and
//     brackets none, the arrow of a loop is -> or -step>.
//   - Between statements up to one empty line is kept. The text ends with a line
//     end, all of which are \n outside strings.
//
// A first line that starts with #! is kept, a byte order mark is left out.
func Format(src string) (string, error) {
	src = strings.TrimPrefix(src, "\ufeff")
	first := 0 // where the program begins
	if strings.HasPrefix(src, "#!") {
		if first = strings.IndexByte(src, '\n') + 1; first == 0 {
			first = len(src)
		}
	}
	text := src
	if first > 0 { // positions in errors count the first line
		text = strings.Repeat(" ", first-1) + "\n" + src[first:]
	}
	p, err := Parse("", text)
	if err != nil {
		return "", err
	}
	l := layout{src: text}
	l.scan(first)
	l.arrows(p.Body)
	l.measure()
	l.buf = make([]byte, 0, len(src)+len(src)/8)
	if first > 0 {
		l.buf = append(l.buf, strings.TrimRight(src[:first], " \t\r\n")...)
	}
	l.print()
	return string(l.buf), nil
}

// blockWidth is the number of bytes up to which a block may stay on one line.
const blockWidth = 60

// layout lays out the tokens of a text that parses.
type layout struct {
	src      string
	lexemes  []lexeme // the last one is the end of the text
	comments []comment
	groups   []group

	buf    []byte
	indent int // of the line being written
}

// lexeme is a token and what stands between it and the one before.
type lexeme struct {
	kind     lexer.TokenType
	role     role
	space    bool // a blank stands before it if no line ends there
	from, to int32
	comment  int32 // the first of the comments before it; the next one's is behind the last
	lines    int32 // line ends directly before it
	group    int32 // what it opens or closes, else -1; of a separator or arrow what it is in, -1 outside all
	width    int32 // bytes of all before it, on one line
}

// role is what a token does.
type role uint8

const (
	roleOperand   role = iota // or part of one, without brackets
	roleOpen                  //
	roleClose                 //
	rolePrefix                //
	rolePostfix               //
	roleBinary                //
	roleStatement             // ; , or ;> between statements, or in an argument or header
	roleComma                 // , between arguments or elements
	roleArrow                 // the - of a loop
	roleArrowEnd              // its >
)

// comment is a comment, and the number of line ends directly before it.
type comment struct{ from, to, lines int32 }

// group is a pair of brackets with what is in it.
type group struct {
	kind       groupKind
	open       int32 // its lexeme
	greater    int32 // the lexeme of the last > directly in it, behind a -
	minus      bool
	separators bool // a separator of statements is directly in it
	lines      bool // a line ends in it
	first      bool // a line ends behind its opener
	broken     bool // its contents have lines of their own
	step       bool // of a header: something stands in the arrow

	outerBase, outerIndent int // while it is written: those around it
}

type groupKind uint8

const (
	groupParens groupKind = iota
	groupList             // arguments or elements
	groupIndex
	groupHeader
)

// scan reads the tokens and comments, and what each is but for arrows.
func (l *layout) scan(first int) {
	s := newScanner(l.src, Parser{}.limits())
	s.pos, s.piece = first, len(l.src) // one piece
	l.lexemes = make([]lexeme, 0, len(l.src)/3+1)
	var open []int32
	operand := false // the token before ends an operand
	x := lexeme{}
	if first > 0 {
		x.lines = 1
	}
	for {
		l.gap(s, &x)
		t, _ := s.Next()
		x.kind, x.from, x.to, x.group = t.Type, int32(t.Pos.Offset), int32(t.Pos.Offset+len(t.Value)), -1
		inner := int32(-1)
		if len(open) > 0 {
			inner = open[len(open)-1]
			if x.lines > 0 || int(x.comment) < len(l.comments) && l.linesIn(x) {
				l.groups[inner].lines = true
			}
		}
		n := len(l.lexemes)
		switch {
		case t.EOF():
			l.lexemes = append(l.lexemes, x)
			return
		case isOpener(t.Type):
			x.role, x.group = roleOpen, int32(len(l.groups))
			g := group{open: int32(n), greater: -1}
			switch {
			case t.Type == tokenOpenIndex:
				g.kind = groupIndex
			case t.Type == tokenOpenArray, n > 0 && (l.lexemes[n-1].kind == tokenName || l.lexemes[n-1].kind == tokenSystem):
				g.kind = groupList
			}
			open = append(open, x.group)
			l.groups = append(l.groups, g)
			operand = false
		case t.Type == tokenCloseParen || t.Type == tokenCloseBracket:
			g := &l.groups[inner]
			x.role, x.group = roleClose, inner
			if open = open[:len(open)-1]; len(open) > 0 && g.lines {
				l.groups[open[len(open)-1]].lines = true
			}
			if g.kind == groupIndex && g.greater >= 0 {
				g.kind = groupHeader
				l.lexemes[g.greater].role, l.lexemes[g.greater].group = roleArrowEnd, inner
			}
			operand = true
		case isSeparator(t.Type):
			x.role, x.group = roleStatement, inner
			operand = false
			if t.Type == tokenEither {
				if inner >= 0 && l.groups[inner].kind == groupList {
					x.role = roleComma
				}
			} else if n == 0 {
				continue // before the first statement
			} else if before := &l.lexemes[n-1]; int(x.comment) == len(l.comments) && (before.kind == tokenBoth || before.kind == tokenLast) {
				before.kind, before.from, before.to = x.kind, x.from, x.to
				x = lexeme{comment: x.comment}
				continue
			}
			if inner >= 0 && x.role == roleStatement {
				l.groups[inner].separators = true
			}
		case t.Type == tokenInc || t.Type == tokenDec:
			if x.role = rolePrefix; operand {
				x.role = rolePostfix
			}
		case t.Type >= tokenNot:
			if x.role = rolePrefix; operand {
				x.role = roleBinary
			}
			operand = false
		default:
			x.role = roleOperand
			operand = true
		}
		if inner >= 0 {
			switch g := &l.groups[inner]; {
			case t.Type == tokenSub || t.Type == tokenDec:
				g.minus = true
			case t.Type == tokenGreater && g.minus:
				g.greater = int32(n)
			}
		}
		l.lexemes = append(l.lexemes, x)
		x = lexeme{comment: int32(len(l.comments))}
	}
}

// gap reads blanks and comments up to the next token.
func (l *layout) gap(s *scanner, x *lexeme) {
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case c == '\n':
			x.lines++
			s.pos++
		case classes[c] == classBlank:
			s.pos++
		case c == '/' && (s.next(1) == '/' || s.next(1) == '*'):
			from := s.pos
			if s.next(1) == '/' {
				s.skipTo("\n", s.pos+2)
				if s.src[s.pos-1] == '\n' {
					s.pos--
				}
			} else {
				s.skipTo("*/", s.pos+1)
			}
			l.comments = append(l.comments, comment{int32(from), int32(s.pos), x.lines})
			x.lines = 0
		default:
			return
		}
	}
}

// linesIn reports whether a line ends before or in the comments before x, the
// last lexeme.
func (l *layout) linesIn(x lexeme) bool {
	for _, c := range l.comments[x.comment:] {
		if c.lines > 0 || strings.Contains(l.src[c.from:c.to], "\n") {
			return true
		}
	}
	return false
}

// arrows finds the - of each loop header, which is the first one behind the
// start that parsing found.
func (l *layout) arrows(body Node) {
	var headers []*group
	for i := range l.groups {
		if l.groups[i].kind == groupHeader {
			headers = append(headers, &l.groups[i])
		}
	}
	if len(headers) == 0 {
		return
	}
	Walk(body, func(n Node) bool {
		loop, ok := n.(*Loop)
		if !ok {
			return true
		}
		g := headers[0]
		headers = headers[1:]
		i := g.open + 1
		if loop.Start != nil {
			for int(l.lexemes[i].from) < loop.Start.End() {
				i++
			}
		}
		// Only separators and empty parentheses can stand before it.
		for l.lexemes[i].kind != tokenSub && l.lexemes[i].kind != tokenDec {
			i++
		}
		x := &l.lexemes[i]
		x.role, x.group = roleArrow, l.lexemes[g.open].group
		g.step = i+1 < g.greater
		// What follows a -- was taken to stand behind an operand.
		for i++; l.lexemes[i].role == roleBinary || l.lexemes[i].role == rolePostfix; i++ {
			l.lexemes[i].role = rolePrefix
		}
		return true
	})
}

// measure finds where blanks stand and which groups are broken.
func (l *layout) measure() {
	width := int32(0)
	var inner []*group
	for i := range l.lexemes {
		x := &l.lexemes[i]
		x.space = i > 0 && l.spaced(i)
		for _, c := range l.commentsBefore(i) {
			width += c.to - c.from + 1
		}
		if x.space {
			width++
		}
		x.width = width
		width += x.to - x.from
		switch x.role {
		case roleOpen:
			g := &l.groups[x.group]
			empty := l.lexemes[i+1].role == roleClose && l.noComments(i+1)
			g.first = l.linesBefore(i+1) && !empty
			inner = append(inner, g)
		case roleClose:
			g := &l.groups[x.group]
			inner = inner[:len(inner)-1]
			switch g.kind {
			case groupParens:
				long := width-l.lexemes[g.open].width > blockWidth
				g.broken = g.broken || g.first || g.separators && (g.lines || long)
				if n := len(inner); g.broken && n > 0 && inner[n-1].kind == groupParens {
					inner[n-1].broken = true
				}
			case groupList:
				g.broken = g.first
			}
		}
	}
}

func (l *layout) commentsBefore(i int) []comment {
	last := int32(len(l.comments))
	if i+1 < len(l.lexemes) {
		last = l.lexemes[i+1].comment
	}
	return l.comments[l.lexemes[i].comment:last]
}

func (l *layout) noComments(i int) bool { return len(l.commentsBefore(i)) == 0 }

// linesBefore reports whether a line ends before lexeme i or a comment before it.
func (l *layout) linesBefore(i int) bool {
	for _, c := range l.commentsBefore(i) {
		if c.lines > 0 {
			return true
		}
	}
	return l.lexemes[i].lines > 0
}

// spaced reports whether a blank stands before lexeme i on a line.
func (l *layout) spaced(i int) bool {
	a, b := &l.lexemes[i-1], &l.lexemes[i]
	switch {
	case a.role == roleOpen, b.role == roleClose, b.role == rolePostfix:
		return false
	case b.role == roleComma || b.role == roleStatement:
		return b.kind == tokenLast && a.role != roleStatement
	case a.role == roleComma || a.role == roleStatement:
		return true
	case b.role == roleBinary || a.role == roleBinary:
		return true
	case b.role == roleArrow:
		return l.groups[b.group].step
	case b.role == roleArrowEnd:
		return false
	case a.role == roleArrowEnd:
		return l.groups[a.group].step
	case a.role == roleArrow:
		if isNumber(b.kind) && a.kind == tokenSub && l.groups[a.group].open == int32(i-2) {
			return a.to != b.from // it decides whether the number is the start
		}
		return l.src[b.from] == '-'
	case a.role == rolePrefix:
		if a.kind == tokenSub && isNumber(b.kind) {
			return a.to != b.from // it decides whether the number is negative
		}
		return a.kind == tokenSub && l.src[b.from] == '-' || a.kind == tokenAdd && l.src[b.from] == '+'
	}
	return a.role == roleClose // the body of a loop
}

// print writes all lexemes.
func (l *layout) print() {
	var open []*group
	base := 0      // the indentation of statements and elements
	moved := false // a line ended before the operator just written
	for i := range l.lexemes {
		x := &l.lexemes[i]
		end := x.kind == lexer.EOF
		var inner *group
		if len(open) > 0 {
			inner = open[len(open)-1]
		}
		before := roleStatement
		if i > 0 {
			before = l.lexemes[i-1].role
		}
		g := gap{indent: base + 1}
		switch broken := inner != nil && inner.broken; {
		case end, x.role == roleClose && broken:
			g.items, g.breaks, g.closes, g.indent = true, true, true, base
		case before == roleOpen && broken, before == roleStatement && (inner == nil || broken && inner.kind == groupParens):
			g.items, g.breaks, g.indent = true, true, base
		case before == roleComma && broken:
			g.items, g.breaks, g.indent = true, l.linesBefore(i), base
		case before == roleComma, before == roleBinary:
			g.breaks = moved || l.linesBefore(i)
		case x.role == roleClose:
			g.indent = base
		}
		moved = x.role == roleBinary && x.lines > 0 && l.noComments(i)
		l.between(i, g)
		if end {
			return
		}
		indent := g.indent
		if x.role == roleClose {
			open = open[:len(open)-1]
			if inner.broken {
				base, indent = inner.outerBase, inner.outerIndent
			}
		}
		if l.endsLine() {
			l.tabs(indent)
		}
		l.buf = append(l.buf, l.src[x.from:x.to]...)
		if x.role == roleOpen {
			g := &l.groups[x.group]
			open = append(open, g)
			if g.broken {
				g.outerBase, g.outerIndent = base, l.indent
				base = l.indent + 1
			}
		}
	}
}

// gap says what becomes of the place before a lexeme.
type gap struct {
	indent int  // of a line that begins in it
	breaks bool // a line ends in it
	items  bool // it is between statements or elements, or at an end of them: an empty line is kept
	closes bool // it is before the closing bracket of those, or the end of the text
}

// between writes what stands before lexeme i: comments, a blank or line ends.
func (l *layout) between(i int, g gap) {
	x, comments := &l.lexemes[i], l.commentsBefore(i)
	opened := i > 0 && l.lexemes[i-1].role == roleOpen
	leads := g.breaks && !g.closes && !l.linesBefore(i) // comments begin the line of x
	for k, c := range comments {
		switch {
		case len(l.buf) == 0:
		case c.lines > 0 || k == 0 && leads:
			l.newLine(c.lines > 1 && g.items && !(k == 0 && opened))
		case k > 0 || !opened || g.breaks:
			l.blank()
		}
		if l.endsLine() {
			l.tabs(g.indent)
		}
		l.comment(l.src[c.from:c.to])
	}
	if n := len(comments); n > 0 {
		lineComment := l.src[comments[n-1].from+1] == '/'
		switch {
		case lineComment || x.lines > 0 || g.breaks && g.closes:
			l.newLine(x.lines > 1 && g.items && !g.closes)
		case x.role != roleClose && x.role != roleComma && (x.role != roleStatement || x.kind == tokenLast):
			l.blank()
		}
		return
	}
	switch {
	case len(l.buf) == 0:
	case g.breaks:
		l.newLine(x.lines > 1 && g.items && !g.closes && !opened)
	case x.space && x.kind != lexer.EOF:
		l.blank()
	}
}

// comment writes a comment without blanks at the ends of its lines.
func (l *layout) comment(text string) {
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			l.buf = append(l.buf, '\n')
		}
		l.buf = append(l.buf, strings.TrimRight(line, " \t\r")...)
	}
	if strings.HasPrefix(text, "/*") { // it may be unclosed
		l.buf = bytes.TrimRight(l.buf, "\n")
	}
}

func (l *layout) endsLine() bool { return len(l.buf) == 0 || l.buf[len(l.buf)-1] == '\n' }

// newLine ends the line, and leaves one empty if so told.
func (l *layout) newLine(empty bool) {
	if !l.endsLine() {
		l.buf = append(l.buf, '\n')
	}
	if empty {
		l.buf = append(l.buf, '\n')
	}
}

func (l *layout) blank() {
	if !l.endsLine() {
		l.buf = append(l.buf, ' ')
	}
}

// tabs begins a line.
func (l *layout) tabs(n int) {
	l.indent = n
	for range n {
		l.buf = append(l.buf, '\t')
	}
}
