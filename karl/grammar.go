package karl

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// Parse parses a text under the default limits. The name stands before line and
// column in errors, and may be empty. An error is an [ErrorList] of up to 20
// faults, and there is no program then. Goroutines may parse at the same time.
func Parse(name, src string) (*Program, error) { return Parser{}.Parse(name, src) }

// grammar returns the participle parser. Its root is a participle.Parseable,
// because a grammar of struct tags costs ten to a hundred times as much.
var grammar = sync.OnceValue(func() *participle.Parser[piece] {
	return participle.MustBuild[piece](participle.Lexer(definition{}))
})

// Parse parses a text as [Parse] does, under the limits of p.
func (p Parser) Parse(name, src string) (*Program, error) {
	limits := p.limits()
	if len(src) > limits.MaxSource {
		msg := fmt.Sprintf("text of %d bytes, more than %d", len(src), limits.MaxSource)
		return nil, errorList(name, src, []fault{{msg: msg, limit: true}})
	}
	return parseScanner(newScanner(src, limits), name, src)
}

func parseScanner(s *scanner, name, src string) (*Program, error) {
	var stmts []Node
	var ops []Op
	var faults []fault
	for !s.done && len(faults) < maxFaults {
		tokens, err := lexer.Upgrade(s)
		if err != nil {
			return nil, err
		}
		s.finish(tokens)
		piece, err := grammar().ParseFromLexer(tokens)
		if err != nil {
			return nil, err
		}
		if len(stmts) == 0 {
			stmts, ops = piece.stmts, piece.ops
		} else {
			stmts, ops = append(stmts, piece.stmts...), append(ops, piece.ops...)
		}
		faults = append(faults, piece.faults...)
	}
	if s.fault != nil {
		// The parser saw the statement without its end.
		faults = slices.DeleteFunc(faults, func(f fault) bool { return f.from >= s.statement })
		faults = append(faults, *s.fault)
	}
	if len(faults) > 0 {
		return nil, errorList(name, src, faults)
	}
	return &Program{Name: name, Source: src, Body: sequence(stmts, ops)}, nil
}

// piece is the root of the grammar: a run of whole statements. It is what
// participle fills, and the parser's state while it does.
type piece struct {
	stmts []Node // the statements, ops[i] before stmts[i]
	ops   []Op

	faults []fault

	src      string
	tokens   []lexer.Token // of the piece, the EOF last
	pos, end int           // the next token, and the one behind the last of the range being parsed
	atEnd    bool          // no text follows the piece
	depth    int
	maxDepth int
	trial    bool              // parsing a bound of a loop: give up at the first fault
	groups   map[int]groupMemo // operands with brackets that a trial has parsed
	arena
}

// faulty stands for what could not be parsed, and has been reported.
var faulty Node = new(Literal)

// Parse implements participle.Parseable. Faults stay in p: an error returned
// would be wrapped into one with another place.
func (p *piece) Parse(lex *lexer.PeekingLexer) error {
	n := 0
	for ; !lex.Peek().EOF(); n++ {
		lex.Next()
	}
	p.tokens, p.end = lex.Range(0, lexer.RawCursor(n+1)), n
	eof := &p.tokens[n]
	p.src, p.maxDepth, p.atEnd = eof.Value, eof.Pos.Line, eof.Pos.Column != 0
	p.arena.chunk = min(n/4+1, 64)
	p.stmts, p.ops = make([]Node, 0, n/4+1), make([]Op, 0, n/4+1)
	p.statements(false)
	return nil
}

// kind returns the type of the next token, EOF at the end of the range.
func (p *piece) kind() lexer.TokenType {
	if p.pos < p.end {
		return p.tokens[p.pos].Type
	}
	return lexer.EOF
}

// span returns the place from the beginning of a token to the end of the one
// before the next.
func (p *piece) span(first int) Span {
	return Span{int32(p.tokens[first].Pos.Offset), int32(p.tokenEnd(p.pos - 1))}
}

func (p *piece) tokenEnd(i int) int { return p.tokens[i].Pos.Offset + len(p.tokens[i].Value) }

