package karl

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// String returns the program as text, on one line, with parentheses only where
// the tree has them or needs them. Parsing the text of a parsed program gives
// the same tree. Comments and empty statements are not in the tree.
func (p *Program) String() string {
	if p.Body == nil {
		return ""
	}
	return Print(p.Body)
}

// Print returns a node as text, as [Program.String] does for a program. In a
// tree that was not made by [Parse] some values cannot be written as literals:
// a string that ends with a backslash, a file and an empty array.
func Print(n Node) string {
	var p printer
	p.node(n)
	return string(p.buf)
}

// printer writes nodes as tokens. It keeps track of what the tokens would be
// taken for where that depends on their neighbours: of a minus before a number
// or another minus, and of - and > directly in the brackets behind a name.
type printer struct {
	buf   []byte
	sign  byte // the + or - just written as a prefix; 'a' for the - of an arrow
	after after
	in    brackets
}

// after says what the last token was.
type after uint8

const (
	afterSeparator after = iota // ; or ;> or nothing
	afterOperator
	afterOperand
	afterName      // a name or element, an operand that can be counted
	afterDecrement // a -- behind a name
)

// brackets says which tokens stand directly in the innermost brackets.
type brackets struct {
	from    int  // where their contents begin in the text
	minus   bool // a - or --
	split   bool // a - or -- that could begin the arrow of a loop: what is before it is complete
	greater bool // a >
	arrow   bool // a > behind a -
}

// level returns how strongly the node holds its parts together.
func level(n Node) int {
	switch n := n.(type) {
	case *Sequence:
		return OpBoth.precedence()
	case *Binary:
		return n.Op.precedence()
	case *Assign:
		return n.Op.precedence()
	case *Unary:
		return n.Op.precedence()
	case *IncDec:
		if !n.Postfix {
			return n.Op.precedence()
		}
	case *Literal:
		if s := n.Value.Kind(); n.Text == "" && s.IsString() {
			if _, ok := quote(n.Value.text()); !ok {
				return OpAdd.precedence()
			}
		}
	}
	return operandLevel
}

// operandLevel is the level of an operand that needs no parentheses anywhere.
const operandLevel = 9

// part writes a node, in parentheses if it is weaker than a level.
func (p *printer) part(n Node, least int) {
	if level(n) < least {
		p.parens(n)
	} else {
		p.node(n)
	}
}

func (p *printer) node(n Node) {
	switch n := n.(type) {
	case *Literal:
		p.literal(n)
	case *Name:
		p.operand(n.Text)
		p.after = afterName
	case *Index:
		p.operand(n.X.Text)
		outer := p.open('[')
		p.node(n.At)
		if p.in.arrow {
			p.wrap(p.in.from, len(p.buf))
		}
		p.close(']', outer)
		p.after = afterName
	case *Paren:
		p.parens(n.X)
	case *Unary:
		p.prefix(n.Op)
		p.part(n.X, n.Op.precedence())
	case *IncDec:
		if n.Postfix {
			p.part(n.X, operandLevel)
			p.write(n.Op.String())
			if p.after = afterOperand; n.Op == OpDec {
				p.in.minus = true
				p.after = afterDecrement
			}
		} else {
			p.prefix(n.Op)
			p.part(n.X, n.Op.precedence())
		}
	case *Binary:
		p.binary(n)
	case *Assign:
		p.part(n.X, operandLevel)
		p.infix(n.Op)
		p.part(n.Y, n.Op.precedence())
	case *Sequence:
		for i, stmt := range n.Stmts {
			if i > 0 {
				p.separator(n.Ops[i-1])
			}
			p.part(stmt, OpImplies.precedence())
		}
	case *Array:
		p.list('[', n.Elems, ']')
	case *Call:
		p.operand(n.Name)
		p.list('(', n.Args, ')')
	case *SystemCall:
		p.operand("#" + n.Name)
		p.list('(', n.Args, ')')
	case *Loop:
		p.loop(n)
	}
}

