package karl

import "github.com/alecthomas/participle/v2/lexer"

const (
	maxArrows = 100     // candidates for the arrow of one loop that are tried
	maxTried  = 200_000 // tokens that may be parsed to find it
)

// loop parses a loop from its [ on.
//
// Which - begins the arrow only parsing can tell: the candidates are tried from
// left to right, but the sign of a number at the very start last, and the first
// that leaves a complete start and step is it. Almost always there is only one
// that can be, judged by its neighbours.
func (p *piece) loop(name *Name) Node {
	open := p.pos
	greater := p.tokens[open].Pos.Column
	closer, ok := p.open()
	if !ok {
		return nil
	}
	n := &Loop{Var: name, Through: p.tokens[closer].Type == tokenCloseBracket}
	if !p.arrow(n, open, greater) {
		p.close(closer)
		return nil
	}
	p.pos = greater + 1
	end, good := p.block(closer, false)
	if end == nil {
		if good {
			p.failAt(greater, closer+1, "loop of %s has no end behind its ->", name.Text)
		}
		end = faulty
	}
	n.Stop = end
	p.close(closer)
	for p.kind() == tokenOpenParen {
		if p.tokens[p.pos].Pos.Line == p.pos+1 && p.closes(p.pos, p.pos+1) {
			p.pos += 2
			continue
		}
		if n.Body = p.paren(); n.Body == nil {
			return nil
		}
		break
	}
	n.Span = Span{name.From, int32(p.tokenEnd(p.pos - 1))}
	return n
}

// arrow finds the arrow of the loop whose [ is the token open and whose last >
// is the token greater, and fills in start and step.
func (p *piece) arrow(n *Loop, open, greater int) bool {
	candidates, minus := p.arrows(open, greater)
	if len(candidates) == 0 {
		candidates = append(candidates, minus) // to learn what is wrong
	}
	if len(candidates) > 1 && p.groups == nil {
		p.groups = map[int]groupMemo{}
		defer func() { p.groups = nil }()
	}
	before, tried := len(p.faults), 0
	var faults []fault
	for i, at := range candidates {
		if tried += greater - open; i == maxArrows || i > 0 && tried > maxTried {
			p.faults = p.faults[:before]
			return p.failAt(open, greater+1, "too many - before the > of the loop of %s: put its start and step in parentheses", n.Var.Text)
		}
		if p.tryArrow(n, open, at, greater) {
			return true
		}
		if i == 0 {
			faults = append(faults, p.faults[before:]...)
		}
		p.faults = p.faults[:before]
	}
	p.faults = append(p.faults, faults...)
	return false
}

// arrows returns the tokens of a loop header that can begin its arrow, in the
// order to try them, and the last of those that contain a minus.
func (p *piece) arrows(open, greater int) (candidates []int, minus int) {
	sign := false // the header begins with the sign of a number
	for i := open + 1; i < greater; i++ {
		t := &p.tokens[i]
		if isOpener(t.Type) {
			i = t.Pos.Line
			continue
		}
		if t.Type != tokenSub && t.Type != tokenDec {
			continue
		}
		minus = i
		if len(candidates) > maxArrows || !p.couldBeArrow(open, i, greater) {
			continue
		}
		if i == open+1 && p.isSign(i) {
			sign = true
			continue
		}
		candidates = append(candidates, i)
	}
	if sign {
		candidates = append(candidates, open+1)
	}
	return candidates, minus
}

// couldBeArrow reports whether the tokens around a - allow that start ends
// before it and step begins behind it.
func (p *piece) couldBeArrow(open, at, greater int) bool {
	if before := p.tokens[at-1].Type; at > open+1 && !endsOperand(before) && before != tokenBoth && before != tokenLast {
		return false
	}
	if p.tokens[greater-1].Type == tokenSub || at == greater-1 {
		return at == greater-1 && p.tokens[at].Type == tokenSub
	}
	switch after := p.tokens[at+1].Type; after {
	case tokenSub, tokenAdd, tokenNot, tokenInc, tokenDec, tokenBoth, tokenLast:
		return true
	default:
		return beginsOperand(after)
	}
}

// tryArrow parses start and step as if the arrow began at a token.
func (p *piece) tryArrow(n *Loop, open, at, greater int) bool {
	trial := p.trial
	p.trial = true
	defer func() { p.trial = trial }()
	var ok bool
	p.pos = open + 1
	if n.Start, ok = p.block(at, false); !ok {
		return false
	}
	p.pos = at + 1
	decrement := p.tokens[at]
	if decrement.Type == tokenDec { // the arrow's - and a minus of the step
		p.pos = at
		p.tokens[at] = lexer.Token{Type: tokenSub, Value: "-", Pos: lexer.Position{Offset: decrement.Pos.Offset + 1}}
	}
	if n.Step, ok = p.block(greater, false); !ok {
		p.tokens[at] = decrement
	}
	return ok
}
