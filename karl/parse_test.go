package karl

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/participle/v2/lexer"
)

// parseVector is what a parser must know of a line of karl-vectors.jsonl.
type parseVector struct {
	ID        string
	Program   string
	Programs  []string
	Functions map[string]string
	Phase     string
	Quirk     bool
	Result    struct{ Type string }
	Port      struct {
		Result *struct {
			Type  string
			Value any
		}
	}
}

func (v *parseVector) texts() []string {
	texts := append([]string{v.Program}, v.Programs...)
	for _, body := range v.Functions {
		texts = append(texts, body)
	}
	return texts
}

// rejected reports whether a text of the vector must not parse. No vector has
// a KarlException at run time as the outcome wanted of the port.
func (v *parseVector) rejected() bool {
	if v.Quirk {
		r := v.Port.Result
		return r != nil && r.Type == "error" && r.Value == "KarlException"
	}
	return v.Phase == "compile"
}

func readParseVectors(t testing.TB) []parseVector {
	t.Helper()
	file, err := os.Open("testdata/karl-vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var vectors []parseVector
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var v parseVector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, v)
	}
	return vectors
}

// dumpTree writes a tree in prefix form, without the places and texts of its
// nodes: trees are the same if their dumps are.
func dumpTree(n Node) string {
	var b strings.Builder
	var write func(Node)
	write = func(n Node) {
		if n == nil {
			b.WriteString("nothing")
			return
		}
		fmt.Fprintf(&b, "%s(", reflect.TypeOf(n).Elem().Name())
		switch n := n.(type) {
		case *Literal:
			k, bits, _ := n.Value.Words()
			fmt.Fprintf(&b, "%v %d", k, bits)
			if k.IsString() {
				fmt.Fprintf(&b, " %q", n.Value.text())
			}
		case *Name:
			b.WriteString(n.Text)
		case *Unary:
			b.WriteString(n.Op.String())
		case *IncDec:
			fmt.Fprint(&b, n.Op, n.Postfix)
		case *Binary:
			b.WriteString(n.Op.String())
		case *Assign:
			b.WriteString(n.Op.String())
		case *Sequence:
			fmt.Fprint(&b, n.Ops)
		case *Call:
			b.WriteString(n.Name)
		case *SystemCall:
			b.WriteString(n.Name + " " + n.Func)
		case *Loop:
			fmt.Fprint(&b, n.Through, n.Start == nil, n.Step == nil, n.Body == nil)
		}
		for _, child := range appendChildren(nil, n) {
			b.WriteByte(' ')
			write(child)
		}
		b.WriteByte(')')
	}
	write(n)
	return b.String()
}

// checkRoundTrip fails the test if the printed program is another one.
func checkRoundTrip(t *testing.T, p *Program) {
	t.Helper()
	text := p.String()
	again, err := Parse("", text)
	if err != nil {
		t.Fatalf("%q is printed as %q, which does not parse: %v", p.Source, text, err)
	}
	if got, want := dumpTree(again.Body), dumpTree(p.Body); got != want {
		t.Fatalf("%q is printed as %q, which is another program: %s, want %s", p.Source, text, got, want)
	}
	if s := again.String(); s != text {
		t.Fatalf("%q is printed as %q first and then as %q", p.Source, text, s)
	}
}

func TestVectorsParse(t *testing.T) {
	vectors := readParseVectors(t)
	if len(vectors) != 1908 {
		t.Errorf("%d vectors, want 1908", len(vectors))
	}
	for _, v := range vectors {
		var failed error
		for _, text := range v.texts() {
			p, err := Parse("", text)
			if err != nil {
				failed = err
				continue
			}
			checkRoundTrip(t, p)
			checkSpans(t, p)
		}
		if (failed != nil) != v.rejected() {
			t.Errorf("%s %q: error %v, want one: %t", v.ID, v.texts(), failed, v.rejected())
		}
	}
}

