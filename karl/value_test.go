package karl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	nan = math.NaN()
	inf = math.Inf(1)
)

// vector is a line of testdata/karl-vectors.jsonl, as spec section 11 says.
type vector struct {
	ID, Section, Program, Phase string
	Functions                   map[string]string
	Result                      *vectorValue
	Vars                        map[string]vectorValue
	Tol                         float64
	Port                        *struct {
		Result *vectorValue
		Vars   map[string]vectorValue
	}
}

type vectorValue struct {
	Type  string
	Value any
}

func readVectors(t *testing.T) []vector {
	data, err := os.ReadFile("testdata/karl-vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	for d.More() {
		var v vector
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, v)
	}
	return vectors
}

func (v vectorValue) value() Value {
	switch v.Type {
	case "uninitialized":
		return Value{}
	case "integer":
		return Int(jsonInt(v.Value))
	case "double":
		return Float(jsonFloat(v.Value))
	case "string":
		return String(v.Value.(string))
	}
	elems := v.Value.([]any)
	ints, floats, bytes := []int64{}, []float64{}, []byte{}
	for _, e := range elems {
		switch v.Type {
		case "double_array":
			floats = append(floats, jsonFloat(e))
		default:
			ints = append(ints, jsonInt(e))
			bytes = append(bytes, byte(jsonInt(e)))
		}
	}
	switch v.Type {
	case "integer_array":
		return Ints(ints)
	case "double_array":
		return Floats(floats)
	}
	return File(KindFile, bytes)
}

func jsonInt(x any) int64 {
	n, err := x.(json.Number).Int64()
	if err != nil {
		panic(err)
	}
	return n
}

func jsonFloat(x any) float64 {
	switch x {
	case "nan":
		return nan
	case "inf":
		return inf
	case "-inf":
		return -inf
	}
	f, err := x.(json.Number).Float64()
	if err != nil {
		panic(err)
	}
	return f
}

// matches compares exactly, but takes any nan for any other.
func matches(got, want Value, tol float64) bool {
	if got.Kind() == KindDouble && want.Kind() == KindDouble {
		g, w := got.Float(), want.Float()
		if g != g && w != w || tol > 0 && math.Abs(g-w) <= tol*math.Abs(w) {
			return true
		}
	}
	return got.Equal(want)
}

// reader makes trees of programs without loops, calls of functions and braces.
// It is much simpler than the language's own parser, so that these tests need
// nothing but the values.
type reader struct {
	tokens []string
}

var errUnread = errors.New("beyond the reader")

var tokenPattern = regexp.MustCompile(`^(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|'(?:[^'\\]|\\[^'])*'|[#A-Za-z_.][A-Za-z0-9_.]*|\+\+|--|;>|=>|&&|\|\||[=!<>+*/-]=|[-+*/%=<>!;,()\[\]])`)

func read(src string) (n Node, err error) {
	r := &reader{}
	for src = strings.TrimSpace(src); src != ""; src = strings.TrimSpace(src) {
		token := tokenPattern.FindString(src)
		if token == "" {
			return nil, errUnread
		}
		r.tokens = append(r.tokens, token)
		src = src[len(token):]
	}
	defer func() {
		if recover() != nil {
			err = errUnread
		}
	}()
	n = r.sequence("")
	if len(r.tokens) > 0 {
		return nil, errUnread
	}
	return n, nil
}

func (r *reader) peek() string {
	if len(r.tokens) == 0 {
		return ""
	}
	return r.tokens[0]
}

func (r *reader) next() string {
	token := r.tokens[0]
	r.tokens = r.tokens[1:]
	return token
}

func (r *reader) expect(token string) {
	if r.next() != token {
		panic(token)
	}
}

func operator(token string) Op {
	for o := OpBoth; o <= OpRem; o++ {
		if o.String() == token {
			return o
		}
	}
	return 0
}

// sequence reads statements; a comma ends them where separator is one.
func (r *reader) sequence(separator string) Node {
	n := r.level(2)
	s := &Sequence{Stmts: []Node{n}}
	for {
		o := operator(r.peek())
		if o == 0 || o.precedence() != 1 || r.peek() == separator {
			break
		}
		r.next()
		s.Stmts, s.Ops = append(s.Stmts, r.level(2)), append(s.Ops, o)
	}
	if len(s.Ops) == 0 {
		return n
	}
	return s
}

func (r *reader) level(least int) Node {
	n := r.unary()
	for {
		o := operator(r.peek())
		level := o.precedence()
		if o == 0 || level < least {
			return n
		}
		r.next()
		switch level {
		case 2:
			n = &Binary{Op: o, X: n, Y: r.level(level)}
		case 3:
			switch Unparen(n).(type) {
			case *Name, *Index:
			default:
				panic("assignment")
			}
			n = &Assign{Op: o, X: n, Y: r.level(level)}
		default:
			n = &Binary{Op: o, X: n, Y: r.level(level + 1)}
		}
	}
}