// binary writes a chain of binary operators without going down its left side.
func (p *printer) binary(n *Binary) {
	chain := []*Binary{n}
	for {
		x, ok := n.X.(*Binary)
		if !ok || level(x) < leftLevel(n) {
			break
		}
		chain = append(chain, x)
		n = x
	}
	p.part(n.X, leftLevel(n))
	for _, n := range slices.Backward(chain) {
		p.infix(n.Op)
		least := n.Op.precedence()
		if n.Op != OpImplies {
			least++
		}
		p.part(n.Y, least)
	}
}

// leftLevel is the least level of n's left side.
func leftLevel(n *Binary) int {
	if n.Op == OpImplies {
		return n.Op.precedence() + 1
	}
	return n.Op.precedence()
}

func (p *printer) loop(n *Loop) {
	p.operand(n.Var.Text)
	outer := p.open('[')
	if n.Start != nil {
		p.node(n.Start)
	}
	if n.Step == nil {
		p.write("->")
	} else {
		p.step(n)
	}
	p.in.greater = false
	p.after = afterSeparator
	stop := len(p.buf)
	p.node(n.Stop)
	if p.in.greater {
		p.wrap(stop, len(p.buf))
	}
	closer := byte(')')
	if n.Through {
		closer = ']'
	}
	p.close(closer, outer)
	if n.Body != nil {
		p.write(" ")
		if n.Body.X == nil {
			p.write("(;)")
		} else {
			p.node(n.Body)
		}
	}
	p.after = afterOperand
}

// step writes the arrow of a loop with its step, behind its start, and what it
// takes to keep another - from being read as the arrow's.
func (p *printer) step(n *Loop) {
	from, start := p.in.from, len(p.buf)
	split := p.in.split || p.after == afterDecrement
	last := p.after
	if n.Start != nil {
		p.write(" ")
	}
	p.write("-")
	if !split {
		p.sign = 'a'
	}
	step := len(p.buf)
	p.after = afterOperator
	p.in.minus = false
	p.node(n.Step)
	first := p.buf[step]
	switch {
	case n.Start == nil && p.in.minus && classes[first]&(classDigit|classDot) != 0:
		// Without a blank, -1 would be taken for the start.
		p.buf = slices.Insert(p.buf, step, ' ')
	case split && first == '-':
		// With -- for the arrow's - and the step's, all that an earlier - splits
		// off has a -- in its middle, which is a fault unless it counts a name or
		// is a prefix. A step that begins with -- would lose one of them.
		rest := string(p.buf[step+1 : min(step+3, len(p.buf))])
		next := strings.TrimLeft(rest, " ")[0]
		if rest[0] == '-' || last == afterDecrement || last == afterName && (next == '-' || next == '+') {
			p.buf = slices.Insert(p.buf, step, ' ')
			p.wrap(from, start)
		}
	case split:
		p.wrap(from, start)
	}
	p.write("> ")
}

func (p *printer) parens(n Node) {
	outer := p.open('(')
	if n != nil {
		p.node(n)
	}
	p.close(')', outer)
}

// list writes arguments or elements, in which a comma needs parentheses.
func (p *printer) list(opener byte, nodes []Node, closer byte) {
	outer := p.open(opener)
	for i, n := range nodes {
		if i > 0 {
			p.separator(OpEither)
		}
		if s, ok := n.(*Sequence); ok && slices.Contains(s.Ops, OpEither) {
			p.parens(n)
		} else {
			p.node(n)
		}
	}
	p.close(closer, outer)
}

func (p *printer) literal(n *Literal) {
	if n.Text != "" {
		p.operand(n.Text)
		return
	}
	switch v := n.Value; v.Kind() {
	case KindInteger:
		p.operand(strconv.FormatInt(int64(v.bits), 10))
	case KindDouble:
		p.double(v.float())
	case KindIntegers:
		outer := p.open('[')
		for i, e := range v.ints() {
			if i > 0 {
				p.separator(OpEither)
			}
			p.operand(strconv.FormatInt(e, 10))
		}
		p.close(']', outer)
	case KindDoubles:
		outer := p.open('[')
		for i, e := range v.floats() {
			if i > 0 {
				p.separator(OpEither)
			}
			p.double(e)
		}
		p.close(']', outer)
	case KindUninitialized:
		p.operand("[]")
	default:
		p.string(v.text())
	}
}