// statements parses statements up to p.end, or up to a comma if the list is one
// of arguments, and pushes them on p.stmts with the separator before each on
// p.ops. It reports whether all went well; in a trial it stops at a fault.
func (p *piece) statements(arguments bool) bool {
	op, comma := OpBoth, -1 // the separator before the next statement, and its token if it is a comma
	full, good := false, true
	for p.pos < p.end && (p.trial || len(p.faults) < maxFaults) {
		t := p.tokens[p.pos].Type
		switch {
		case t == tokenEither && arguments:
			p.lacking(comma)
			return good && comma < 0
		case isSeparator(t):
			good = p.lacking(comma) && good
			if op, comma = operators[t], -1; t == tokenEither {
				if comma = p.pos; !full {
					good = p.fail(p.pos, ", has no statement directly before it")
				}
			}
			full = false
			p.pos++
		default:
			first := p.pos
			n := p.statement()
			if n == nil {
				good, n = false, faulty
				if !p.trial {
					p.skip()
				}
			}
			if full = !isEmpty(n); full {
				p.stmts, p.ops = append(p.stmts, n), append(p.ops, op)
			} else if comma >= 0 {
				good = p.failAt(first, p.pos, "nothing stands in the parentheses, but , needs a statement on both sides")
			}
			comma = -1
		}
		if p.trial && !good {
			return false
		}
	}
	return p.lacking(comma) && good
}

// lacking reports a comma without a statement behind it; comma is its token, or -1.
func (p *piece) lacking(comma int) bool {
	return comma < 0 || p.failOpen(comma, ", has no statement directly after it")
}

// statement parses a statement up to a separator or the end of the range.
func (p *piece) statement() Node {
	n := p.expression(levels[tokenImplies])
	if n == nil || p.pos >= p.end || isSeparator(p.tokens[p.pos].Type) {
		return n
	}
	switch t := &p.tokens[p.pos]; {
	case t.Type == tokenBad:
		p.bad()
	case t.Type == tokenCloseParen || t.Type == tokenCloseBracket:
		p.stray()
	case t.Type == tokenOpenArray:
		p.fail(p.pos, "missing operator or ; between %s and [: only a variable has elements, name[index]", p.text(n))
	default:
		p.fail(p.pos, "missing operator or ; between %s and %s", p.text(n), t.Value)
	}
	return nil
}

// skip moves to the next separator outside brackets, or to the end of the range.
func (p *piece) skip() {
	for p.pos < p.end {
		switch t := &p.tokens[p.pos]; {
		case isSeparator(t.Type):
			return
		case !isOpener(t.Type):
			p.pos++
		case t.Pos.Line == 0: // never closed: all that follows is in it
			p.pos = p.end
		default:
			p.pos = t.Pos.Line + 1
		}
	}
}

// block parses the statements up to a token into one node, nil if there is none.
func (p *piece) block(end int, arguments bool) (Node, bool) {
	outer, base := p.end, len(p.stmts)
	p.end = end
	good := p.statements(arguments)
	p.end = outer
	n := sequence(p.stmts[base:], p.ops[base:])
	if s, ok := n.(*Sequence); ok {
		s.Stmts, s.Ops = slices.Clone(s.Stmts), slices.Clone(s.Ops)
	}
	p.stmts, p.ops = p.stmts[:base], p.ops[:base]
	return n, good
}

// sequence joins statements, where ops[i] stands before stmts[i].
func sequence(stmts []Node, ops []Op) Node {
	switch n := len(stmts); n {
	case 0:
		return nil
	case 1:
		return stmts[0]
	default:
		span := Span{int32(stmts[0].Pos()), int32(stmts[n-1].End())}
		return &Sequence{Span: span, Stmts: stmts, Ops: ops[1:]}
	}
}

// expression parses an expression of operators of a level or stronger. It
// returns nil after a fault.
func (p *piece) expression(level int8) Node {
	x := p.prefix()
	for x != nil && p.pos < p.end {
		at := p.pos
		t := p.tokens[at].Type
		if t < tokenImplies || levels[t] < level {
			return x
		}
		op := operators[t]
		if op > OpImplies && op <= OpDivAssign && !p.target(x, op) {
			return nil
		}
		p.pos++
		var y Node
		if op <= OpDivAssign {
			if !p.enter(at) {
				return nil
			}
			y = p.expression(levels[t])
			p.depth--
		} else {
			y = p.expression(levels[t] + 1)
		}
		if y == nil {
			return nil
		}
		if op != OpOr && isEmpty(y) {
			p.failAt(at, at+1, "nothing stands in the parentheses to the right of %s", op)
			return nil
		}
		span := Span{int32(x.Pos()), int32(y.End())}
		if op > OpImplies && op <= OpDivAssign {
			x = p.arena.assign(Assign{Span: span, Op: op, X: x, Y: y})
		} else {
			x = p.arena.binary(Binary{Span: span, Op: op, X: x, Y: y})
		}
	}
	return x
}

