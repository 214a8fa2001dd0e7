package karl

import (
	"math"
	"strconv"

	"github.com/alecthomas/participle/v2/lexer"
)

// groupMemo is what an operand with brackets was parsed to. It does not depend
// on the range that the operand stands in, so the trials of nested loop headers
// parse each operand once.
type groupMemo struct {
	node   Node
	next   int
	faults []fault
}

// operand parses an operand without prefix operators and ++ or -- behind it.
func (p *piece) operand() Node {
	at := p.pos
	t := &p.tokens[at]
	switch t.Type {
	case tokenName:
		if at+1 >= p.end || !isOpener(p.tokens[at+1].Type) {
			p.pos++
			if n := len(t.Value); n >= 3 && n <= 5 && isReserved(t.Value) {
				return p.reserved(t)
			}
			return p.arena.name(Name{Span: p.span(at), Text: t.Value})
		}
	case tokenInteger, tokenDouble:
		return p.number(at)
	case tokenString:
		p.pos++
		value := String(t.Value[1 : len(t.Value)-1])
		return p.arena.literal(Literal{Span: p.span(at), Value: value, Text: t.Value})
	case tokenBad:
		p.bad()
		return nil
	case tokenSystem, tokenOpenParen, tokenOpenArray:
	default:
		p.missing()
		return nil
	}
	trial := p.trial
	p.trial = false
	defer func() { p.trial = trial }()
	if p.groups == nil {
		return p.group()
	}
	m, ok := p.groups[at]
	if !ok {
		before := len(p.faults)
		m.node = p.group()
		m.next, m.faults = p.pos, append([]fault(nil), p.faults[before:]...)
		p.faults = p.faults[:before]
		p.groups[at] = m
	}
	p.pos = m.next
	p.faults = append(p.faults, m.faults...)
	return m.node
}

// group parses an operand that has brackets. Faults between the brackets are
// reported, but only those outside make it return nil.
func (p *piece) group() Node {
	at := p.pos
	t := &p.tokens[at]
	switch t.Type {
	case tokenOpenParen:
		if n := p.paren(); n != nil {
			return n
		}
		return nil
	case tokenOpenArray:
		elems, ok := p.list("element")
		if !ok {
			return nil
		}
		return &Array{Span: p.span(at), Elems: elems}
	case tokenSystem:
		return p.systemCall()
	}
	name := t.Value
	if isReserved(name) {
		what := "called"
		if p.tokens[at+1].Type != tokenOpenParen {
			what = "indexed"
		}
		p.failAt(at, at+1, "%s is a reserved word and cannot be %s", name, what)
		return nil
	}
	p.pos++
	switch p.tokens[p.pos].Type {
	case tokenOpenParen:
		args, ok := p.list("argument")
		if !ok {
			return nil
		}
		return &Call{Span: p.span(at), Name: name, Args: args}
	case tokenOpenIndex:
		x := p.arena.name(Name{Span: p.span(at), Text: name})
		open := p.pos
		closer, ok := p.open()
		if !ok {
			return nil
		}
		index, _ := p.block(closer, false)
		p.close(closer)
		if index == nil {
			p.failAt(open, p.pos, "%s has no index between [ and ]", name)
			index = faulty
		}
		return &Index{Span: p.span(at), X: x, At: index}
	default: // tokenOpenLoop: a [ behind a name begins no array literal
		return p.loop(p.arena.name(Name{Span: p.span(at), Text: name}))
	}
}

// open checks the opening bracket at p.pos and moves behind it. It returns the
// token that closes it. Every open has a close.
func (p *piece) open() (closer int, ok bool) {
	at := p.pos
	t := &p.tokens[at]
	if closer = t.Pos.Line; closer == 0 {
		p.unclosed(at)
		return 0, false
	}
	if !p.closes(at, closer) {
		p.mismatch(at, closer)
		return 0, false
	}
	if !p.enter(at) {
		return 0, false
	}
	p.pos++
	return closer, true
}

func (p *piece) close(closer int) {
	p.depth--
	p.pos = closer + 1
}

