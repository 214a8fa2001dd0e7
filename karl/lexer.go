package karl

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/participle/v2/lexer"
)

// pieceSize is the number of bytes after which a text is cut at the next ;
// outside brackets. participle copies its tokens each time their slice grows,
// and small slices are cheap.
const pieceSize = 1 << 10

// Classes of bytes.
const (
	classBlank  = 1 << iota
	classDigit  // 0-9
	classLetter // a-z A-Z _
	classDot
	classBrace // { }

	className = classDigit | classLetter | classDot | classBrace
)

var classes = func() (c [256]uint8) {
	for _, b := range " \t\r\n" {
		c[b] = classBlank
	}
	for b := '0'; b <= '9'; b++ {
		c[b] = classDigit
	}
	for b := 'a'; b <= 'z'; b++ {
		c[b], c[b-'a'+'A'] = classLetter, classLetter
	}
	c['_'], c['.'], c['{'], c['}'] = classLetter, classDot, classBrace, classBrace
	return c
}()

// fault is a SyntaxError before its lines and columns are known.
type fault struct {
	from, to   int // byte offsets
	msg        string
	incomplete bool
	limit      bool // of the parser
}

// scanner turns a text into tokens, piece by piece: it ends a piece with an EOF
// token, and the next piece begins when its next token is asked for.
//
// Three things about a piece are only known at its end, and participle keeps
// the tokens by then: the closers of brackets, which of the brackets are loop
// headers, and whether the text ends. So scanner.finish writes them into the
// tokens, where the place of a token leaves room; see there.
type scanner struct {
	src    string
	limits Parser

	pos       int             // offset of the next byte
	piece     int             // offset of the piece's first byte
	count     int             // tokens of the piece so far
	statement int             // offset of the first byte after the last ; outside brackets
	since     int             // tokens since then
	last      lexer.TokenType // type of the token before
	open      []bracket       // brackets not closed yet
	closed    []bracket       // brackets of the piece that were closed
	done      bool            // the text is read
	fault     *fault          // why the text was not read to its end
}

// bracket is an opening bracket. Its numbers are indices of tokens.
type bracket struct {
	opener, closer int32
	named          bool  // it is a [ after a name
	minus          bool  // - or -- stood directly in it
	greater        int32 // the last > that stood directly in it, after a -
}

func newScanner(src string, limits Parser) *scanner {
	return &scanner{src: src, limits: limits}
}

// Next implements lexer.Lexer. It returns no errors: what is no token becomes a
// tokenBad, and a fault that ends the text is left in s.fault.
func (s *scanner) Next() (lexer.Token, error) {
	s.blanks()
	from := s.pos
	if from >= len(s.src) || s.done {
		s.done = true
		return s.end(), nil
	}
	t := s.scan()
	switch {
	case s.done:
		return s.end(), nil
	case t == tokenBoth && len(s.open) == 0:
		s.statement, s.since = s.pos, 0
		if s.pos-s.piece >= pieceSize {
			eof := s.end()
			s.piece, s.last = s.pos, 0
			return eof, nil
		}
	default:
		if s.since++; s.since > s.limits.MaxTokens {
			s.stop(from, s.pos, false, "statement of more than %d tokens: end it with ; or split it", s.limits.MaxTokens)
			s.fault.limit = true
			return s.end(), nil
		}
	}
	s.count++
	s.last = t
	return lexer.Token{Type: t, Value: s.src[from:s.pos], Pos: lexer.Position{Offset: from}}, nil
}

func (s *scanner) end() lexer.Token {
	return lexer.Token{Type: lexer.EOF, Pos: lexer.Position{Offset: s.pos}}
}

// finish gives the tokens of the piece just read what the parser must know: an
// opening bracket gets the index of its closer as its line (0 if it has none)
// and that of the > of its loop arrow as its column, and the EOF token gets the
// whole text as its value, the limit of nesting as its line, and a column of 1
// if the text ends here.
func (s *scanner) finish(lex *lexer.PeekingLexer) {
	tokens := lex.Range(0, lexer.RawCursor(s.count+1))
	for _, b := range s.closed {
		t := &tokens[b.opener]
		t.Pos.Line = int(b.closer)
		if b.named && b.greater > 0 {
			t.Type = tokenOpenLoop
			t.Pos.Column = int(b.greater)
		}
	}
	eof := &tokens[s.count]
	eof.Value, eof.Pos.Line = s.src, s.limits.MaxNesting
	if s.done {
		eof.Pos.Column = 1
	}
	s.closed, s.count = s.closed[:0], 0
}

// stop ends the text with a fault.
func (s *scanner) stop(from, to int, incomplete bool, format string, args ...any) {
	s.done = true
	s.fault = &fault{from: from, to: to, msg: fmt.Sprintf(format, args...), incomplete: incomplete}
}

// blanks skips white space and comments.
func (s *scanner) blanks() {
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case classes[c] == classBlank:
			s.pos++
		case c == '/' && s.next(1) == '/':
			s.skipTo("\n", s.pos+2)
		case c == '/' && s.next(1) == '*':
			s.skipTo("*/", s.pos+1)
		default:
			return
		}
	}
}

// skipTo moves behind the first mark at or after an offset, or to the end.
func (s *scanner) skipTo(mark string, from int) {
	if i := strings.Index(s.src[from:], mark); i >= 0 {
		s.pos = from + i + len(mark)
	} else {
		s.pos = len(s.src)
	}
}