func (r *reader) unary() Node {
	switch token := r.peek(); token {
	case "-", "+", "!":
		r.next()
		if token == "-" && r.peek() == "9223372036854775808" {
			r.next()
			return lit(Int(math.MinInt64))
		}
		return &Unary{Op: map[string]Op{"-": OpNeg, "+": OpPlus, "!": OpNot}[token], X: r.unary()}
	case "++", "--":
		r.next()
		return &IncDec{Op: map[string]Op{"++": OpInc, "--": OpDec}[token], X: r.unary()}
	}
	n := r.primary()
	for r.peek() == "++" || r.peek() == "--" {
		switch n.(type) {
		case *Name, *Index:
		default:
			panic("postfix")
		}
		n = &IncDec{Op: map[string]Op{"++": OpInc, "--": OpDec}[r.next()], Postfix: true, X: n}
	}
	return n
}

func (r *reader) list(end string) (nodes []Node) {
	for r.peek() != end {
		nodes = append(nodes, r.sequence(","))
		if r.peek() != end {
			r.expect(",")
		}
	}
	r.next()
	return nodes
}

func (r *reader) primary() Node {
	token := r.next()
	switch c := token[0]; {
	case c == '\'':
		return lit(String(token[1 : len(token)-1]))
	case isDigit(c) || c == '.' && len(token) > 1 && isDigit(token[1]):
		if strings.ContainsAny(token, ".eE") {
			return lit(Float(String(token).Float()))
		}
		var n int64
		if _, err := fmt.Sscanf(strings.TrimLeft(token[:len(token)-1], "0")+token[len(token)-1:], "%d", &n); err != nil {
			panic(err)
		}
		return lit(Int(n))
	case token == "(":
		n := &Paren{X: r.sequence("")}
		r.expect(")")
		return n
	case token == "[":
		return &Array{Elems: r.list("]")}
	case c == '#':
		r.expect("(")
		fn := strings.TrimPrefix(strings.TrimPrefix(token[1:], "to_"), "set_")
		return &SystemCall{Name: token[1:], Func: fn, Args: r.list(")")}
	case token == "true":
		return lit(Int(1))
	case token == "false":
		return lit(Int(0))
	case token == "nan":
		return lit(Float(nan))
	case token == "inf":
		return lit(Float(inf))
	case c == '_' || c == '.' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z':
		n := &Name{Text: token}
		if r.peek() == "(" {
			panic("call")
		}
		if r.peek() == "[" {
			r.next()
			if header, _, _ := strings.Cut(strings.Join(r.tokens, " "), "]"); strings.Contains(header, ">") {
				panic("loop")
			}
			x := &Index{X: n, At: r.sequence("")}
			r.expect("]")
			return x
		}
		return n
	}
	panic(token)
}

// TestVectors runs, folded and as they are, all vectors that need nothing but
// values and operators.
func TestVectors(t *testing.T) {
	ran := map[string]int{}
	for _, v := range readVectors(t) {
		result, vars := v.Result, v.Vars
		if v.Port != nil {
			result, vars = v.Port.Result, v.Port.Vars
		}
		if v.Program == "" || v.Functions != nil || result != nil && result.Type == "error" || result != nil && result.Type == "crash" {
			continue
		}
		n, err := read(v.Program)
		if err != nil {
			continue
		}
		for _, n := range []Node{n, Fold(n)} {
			m := &machine{vars: map[string]Value{}}
			var got Value
			func() {
				defer func() {
					if p := recover(); p != nil {
						err = fmt.Errorf("%w: %v", errUnread, p)
					}
				}()
				got = m.run(n)
			}()
			if err != nil {
				break
			}
			if result != nil && !matches(got, result.value(), v.Tol) {
				t.Errorf("%s %s = %v %v, want %v", v.ID, v.Program, got.Kind(), got, result)
			}
			for name, want := range vars {
				if got := m.vars[name]; !matches(got, want.value(), v.Tol) {
					t.Errorf("%s %s: %s = %v %v, want %v", v.ID, v.Program, name, got.Kind(), got, want)
				}
			}
		}
		if err == nil {
			ran[v.Section]++
		}
	}
	total := 0
	for _, n := range ran {
		total += n
	}
	t.Logf("%d vectors ran", total)
	for section, least := range map[string]int{
		"types.arith": 64, "types.compare": 64, "types.compare_more": 84, "types.logic": 64, "types.division": 52,
		"types.overflow": 15, "types.strings": 49, "types.arrays": 56, "calls.math": 40, "calls.fragment": 20,
		"calls.type_size": 24, "conv.arrays": 28, "conv.to_double": 20, "conv.to_integer": 40, "conv.to_string": 50,
		"prec.sequence": 60,
	} {
		if ran[section] < least {
			t.Errorf("%s: %d vectors ran, want at least %d", section, ran[section], least)
		}
	}
}