// closes reports whether the token closer is the right one for an opener.
func (p *piece) closes(opener, closer int) bool {
	switch p.tokens[opener].Type {
	case tokenOpenParen:
		return p.tokens[closer].Type == tokenCloseParen
	case tokenOpenLoop:
		return true
	}
	return p.tokens[closer].Type == tokenCloseBracket
}

// paren parses parentheses, nil after a fault of its own.
func (p *piece) paren() *Paren {
	at := p.pos
	closer, ok := p.open()
	if !ok {
		return nil
	}
	x, _ := p.block(closer, false)
	p.close(closer)
	return &Paren{Span: p.span(at), X: x}
}

// list parses arguments or elements with their brackets.
func (p *piece) list(what string) (nodes []Node, ok bool) {
	closer, ok := p.open()
	if !ok {
		return nil, false
	}
	base := len(p.stmts)
	for p.pos < closer && len(p.faults) < maxFaults {
		n, good := p.block(closer, true)
		if n == nil {
			if good {
				p.failAt(p.pos, p.pos+1, "empty %s before %s", what, p.tokens[p.pos].Value)
			}
			n = faulty
		}
		p.stmts, p.ops = append(p.stmts, n), append(p.ops, 0)
		p.pos++ // the comma or the closer
	}
	if n := len(p.stmts) - base; n > 0 {
		nodes = append(make([]Node, 0, n), p.stmts[base:]...)
		p.stmts, p.ops = p.stmts[:base], p.ops[:base]
	}
	p.close(closer)
	return nodes, true
}

func (p *piece) reserved(t *lexer.Token) Node {
	n := Literal{Span: p.span(p.pos - 1), Text: t.Value}
	switch t.Value {
	case "true":
		n.Value = Int(1)
	case "false":
		n.Value = Int(0)
	case "nan":
		n.Value = Float(math.NaN())
	case "inf":
		n.Value = Float(math.Inf(1))
	}
	return p.arena.literal(n)
}

// number parses the number at p.pos into a literal that begins at token first,
// which is the number or a minus sign directly before it.
func (p *piece) number(first int) Node {
	t := &p.tokens[p.pos]
	p.pos++
	n := Literal{Span: p.span(first)}
	n.Text = p.src[n.From:n.To]
	if t.Type == tokenInteger && len(n.Text) <= 18 {
		i := int64(0)
		for _, c := range []byte(t.Value) {
			i = i*10 + int64(c-'0')
		}
		if first < p.pos-1 {
			i = -i
		}
		n.Value = Int(i)
		return p.arena.literal(n)
	}
	if t.Type == tokenInteger {
		i, err := strconv.ParseInt(n.Text, 10, 64)
		if err != nil {
			p.failAt(first, p.pos, "%s is out of the range of integers; write %s.0 for a double", shorten(n.Text), shorten(n.Text))
			return nil
		}
		n.Value = Int(i)
		return p.arena.literal(n)
	}
	f, _ := strconv.ParseFloat(n.Text, 64) // the lexer knows that it is a number; out of range gives inf
	if math.IsInf(f, 0) {
		f = math.Copysign(math.MaxFloat64, f)
	}
	n.Value = Float(f)
	return p.arena.literal(n)
}

// arena allocates the nodes that programs have most of, many at a time.
type arena struct {
	chunk    int
	names    []Name
	literals []Literal
	binaries []Binary
	assigns  []Assign
	incDecs  []IncDec
}

func allocate[T any](slab *[]T, chunk int, node T) *T {
	if len(*slab) == cap(*slab) {
		*slab = make([]T, 0, max(chunk, 1))
	}
	*slab = append(*slab, node)
	return &(*slab)[len(*slab)-1]
}

func (a *arena) name(n Name) *Name          { return allocate(&a.names, a.chunk, n) }
func (a *arena) literal(n Literal) *Literal { return allocate(&a.literals, a.chunk, n) }
func (a *arena) binary(n Binary) *Binary    { return allocate(&a.binaries, a.chunk, n) }
func (a *arena) assign(n Assign) *Assign    { return allocate(&a.assigns, a.chunk, n) }
func (a *arena) incDec(n IncDec) *IncDec    { return allocate(&a.incDecs, a.chunk, n) }