// target reports whether x can be assigned to.
func (p *piece) target(x Node, op Op) bool {
	switch n := Unparen(x).(type) {
	case *Name, *Index:
		return true
	case *Literal:
		if n == faulty {
			return true
		}
		if isReserved(n.Text) {
			return p.failNode(x, "%s is a reserved word and cannot be assigned", n.Text)
		}
	}
	return p.failNode(x, "cannot assign to %s: left of %s must be a variable or an element, name or name[index]", p.text(x), op)
}

// enter counts one level of nesting, which begins at a token.
func (p *piece) enter(at int) bool {
	if p.depth >= p.maxDepth {
		p.fail(at, "%s", tooDeep(p.maxDepth))
		p.faults[len(p.faults)-1].limit = true
		return false
	}
	p.depth++
	return true
}

// prefix parses prefix operators and their operand.
func (p *piece) prefix() Node {
	if p.pos >= p.end {
		p.missing()
		return nil
	}
	var op Op
	at := p.pos
	switch p.tokens[at].Type {
	case tokenSub:
		if p.isSign(at) {
			p.pos++
			return p.postfix(p.number(at))
		}
		op = OpNeg
	case tokenAdd:
		op = OpPlus
	case tokenNot:
		op = OpNot
	case tokenInc:
		op = OpInc
	case tokenDec:
		op = OpDec
	default:
		return p.postfix(p.operand())
	}
	if !p.enter(at) {
		return nil
	}
	p.pos++
	x := p.prefix()
	p.depth--
	if x == nil {
		return nil
	}
	if isEmpty(x) {
		p.failAt(at, at+1, "nothing stands in the parentheses after %s", op)
		return nil
	}
	span := Span{int32(p.tokens[at].Pos.Offset), int32(x.End())}
	if op == OpInc || op == OpDec {
		return p.arena.incDec(IncDec{Span: span, Op: op, X: x})
	}
	return &Unary{Span: span, Op: op, X: x}
}

// isSign reports whether token i is a - with a number directly behind it.
func (p *piece) isSign(i int) bool {
	return p.tokens[i].Type == tokenSub && i+1 < p.end && isNumber(p.tokens[i+1].Type) &&
		p.tokens[i+1].Pos.Offset == p.tokens[i].Pos.Offset+1
}

// postfix parses ++ and -- behind an operand.
func (p *piece) postfix(x Node) Node {
	t := p.kind()
	if x == nil || t != tokenInc && t != tokenDec {
		return x
	}
	op := OpInc
	if t == tokenDec {
		op = OpDec
	}
	switch x.(type) {
	case *Name, *Index:
		p.pos++
		span := Span{int32(x.Pos()), int32(p.tokenEnd(p.pos - 1))}
		n := p.arena.incDec(IncDec{Span: span, Op: op, Postfix: true, X: x})
		if t := p.kind(); (t == tokenInc || t == tokenDec) && !p.operandFollows(p.pos+1) {
			p.fail(p.pos, "%s cannot follow %s: only a variable or an element can be counted up and down", p.tokens[p.pos].Value, p.text(n))
			return nil
		}
		return n
	}
	if p.operandFollows(p.pos + 1) {
		sign := op.String()[:1]
		p.fail(p.pos, "%s cannot follow %s; if two operators are meant, write %s %s", op, p.text(x), sign, sign)
	} else {
		p.fail(p.pos, "%s cannot follow %s: only a variable or an element can be counted up and down", op, p.text(x))
	}
	return nil
}

// operandFollows reports whether an operand begins with token i.
func (p *piece) operandFollows(i int) bool { return i < p.end && beginsOperand(p.tokens[i].Type) }

// isEmpty reports whether n is parentheses with no statement in them.
func isEmpty(n Node) bool {
	paren, ok := n.(*Paren)
	return ok && paren.X == nil
}

func isReserved(name string) bool {
	switch name {
	case "true", "false", "nan", "inf":
		return true
	}
	return false
}

// text returns the source text of a node for a message, cut if it is long.
func (p *piece) text(n Node) string { return shorten(p.src[n.Pos():n.End()]) }

func shorten(s string) string {
	const most = 30
	s = strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "?")
	if r := []rune(s); len(r) > most {
		return string(r[:most/2]) + "…" + string(r[len(r)-most/2:])
	}
	return s
}