// next returns the byte n behind the current one, 0 behind the end.
func (s *scanner) next(n int) byte {
	if s.pos+n < len(s.src) {
		return s.src[s.pos+n]
	}
	return 0
}

// scan moves over one token and returns its type.
func (s *scanner) scan() lexer.TokenType {
	c, next := s.src[s.pos], s.next(1)
	switch class := classes[c]; {
	case class == classDigit, class == classDot && classes[next] == classDigit:
		return s.number()
	case class&className != 0:
		return s.name()
	}
	switch c {
	case '\'', '"':
		return s.string(c)
	case '#':
		from := s.pos
		s.pos++
		s.name()
		if s.pos == from+1 {
			return tokenBad
		}
		return tokenSystem
	case '(':
		return s.opener(tokenOpenParen)
	case '[':
		if s.last == tokenName {
			return s.opener(tokenOpenIndex)
		}
		return s.opener(tokenOpenArray)
	case ')':
		return s.closer(tokenCloseParen)
	case ']':
		return s.closer(tokenCloseBracket)
	case ';':
		return s.oneOf('>', tokenLast, tokenBoth)
	case ',':
		return s.take(1, tokenEither)
	case '+':
		if next == '=' {
			return s.take(2, tokenAddAssign)
		}
		return s.oneOf('+', tokenInc, tokenAdd)
	case '-':
		if next == '=' {
			return s.take(2, tokenSubAssign)
		}
		if len(s.open) > 0 {
			s.open[len(s.open)-1].minus = true
		}
		return s.oneOf('-', tokenDec, tokenSub)
	case '*':
		return s.oneOf('=', tokenMulAssign, tokenMul)
	case '/':
		return s.oneOf('=', tokenDivAssign, tokenDiv)
	case '%':
		return s.oneOf('=', tokenBad, tokenRem)
	case '=':
		if next == '>' {
			return s.take(2, tokenImplies)
		}
		return s.oneOf('=', tokenEqual, tokenAssign)
	case '!':
		return s.oneOf('=', tokenNotEqual, tokenNot)
	case '<':
		if next == '>' {
			return s.take(2, tokenBad)
		}
		return s.oneOf('=', tokenLessEqual, tokenLess)
	case '>':
		if next != '=' && len(s.open) > 0 {
			if b := &s.open[len(s.open)-1]; b.minus {
				b.greater = int32(s.count)
			}
		}
		return s.oneOf('=', tokenGreaterEqual, tokenGreater)
	case '&':
		return s.oneOf('&', tokenAnd, tokenBad)
	case '|':
		return s.oneOf('|', tokenOr, tokenBad)
	}
	_, size := utf8.DecodeRuneInString(s.src[s.pos:])
	return s.take(size, tokenBad)
}

func (s *scanner) take(n int, t lexer.TokenType) lexer.TokenType {
	s.pos += n
	return t
}

// oneOf takes two bytes and returns two if the second byte is c, else it takes
// one and returns one.
func (s *scanner) oneOf(c byte, two, one lexer.TokenType) lexer.TokenType {
	if s.next(1) == c {
		return s.take(2, two)
	}
	return s.take(1, one)
}

func (s *scanner) opener(t lexer.TokenType) lexer.TokenType {
	if len(s.open) >= s.limits.MaxNesting {
		s.stop(s.pos, s.pos+1, false, "%s", tooDeep(s.limits.MaxNesting))
		s.fault.limit = true
		return t
	}
	s.open = append(s.open, bracket{opener: int32(s.count), named: t == tokenOpenIndex})
	return s.take(1, t)
}

func (s *scanner) closer(t lexer.TokenType) lexer.TokenType {
	if i := len(s.open) - 1; i >= 0 {
		b := s.open[i]
		b.closer = int32(s.count)
		s.open, s.closed = s.open[:i], append(s.closed, b)
	}
	return s.take(1, t)
}

func (s *scanner) string(quote byte) lexer.TokenType {
	from := s.pos
	for i := from + 1; ; i++ {
		n := strings.IndexByte(s.src[i:], quote)
		if n < 0 {
			s.stop(from, from+1, true, "string is never closed: no %c follows that has no backslash before it", quote)
			return tokenBad
		}
		if i += n; s.src[i-1] != '\\' {
			s.pos = i + 1
			return tokenString
		}
	}
}

func (s *scanner) name() lexer.TokenType {
	from, all := s.pos, uint8(0)
	for s.pos < len(s.src) && classes[s.src[s.pos]]&className != 0 {
		all |= classes[s.src[s.pos]]
		s.pos++
	}
	if all&classBrace != 0 && braceFault(s.src[from:s.pos]) != "" {
		return tokenBad
	}
	return tokenName
}

// number scans a number, and with it whatever else of a name follows directly,
// which is bad.
func (s *scanner) number() lexer.TokenType {
	t := tokenInteger
	digits := func() (n int) {
		for ; classes[s.next(0)] == classDigit; n++ {
			s.pos++
		}
		return n
	}
	digits()
	if s.next(0) == '.' {
		t = tokenDouble
		s.pos++
		digits()
	}
	if c := s.next(0); c == 'e' || c == 'E' {
		t = tokenDouble
		s.pos++
		if c := s.next(0); (c == '+' || c == '-') && classes[s.next(1)] == classDigit {
			s.pos++
		}
		if digits() == 0 {
			t = tokenBad
		}
	}
	for classes[s.next(0)]&className != 0 {
		s.pos++
		t = tokenBad
	}
	return t
}
