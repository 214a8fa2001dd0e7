package karl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/participle/v2/lexer"
)

// fail reports a fault at token i. Like its siblings it returns false.
func (p *piece) fail(i int, format string, args ...any) bool {
	return p.failAt(i, i+1, format, args...)
}

// failAt reports a fault from token first up to, not including, token end.
func (p *piece) failAt(first, end int, format string, args ...any) bool {
	p.faults = append(p.faults, fault{
		from: p.tokens[first].Pos.Offset,
		to:   p.tokenEnd(max(end-1, first)),
		msg:  fmt.Sprintf(format, args...),
	})
	return false
}

// failOpen reports a fault that more text could mend if the text ends at p.pos.
func (p *piece) failOpen(i int, format string, args ...any) bool {
	p.fail(i, format, args...)
	p.faults[len(p.faults)-1].incomplete = p.atEnd && p.tokens[p.pos].EOF()
	return false
}

// failNode reports a fault in a node.
func (p *piece) failNode(n Node, format string, args ...any) bool {
	p.faults = append(p.faults, fault{from: n.Pos(), to: n.End(), msg: fmt.Sprintf(format, args...)})
	return false
}

// missing reports that no operand begins at p.pos. At the end of the range there
// is an operator before it.
func (p *piece) missing() {
	if i := p.pos - 1; i >= 0 && isOperator(p.tokens[i].Type) {
		p.failOpen(i, "%s has no right operand", p.tokens[i].Value)
		return
	}
	switch t := &p.tokens[p.pos]; t.Type {
	case tokenCloseParen, tokenCloseBracket:
		p.stray()
	default:
		p.fail(p.pos, "%s has no left operand", t.Value)
	}
}

func isOperator(t lexer.TokenType) bool { return t >= tokenNot && !isSeparator(t) }

// stray reports the closing bracket at p.pos, which closes nothing.
func (p *piece) stray() {
	t := p.tokens[p.pos]
	opener := "("
	if t.Type == tokenCloseBracket {
		opener = "["
	}
	p.fail(p.pos, "%s closes nothing: no %s is open", t.Value, opener)
}

// unclosed reports an opening bracket without a closer. If another bracket
// behind it has a wrong closer, that may well have been meant for this one, and
// is reported.
func (p *piece) unclosed(opener int) {
	for i := opener + 1; i < len(p.tokens)-1; i++ {
		if isOpener(p.tokens[i].Type) && p.tokens[i].Pos.Line > 0 && !p.closes(i, p.tokens[i].Pos.Line) {
			p.mismatch(i, p.tokens[i].Pos.Line)
			return
		}
	}
	t := &p.tokens[opener]
	p.faults = append(p.faults, fault{
		from: t.Pos.Offset, to: p.tokenEnd(opener),
		msg: t.Value + " is never closed", incomplete: true,
	})
}

// mismatch reports a bracket closed by one of the other sort.
func (p *piece) mismatch(opener, closer int) {
	o, c := p.tokens[opener], p.tokens[closer]
	if o.Type == tokenOpenIndex {
		p.failAt(opener, closer+1, "loop header without its ->: write [start -> end), or close the index with ]")
		return
	}
	p.fail(opener, "%s is closed by %s", o.Value, c.Value)
}

// bad reports the token at p.pos, which is none of the language's.
func (p *piece) bad() { p.fail(p.pos, "%s", badToken(p.tokens[p.pos].Value)) }

// badToken says what is wrong with what the lexer could make no token of.
func badToken(s string) string {
	switch s {
	case "&":
		return "there is no operator &, did you mean &&?"
	case "|":
		return "there is no operator |, did you mean ||?"
	case "%=":
		return "there is no operator %=: write a = a % b"
	case "<>":
		return "there is no operator <>, did you mean !=?"
	case "?", ":":
		return fmt.Sprintf("there is no operator %s: a condition is written condition => statement", s)
	case "^":
		return "there is no operator ^: a power is written #pow(base, exponent)"
	case "#":
		return "# has no name of a system call directly after it"
	case "‘", "’", "“", "”":
		return fmt.Sprintf("%s is no quote of the language: write ' or \"", s)
	case "\u00a0":
		return "non-breaking space: write a plain one"
	}
	switch class := classes[s[0]]; {
	case class == classDigit, class == classDot && len(s) > 1 && classes[s[1]] == classDigit:
		return badNumber(s)
	case class&className != 0:
		return braceFault(s)
	}
	if r, size := utf8.DecodeRuneInString(s); r == utf8.RuneError && size <= 1 {
		return fmt.Sprintf("byte 0x%02x means nothing here", s[0])
	} else if r > 0x7f || r < ' ' {
		return fmt.Sprintf("character %q means nothing here: names have letters a to z, digits, _ and dots", r)
	}
	return s + " means nothing in the language"
}

func badNumber(s string) string {
	short := shorten(s)
	lower := strings.ToLower(s)
	switch {
	case strings.HasPrefix(lower, "0x"):
		return short + " is no number: only decimal numbers can be written"
	case strings.HasSuffix(strings.TrimRight(lower, "+-"), "e") && strings.Trim(lower, "0123456789.") == "e":
		return short + " is no number: digits are missing after its " + string(s[strings.IndexAny(s, "eE")])
	case strings.Trim(s, "0123456789.") == "":
		return short + " is no number: it has more than one dot"
	}
	return short + " is no number, and a name cannot begin with a digit"
}

// braceFault says what is wrong with the braces of a name, or "".
func braceFault(name string) string {
	depth := 0
	for i := range len(name) {
		switch name[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth < 0 {
				return fmt.Sprintf("} in %s has no { before it", shorten(name))
			}
			if name[i-1] == '{' {
				return fmt.Sprintf("{} in %s is empty: write the name of a variable between the braces", shorten(name))
			}
		}
	}
	if depth > 0 {
		return fmt.Sprintf("{ in %s is never closed: braces hold the name of a variable, without blanks and operators", shorten(name))
	}
	return ""
}

// errorList turns faults into errors with lines and columns, in the order of
// their places, each place once.
func errorList(name, src string, faults []fault) ErrorList {
	slices.SortStableFunc(faults, func(a, b fault) int { return cmp.Compare(a.from, b.from) })
	faults = slices.CompactFunc(faults, func(a, b fault) bool { return a.from == b.from })
	faults = faults[:min(len(faults), maxFaults)]
	list := make(ErrorList, len(faults))
	for i, f := range faults {
		list[i] = &SyntaxError{
			Name: name, Pos: positionOf(src, f.from), End: positionOf(src, f.to), Msg: f.msg,
			line: lineAt(src, f.from), incomplete: f.incomplete, limit: f.limit,
		}
	}
	return list
}
