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

func (r *reader) operator(token string) Op {
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
		o := r.operator(r.peek())
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
		o := r.operator(r.peek())
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

func TestKinds(t *testing.T) {
	codes := []int{0, 1, 2, 4, 8, 16, 32, 64, 128, 256}
	for k := range Kind(kinds) {
		if k.Code() != codes[k] {
			t.Errorf("%v: %d", k, k.Code())
		}
		if got, ok := KindOfCode(codes[k]); got != k || !ok {
			t.Errorf("%d: %v %v", codes[k], got, ok)
		}
	}
	for _, code := range []int{-1, 3, 512} {
		if k, ok := KindOfCode(code); ok {
			t.Errorf("%d: %v", code, k)
		}
	}
	if Kind(kinds).String() != "invalid" || Kind(kinds).Code() != 0 {
		t.Error("a kind that is none")
	}
}

func TestValuesAreTheirWords(t *testing.T) {
	for i, v := range oneOfEach {
		if got := FromWords(v.Words()); !got.Equal(v) || got.String() != v.String() {
			t.Errorf("%v %v: %v", v.Kind(), v, got)
		}
		for j, w := range oneOfEach {
			if v.Equal(w) != (i == j) {
				t.Errorf("%v %v and %v %v", v.Kind(), v, w.Kind(), w)
			}
		}
	}
	if File(KindDouble, nil).Kind() != KindFile {
		t.Error("a file of a kind that is none")
	}
	if !Floats([]float64{nan}).Equal(Floats([]float64{nan})) || Floats([]float64{0}).Equal(Floats([]float64{-1})) {
		t.Error("arrays of doubles")
	}
}

func TestTruth(t *testing.T) {
	for _, test := range []struct {
		v    Value
		want bool
	}{
		{Value{}, false},
		{Int(-1), true},
		{Float(nan), false},
		{Float(-0.5), true},
		{Float(inf), true},
		{String("0"), true},
		{String(""), false},
		{Ints([]int64{0, 1}), false},
		{Ints([]int64{1}), true},
		{Ints(nil), false},
		{Floats([]float64{nan, 1}), false},
		{Floats([]float64{0.1}), true},
		{Floats(nil), false},
		{File(KindFile, []byte{0}), true},
		{File(KindJPEG, nil), false},
		{File(KindText, []byte("x")), true},
	} {
		if got := test.v.IsTrue(); got != test.want {
			t.Errorf("%v %v: %v", test.v.Kind(), test.v, got)
		}
	}
}

func ExampleValue() {
	position := Floats([]float64{1.5, 2})
	moved := position.WithElement(3, Int(7))
	fmt.Println(moved.Kind(), moved.Len(), moved)
	fmt.Println(position)
	fmt.Println(OpAdd.Apply(String("x = "), position, nil))
	// Output:
	// double_array 4 1.500000, 2.000000, 0.000000, 7.000000
	// 1.500000, 2.000000
	// x = 1.500000, 2.000000
}

func ExampleNumberFormat() {
	var f NumberFormat
	f.SetPrecision(2)
	fmt.Println(Float(12345.678).Text(&f, ""))
	f.Scientific = true
	fmt.Println(Float(12345.678).Text(&f, ""))
	// Output:
	// 12345.68
	// 1.23e+04
}