func (p *printer) double(f float64) {
	switch {
	case math.IsNaN(f):
		p.operand("nan")
	case math.IsInf(f, 1):
		p.operand("inf")
	case math.IsInf(f, -1):
		p.prefix(OpNeg)
		p.operand("inf")
	default:
		s := strconv.FormatFloat(f, 'g', -1, 64)
		if !strings.ContainsAny(s, ".e") {
			s += ".0"
		}
		p.operand(s)
	}
}

// string writes a string as a literal, or as a sum of them if it has both
// quotes.
func (p *printer) string(s string) {
	if text, ok := quote(s); ok {
		p.operand(text)
		return
	}
	quotes := "'\""
	for first := true; s != ""; first = false {
		// The part up to the next quote of one sort can stand in quotes of that sort.
		c := quotes[0]
		if s[0] == c {
			c = quotes[1]
		}
		n := strings.IndexByte(s, c)
		if n < 0 {
			n = len(s)
		}
		if !first {
			p.infix(OpAdd)
		}
		p.operand(string(c) + s[:n] + string(c))
		s = s[n:]
	}
}

// quote returns s as a string literal, and whether there is one.
func quote(s string) (string, bool) {
	for _, q := range []string{"'", "\""} {
		if text := q + s + q; closesOnlyAtEnd(text) {
			return text, true
		}
	}
	return "", false
}

// closesOnlyAtEnd reports whether text is one whole string literal.
func closesOnlyAtEnd(text string) bool {
	for i := 1; ; i++ {
		i += strings.IndexByte(text[i:], text[0])
		if text[i-1] != '\\' {
			return i == len(text)-1
		}
		if i == len(text)-1 {
			return false
		}
	}
}

// operand writes a token that is a whole operand, or begins one.
func (p *printer) operand(s string) {
	switch c := s[0]; {
	case c == '-':
		if len(p.buf) == p.in.from {
			p.in.minus = true // tried last as an arrow
		} else {
			p.mark(OpNeg)
		}
		if p.sign == '-' || p.sign == 'a' {
			p.write(" ")
		}
	case p.sign == '-' && (classes[c] == classDigit || c == '.' && len(s) > 1 && classes[s[1]] == classDigit):
		p.write(" ")
	}
	p.write(s)
	p.after = afterOperand
}

func (p *printer) prefix(op Op) {
	p.mark(op)
	s := op.String()
	if p.sign == s[0] || p.sign == 'a' && s[0] == '-' {
		p.write(" ")
	}
	p.write(s)
	if op == OpNeg || op == OpPlus {
		p.sign = s[0]
	}
	p.after = afterOperator
}

func (p *printer) infix(op Op) {
	p.mark(op)
	p.write(" ")
	p.write(op.String())
	p.write(" ")
	p.after = afterOperator
}

func (p *printer) separator(op Op) {
	switch op {
	case OpBoth:
		p.write("; ")
	case OpEither:
		p.write(", ")
	default:
		p.write(" ;> ")
	}
	p.after = afterSeparator
	if op == OpEither {
		p.after = afterOperator
	}
}

// mark notes an operator that is about to be written.
func (p *printer) mark(op Op) {
	if p.after == afterDecrement && (op == OpAdd || op == OpSub) {
		p.in.split = true // op could be a prefix
	}
	switch op {
	case OpSub, OpNeg, OpDec:
		p.in.minus = true
		p.in.split = p.in.split || p.after != afterOperator
	case OpGreater:
		p.in.greater = true
		p.in.arrow = p.in.arrow || p.in.minus
	}
}

func (p *printer) open(c byte) (outer brackets) {
	p.write(string(c))
	outer, p.in = p.in, brackets{from: len(p.buf)}
	p.after = afterSeparator
	return outer
}

func (p *printer) close(c byte, outer brackets) {
	p.in = outer
	p.write(string(c))
	p.after = afterOperand
}

// wrap puts parentheses around a part of the text.
func (p *printer) wrap(from, to int) {
	p.buf = slices.Insert(p.buf, to, ')')
	p.buf = slices.Insert(p.buf, from, '(')
	p.in.minus, p.in.split, p.in.greater, p.in.arrow = false, false, false, false
}

func (p *printer) write(s string) {
	p.buf = append(p.buf, s...)
	p.sign = 0
}