// checkSpans fails the test if a node reaches beyond the one it is part of, or
// a name, literal or parenthesis is not at its place.
func checkSpans(t *testing.T, p *Program) {
	t.Helper()
	if p.Body == nil {
		return
	}
	Walk(p.Body, func(n Node) bool {
		text := p.Source[n.Pos():n.End()]
		for _, child := range appendChildren(nil, n) {
			if child.Pos() < n.Pos() || child.End() > n.End() {
				t.Errorf("%q: %T %q reaches beyond %T %q", p.Source, child, p.Source[child.Pos():child.End()], n, text)
			}
		}
		want := text
		switch n := n.(type) {
		case *Name:
			want = n.Text
		case *Literal:
			want = n.Text
		case *Paren:
			want = "(" + text[1:len(text)-1] + ")"
		}
		if text != want {
			t.Errorf("%q: %T is at %q", p.Source, n, text)
		}
		return true
	})
}

// TestVectorsCutShort parses every beginning of every text, as a command line
// sees it, and every text with one byte missing.
func TestVectorsCutShort(t *testing.T) {
	for _, v := range readParseVectors(t) {
		for _, text := range v.texts() {
			for i := range len(text) {
				for _, part := range []string{text[:i], text[:i] + text[i+1:]} {
					if p, err := Parse("", part); err == nil {
						checkRoundTrip(t, p)
					} else if len(err.(ErrorList)) == 0 {
						t.Errorf("%q: an error without faults", part)
					}
				}
			}
		}
	}
}

func TestIsIncomplete(t *testing.T) {
	rep := strings.Repeat
	tests := []struct {
		src  string
		want bool
	}{
		{"(", true}, {"f(", true}, {"f(1,", true}, {"a[", true}, {"[1, 2", true}, {".i[0->3) (a;", true},
		{".i[0->", true}, {".i[0", true}, {"'abc", true}, {"f('abc", true}, {"a = \"x'", true},
		{"a +", true}, {"a = ", true}, {"a =>", true}, {"!", true}, {"a && // and", true}, {"a,", true}, {"-", true},
		{"a + /* open", true}, {"(a; b) => (c", true}, {"++", true}, {"x = [1] + -", true},
		{"", false}, {"a", false}, {"a b", false}, {"a b; (", false}, {"a + ;", false}, {"(a +)", false}, {"a)", false},
		{"#nope(1)", false}, {"5 = 3", false}, {"* 5", false}, {"a[1)", false}, {"(a[1)", false}, {"5++", false}, {"$", false},
		{rep(";", pieceSize) + "a + ;" + rep(" ", pieceSize), false}, {rep(";", pieceSize) + "a + ", true},
		{rep("a;", pieceSize/2-1) + "(b) + ;", false},
		{"a[]", false}, {"f(,)", false}, {"#sqrt()", false}, {"!()", false}, {"1.5e", false},
	}
	for _, test := range tests {
		_, err := Parse("", test.src)
		if got := IsIncomplete(err); got != test.want {
			t.Errorf("IsIncomplete of %q = %t: %v", test.src, got, err)
		}
	}
}

func TestSeparators(t *testing.T) {
	tests := []struct{ src, want string }{
		{"", ""}, {";", ""}, {"()", ""}, {"(());;> // nothing", ""}, {"(;)", ""},
		{"a;", "a"}, {";a", "a"}, {";> a", "a"}, {"a;;b", "a; b"}, {"a;;>b", "a ;> b"}, {"a;>;b", "a; b"},
		{"a ;> () ; b", "a; b"}, {"a; () ;> b", "a ;> b"}, {"a ;> ()", "a"}, {"(a;())", "(a)"},
		{"a, b; c ;> d", "a, b; c ;> d"}, {"1 || ()", "1 || ()"}, {"() => 1", "() => 1"}, {"() + 1", "() + 1"},
		{"[1, 2,]", "[1, 2]"}, {"f(1,)", "f(1)"}, {"f(;1)", "f(1)"}, {"f(1;2, 3)", "f(1; 2, 3)"},
		{".i[0->3) () (a)", ".i[0->3) (a)"}, {".i[0->3) ( /* none */ )", ".i[0->3)"}, {".i[0->3) (;)", ".i[0->3) (;)"},
		{".i[;->3) (())", ".i[->3) (;)"},
	}
	for _, test := range tests {
		p, err := Parse("", test.src)
		if err != nil {
			t.Errorf("%q: %v", test.src, err)
		} else if got := p.String(); got != test.want {
			t.Errorf("%q is printed as %q, want %q", test.src, got, test.want)
		}
	}
}

