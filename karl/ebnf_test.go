package karl

import (
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/alecthomas/participle/v2/lexer"
)

// ebnf is a part of a grammar: one of the kinds below.
type ebnf struct {
	kind  byte   // '|' alternatives, ' ' sequence, '[' option, '{' repetition, '"' literal, 'n' name, '?' words, '-' range
	text  string // of a literal, name or words; the first and last byte of a range
	parts []*ebnf
}

type ebnfGrammar struct {
	rules map[string]*ebnf
	least map[string]int // rules to go through to come to a sentence
}

var ebnfToken = regexp.MustCompile(`(?s)\(\*.*?\*\)|"[^"]*"|'[^']*'|\?[^?]*\?|[A-Za-z_0-9]+|…|[^\s]`)

// readGrammar reads doc/grammar.ebnf.
func readGrammar(t testing.TB) *ebnfGrammar {
	t.Helper()
	src, err := os.ReadFile("doc/grammar.ebnf")
	if err != nil {
		t.Fatal(err)
	}
	var tokens []string
	for _, token := range ebnfToken.FindAllString(string(src), -1) {
		if !strings.HasPrefix(token, "(*") {
			tokens = append(tokens, token)
		}
	}
	next := func() string {
		token := tokens[0]
		tokens = tokens[1:]
		return token
	}
	var alternatives func(closer string) *ebnf
	alternatives = func(closer string) *ebnf {
		all := &ebnf{kind: '|'}
		sequence := &ebnf{kind: ' '}
		for {
			switch token := next(); {
			case token == closer || token == "|":
				all.parts = append(all.parts, sequence)
				sequence = &ebnf{kind: ' '}
				if token == closer {
					return all
				}
			case token == "(":
				sequence.parts = append(sequence.parts, alternatives(")"))
			case token == "[":
				sequence.parts = append(sequence.parts, &ebnf{kind: '[', parts: []*ebnf{alternatives("]")}})
			case token == "{":
				sequence.parts = append(sequence.parts, &ebnf{kind: '{', parts: []*ebnf{alternatives("}")}})
			case token == "…":
				first := sequence.parts[len(sequence.parts)-1]
				first.kind, first.text = '-', first.text+strings.Trim(next(), `"`)
			case token[0] == '"' || token[0] == '\'':
				sequence.parts = append(sequence.parts, &ebnf{kind: '"', text: token[1 : len(token)-1]})
			case token[0] == '?':
				sequence.parts = append(sequence.parts, &ebnf{kind: '?', text: strings.Trim(token, "? ")})
			default:
				sequence.parts = append(sequence.parts, &ebnf{kind: 'n', text: token})
			}
		}
	}
	g := &ebnfGrammar{map[string]*ebnf{}, map[string]int{}}
	for len(tokens) > 0 {
		name := next()
		if next() != "=" || g.rules[name] != nil {
			t.Fatalf("rule %s is not one, or is there twice", name)
		}
		g.rules[name] = alternatives(".")
	}
	for again := true; again; {
		again = false
		for name, rule := range g.rules {
			if n := g.cost(rule) + 1; g.least[name] == 0 && n < never {
				g.least[name] = n
				again = true
			}
		}
	}
	for name := range g.rules {
		if g.least[name] == 0 {
			t.Fatalf("rule %s has no sentence", name)
		}
	}
	return g
}

const never = 1 << 20

func (g *ebnfGrammar) cost(e *ebnf) (n int) {
	switch e.kind {
	case '|':
		n = never
		for _, part := range e.parts {
			n = min(n, g.cost(part))
		}
	case ' ':
		for _, part := range e.parts {
			n = max(n, g.cost(part))
		}
	case 'n':
		if n = g.least[e.text]; n == 0 {
			n = never
		}
	}
	return n
}

// isSyntax reports whether blanks may stand within a rule.
func isSyntax(name string) bool { return unicode.IsUpper(rune(name[0])) }

// generate appends a sentence whose rules nest up to a depth where that can be,
// and soon ends one that is long.
func (g *ebnfGrammar) generate(b []byte, r *rand.Rand, e *ebnf, depth int, syntax bool) []byte {
	if len(b) > 1000 { // come to an end
		depth = 0
	}
	switch e.kind {
	case '|':
		var fit []*ebnf
		least := never
		for _, part := range e.parts {
			switch n := g.cost(part); {
			case n <= depth:
				fit = append(fit, part)
			case n < least:
				least = n
			}
		}
		if len(fit) == 0 {
			for _, part := range e.parts {
				if g.cost(part) == least {
					fit = append(fit, part)
				}
			}
		}
		return g.generate(b, r, fit[r.IntN(len(fit))], depth, syntax)
	case ' ':
		for _, part := range e.parts {
			b = g.generate(b, r, part, depth, syntax)
		}
		return b
	case '[', '{':
		if g.cost(e.parts[0]) > depth {
			return b
		}
		n := r.IntN(2)
		if e.kind == '{' {
			n = r.IntN(3)
		}
		for range n {
			b = g.generate(b, r, e.parts[0], depth, syntax)
		}
		return b
	case 'n':
		rule := g.rules[e.text]
		b = g.generate(b, r, rule, depth-1, isSyntax(e.text))
		if syntax && !isSyntax(e.text) {
			b = append(b, ' ')
		}
		return b
	case '-':
		return append(b, e.text[0]+byte(r.IntN(int(e.text[1]-e.text[0])+1)))
	case '?':
		return append(b, "x;>) /*é"[r.IntN(8)])
	}
	b = append(b, e.text...)
	if syntax {
		b = append(b, ' ')
	}
	return b
}