func TestLoopHeaders(t *testing.T) {
	tests := []struct{ src, start, step, stop string }{
		{".i[0->3)", "0", "", "3"}, {".i[->3]", "", "", "3"}, {".i[0-2>10)", "0", "2", "10"},
		{".i[-2->3)", "-2", "", "3"}, {".i[-2>4)", "", "2", "4"}, {".i[-2-1>3)", "-2", "1", "3"},
		{".i[0-1-2->10)", "0 - 1 - 2", "", "10"}, {".i[a-b->5)", "a - b", "", "5"}, {".i[a-b-c>5)", "a", "b - c", "5"},
		{".i[- 2 - 1>3)", "", "2 - 1", "3"}, {".i[;-2-1>3)", "", "2 - 1", "3"}, {".i[-x-1>3)", "", "x - 1", "3"},
		{".i[5--2>0)", "5", "-2", "0"}, {".i[--2>3)", "", "-2", "3"}, {".i[--x->3)", "--x", "", "3"},
		{".i[x--->3)", "x--", "", "3"}, {".i[x-- - 1>3)", "x", "- - 1", "3"}, {".i[0-a>b>3)", "0", "a > b", "3"},
		{".i[a > b->3)", "a > b", "", "3"}, {".i[(a-b)-(c>d)>3)", "(a - b)", "(c > d)", "3"}, {".i[0->a >= b)", "0", "", "a >= b"},
		{".i[a;-b->3)", "a; -b", "", "3"}, {".i[a*-2-1>3)", "a * -2", "1", "3"}, {".i['->'->3)", "'->'", "", "3"},
		{".i[.j[0->3)(1) - 1>3)", ".j[0->3) (1)", "1", "3"}, {".i[0 /* -> */ ->3)", "0", "", "3"}, {".i[1.5-.5>2.)", "1.5", ".5", "2."},
		{".i[a = b - c, d->3)", "a = b - c, d", "", "3"}, {".i[a,-1>2)", "", "", ""}, {".i[0-x-->3)", "0", "x--", "3"},
	}
	text := func(n Node) string {
		if n == nil {
			return ""
		}
		return Print(n)
	}
	for _, test := range tests {
		p, err := Parse("", test.src)
		if test.stop == "" {
			if err == nil {
				t.Errorf("%q parses: %s", test.src, p)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", test.src, err)
			continue
		}
		n := p.Body.(*Loop)
		if text(n.Start) != test.start || text(n.Step) != test.step || text(n.Stop) != test.stop {
			t.Errorf("%q: start %q, step %q, stop %q", test.src, text(n.Start), text(n.Step), text(n.Stop))
		}
		checkRoundTrip(t, p)
	}
}

// TestHostile parses texts made to cost stack, memory or time.
func TestHostile(t *testing.T) {
	rep := strings.Repeat
	nested := func(header string, n int) string { // header has a % where the next one goes
		before, after, _ := strings.Cut(header, "%")
		return rep(before, n) + "1" + rep(after, n)
	}
	tests := []struct {
		name, src, want string // want is part of the error, "" for none
	}{
		{"open parentheses", rep("(", 3_000_000), "nested deeper than 1000"},
		{"open brackets", rep("a[", 1_000_000), "nested deeper than 1000"},
		{"open calls", rep("f(", 1_000_000), "nested deeper than 1000"},
		{"parentheses at the limit", rep("(", 1000) + "1" + rep(")", 1000), ""},
		{"parentheses over the limit", rep("(", 1001) + "1" + rep(")", 1001), "nested deeper than 1000"},
		{"stray closers", rep(")", 90_000), "closes nothing"},
		{"nots", rep("!", 90_000) + "1", "nested deeper than 1000"},
		{"minuses", rep("- ", 90_000) + "1", "nested deeper than 1000"},
		{"assignments", rep("a=", 40_000) + "1", "nested deeper than 1000"},
		{"implications", rep("a=>", 40_000) + "1", "nested deeper than 1000"},
		{"nested prefixes", nested("!(-(%))", 450), "nested deeper than 1000"},
		{"sum", "1" + rep("+1", 40_000), ""},
		{"groups behind each other", "1" + rep("+(1)", 20_000), ""},
		{"long statement", "1" + rep("+1", 2_000_000), "more than 100000 tokens"},
		{"long list", "1" + rep(",1", 2_000_000), "more than 100000 tokens"},
		{"statements", rep("a;", 2_000_000), ""},
		{"separators", rep(";", 4_000_000), ""},
		{"faulty statements", rep("a b;", 1_000_000), "(and 19 more)"},
		{"faults in parentheses", "(" + rep("5=3;", 20_000) + ")", "(and 19 more)"},
		{"too large", rep(" ", 4<<20+1), "more than 4194304"},
		{"comment", "/*" + rep("*", 4_000_000), ""},
		{"string", "'" + rep("\\'", 2_000_000), "never closed"},
		{"number", rep("9", 4_000_000), "out of the range"},
		{"name", rep("{", 2_000_000) + rep("}", 2_000_000), "is empty"},
		{"bytes", rep("\xff", 90_000), "byte 0xff"},
		{"nested headers", nested(".i[%->3)", 900), ""},
		{"nested steps", nested(".i[0-%>3)", 900), ""},
		{"nested headers with a sign", nested(".i[-2-1-%->3)", 900), ""},
		{"nested headers with many arrows", nested(".i[a-a-(%)-a-a>3)", 450), ""},
		{"nested faulty headers", nested(".i[a-a-a-(%)-a a>3)", 450), "missing operator"},
		{"header of minuses", ".i[" + rep("-", 99_000) + ">3)", "too many - before"},
		{"header of spaced minuses", ".i[a" + rep(" - a", 49_000) + ">3)", ""},
		{"header of signs", ".i[a" + rep(" - - -a", 24_000) + ">3)", ""},
		{"faulty header of minuses", ".i[a" + rep(" - a", 49_000) + " b>3)", "too many - before"},
		{"faulty headers", rep(".i[a"+rep(" - a", 40_000)+" b>3);", 20), "too many - before"},
		{"loops without bodies", ".i[0->3)" + rep("()", 40_000), ""},
		{"unclosed behind each other", rep("(a[1)", 900), "loop header"},
		{"mismatches", rep("(a];", 1_000_000), "( is closed by ]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			begin := time.Now()
			p, err := Parse("", test.src)
			if d := time.Since(begin); d > time.Minute { // half a second on a quiet machine, hours if it is quadratic
				t.Errorf("took %v", d)
			} else {
				t.Logf("took %v", d)
			}
			switch {
			case err == nil && test.want != "":
				t.Errorf("no error, want %q", test.want)
			case err != nil && (test.want == "" || !strings.Contains(err.Error(), test.want)):
				t.Errorf("%.300s, want %q", err.Error(), test.want)
			case err == nil && len(test.src) < 200_000:
				text := p.String()
				again, err := Parse("", text)
				if err != nil {
					t.Fatalf("printed: %.300s", err.Error())
				}
				if again.String() != text {
					t.Error("printed another program")
				}
			}
		})
	}
}

func TestParserLimits(t *testing.T) {
	p := Parser{MaxSource: 20, MaxNesting: 3, MaxTokens: 7}
	tests := []struct{ src, want string }{
		{"12345678901234567890 ", "text of 21 bytes, more than 20"},
		{"(((1)))", ""}, {"((((1", "1:4: nested deeper than 3 levels"}, {"((- -1))", ""}, {"((- - 1))", "1:5: nested"}, {"a=b=c=d", ""}, {"a=b=c=d=e", "1:8: statement of more than 7 tokens"},
		{"1+1+1+1", ""}, {"1+1+1+1;1+1+1+1", ""}, {"1+1+1+1+", "1:8: statement of more than 7 tokens"}, {"!!!1", ""}, {"!!!!1", "1:4: nested"},
	}
	for _, test := range tests {
		_, err := p.Parse("", test.src)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %q", test.src, err, test.want)
		}
	}
}

func TestWalk(t *testing.T) {
	p, err := Parse("", "a = [b, -c] => .i[d - e->f) (g(h; i++) || #sqrt(j[k]))")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	Walk(p.Body, func(n Node) bool {
		if name, ok := n.(*Name); ok {
			names = append(names, name.Text)
		}
		_, skip := n.(*IncDec)
		return !skip
	})
	if got := strings.Join(names, " "); got != "a b c .i d e f h j k" {
		t.Errorf("names in the order of the walk: %s", got)
	}
	Walk(nil, func(Node) bool { t.Error("visits nil"); return true })
}