// match returns where in s what e stands for may end, if it begins at an offset.
func (g *ebnfGrammar) match(e *ebnf, s string, at int) map[int]bool {
	ends := map[int]bool{}
	switch e.kind {
	case '|':
		for _, part := range e.parts {
			for end := range g.match(part, s, at) {
				ends[end] = true
			}
		}
	case ' ':
		ends[at] = true
		for _, part := range e.parts {
			next := map[int]bool{}
			for from := range ends {
				for end := range g.match(part, s, from) {
					next[end] = true
				}
			}
			ends = next
		}
	case '[', '{':
		ends[at] = true
		for todo := []int{at}; len(todo) > 0; todo = todo[1:] {
			for end := range g.match(e.parts[0], s, todo[0]) {
				if !ends[end] && e.kind == '{' {
					todo = append(todo, end)
				}
				ends[end] = true
			}
		}
	case 'n':
		return g.match(g.rules[e.text], s, at)
	case '-':
		if at < len(s) && s[at] >= e.text[0] && s[at] <= e.text[1] {
			ends[at+1] = true
		}
	case '?':
		if excluded, ok := strings.CutPrefix(e.text, "any byte but "); ok && at < len(s) && !strings.ContainsRune(strings.Replace(excluded, " and ", "", 1), rune(s[at])) {
			ends[at+1] = true
		}
	case '"':
		if strings.HasPrefix(s[at:], e.text) {
			ends[at+len(e.text)] = true
		}
	}
	return ends
}

func (g *ebnfGrammar) is(rule, s string) bool { return g.match(g.rules[rule], s, 0)[len(s)] }

// TestGrammarSentences checks that what the documented grammar allows parses.
func TestGrammarSentences(t *testing.T) {
	g := readGrammar(t)
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 0))
		src := string(g.generate(nil, r, g.rules["Program"], 20+r.IntN(25), true))
		p, err := Parse("", src)
		if err != nil {
			t.Fatalf("seed %d: %.2000q: %v", seed, src, err)
		}
		if seed%10 == 0 {
			checkRoundTrip(t, p)
			checkLayout(t, src)
		}
	}
}

// TestGrammarTokens checks that the documented grammar has the tokens of all
// measured programs, and all system calls.
func TestGrammarTokens(t *testing.T) {
	g := readGrammar(t)
	literals := map[string]bool{}
	for name, rule := range g.rules {
		if isSyntax(name) {
			addLiterals(literals, rule)
		}
	}
	wants := map[lexer.TokenType]string{tokenInteger: "integer", tokenDouble: "double", tokenString: "string"}
	for _, v := range readParseVectors(t) {
		for _, text := range v.texts() {
			if _, err := Parse("", text); err != nil {
				continue
			}
			s := newScanner(text, Parser{}.limits())
			for s.piece = len(text); ; {
				token, _ := s.Next()
				if token.EOF() {
					break
				}
				ok := literals[token.Value]
				switch {
				case token.Type == tokenName:
					ok = g.is("name", token.Value) || g.is("reserved", token.Value)
				case token.Type == tokenSystem:
					ok = true // below
				case wants[token.Type] != "":
					ok = g.is(wants[token.Type], token.Value)
				}
				if !ok {
					t.Errorf("%q: the grammar has no %q", text, token.Value)
				}
			}
		}
	}
	for name := range systemFuncs {
		ok := literals["#"+name]
		for rule := range g.rules {
			ok = ok || strings.HasPrefix(rule, "system") && g.is(rule, "#"+name)
		}
		if !ok {
			t.Errorf("the grammar has no #%s", name)
		}
	}
	for token, rule := range map[string]string{".5": "name", "a{}": "name", "a{": "name", "1e": "double", "1.2.3": "double", `'a\'`: "string", "'a'b'": "string", "nope": "reserved"} {
		if g.is(rule, token) {
			t.Errorf("%q is a %s in the grammar", token, rule)
		}
	}
	for _, token := range []string{".", "a.", "..x", "._", "{a}", ".{.z}", "x{i{j}}", "agent.0.pos"} {
		_, err := Parse("", token)
		if got := g.is("name", token); got != (err == nil) {
			t.Errorf("%q is a name in the grammar: %t; parser: %v", token, got, err)
		}
	}
}

func addLiterals(literals map[string]bool, e *ebnf) {
	if e.kind == '"' {
		literals[e.text] = true
	}
	for _, part := range e.parts {
		addLiterals(literals, part)
	}
}