func TestPositions(t *testing.T) {
	for _, src := range []string{"", "a", "a;\nb\n\nc = 'd'\n", "'é\n';é // \xff\n"} {
		p := &Program{Source: src}
		position := p.Positions()
		for offset := -1; offset <= len(src)+1; offset++ {
			if got, want := position(offset), p.Position(offset); got != want {
				t.Errorf("%q: offset %d is at %#v, want %#v", src, offset, got, want)
			}
		}
	}
}

// TestPieces cuts a text at every place it can be cut.
func TestPieces(t *testing.T) {
	for _, statement := range []string{"++a;", "a = (b; c) ;> d;", ";> e;", "f(1; 2), g;", "'a;b';", "// c;\n", ";"} {
		src := strings.Repeat(statement, 2*pieceSize/len(statement))
		p, err := Parse("", src)
		if err != nil {
			t.Fatal(err)
		}
		checkRoundTrip(t, p)
		one := newScanner(src, Parser{}.limits())
		one.piece = 1 << 30 // never large enough
		whole, err := parseScanner(one, "", src)
		if err != nil {
			t.Fatal(err)
		}
		if dumpTree(whole.Body) != dumpTree(p.Body) {
			t.Errorf("%q: cut into pieces it is another program", statement)
		}
	}
}

func TestTokens(t *testing.T) {
	tokens, err := grammar().Lex("", strings.NewReader("a+++b // c\n;>x[.i-1]= /* */ .j[0->3)%5 #f 'it''s' 1.5e-3-2=>[!=]--"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[lexer.TokenType]string{}
	for name, symbol := range grammar().Lexer().Symbols() {
		names[symbol] = name
	}
	var got []string
	for _, token := range tokens {
		got = append(got, fmt.Sprintf("%s@%d", names[token.Type], token.Pos.Offset))
	}
	want := "Name@0 ++@1 +@3 Name@4 ;>@11 Name@13 Index[@14 Name@15 -@17 Integer@18 ]@19 =@20 " +
		"Name@28 Index[@30 Integer@31 -@32 >@33 Integer@34 )@35 %@36 Integer@37 System@39 String@42 String@46 " +
		"Double@50 -@56 Integer@57 =>@58 Array[@60 !=@61 ]@63 --@64 EOF@66"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("tokens\n%s, want\n%s", s, want)
	}
}

func TestParseInParallel(t *testing.T) {
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for range 50 {
				if p, err := Parse("", "a = f(1; 2) => .i[0->3) (b)"); err != nil || p.String() != p.Source {
					t.Error(p, err)
				}
			}
		})
	}
}
