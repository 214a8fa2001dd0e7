package knowledge_test

import (
	"errors"
	"flag"
	"io"
	"testing"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// vectorTexts returns each text of the vectors once.
func vectorTexts(t testing.TB) []string {
	var texts []string
	seen := map[string]bool{}
	add := func(text string) {
		if !seen[text] {
			seen[text] = true
			texts = append(texts, text)
		}
	}
	for _, v := range readVectors(t) {
		for _, text := range v.Programs {
			add(text)
		}
		for _, text := range v.Functions {
			add(text)
		}
	}
	return texts
}

// addVectors adds the texts of the vectors as seeds. While fuzzing it is one in
// four, with a prefix of each: the fuzzer runs hundreds of seeds a second only, and
// would spend the time it is given on what TestPrefixes does.
func addVectors(f *testing.F) {
	fuzzing := flag.Lookup("test.fuzz").Value.String() != ""
	for i, text := range vectorTexts(f) {
		if !fuzzing {
			f.Add(text)
		} else if i%4 == 0 {
			f.Add(text)
			f.Add(text[:len(text)*(i%7+1)/8])
		}
	}
	for _, text := range []string{
		"s = 'x'; .i[0->99) (s += s)", "a[999] = 1; .i[0->999) (v{.i} = a)", ".i[0->999) (n += 'n'; {n} = .i)",
		"f(f(1)) + #eval('f(2)')", "t = '#eval(t)' ;> #eval(t)", "g(g, 1) + .{.z} + {s}{t}[{u}]",
		"#set_precision(2000000000) ;> '' + 0.1", ".i[0->9) (#eval('a' + .i + '= [1, .i]') ;> #delete_var('a{.i}'))",
		"s = 'é' ;> #doubles(s + s) ;> #fragment(s, 1, 9223372036854775807)", "a[0] = 1; b = a; a[1] = 2; #clear_var('a')",
	} {
		f.Add(text)
	}
}

var fuzzLimits = knowledge.Limits{Variables: 1000, Array: 1000, String: 64 << 10, CallDepth: 64, Texts: 16, TextBytes: 1 << 20}

// evaluateAnything evaluates a text that may be anything under small limits,
// twice and under different settings, and checks that the base survives it.
func evaluateAnything(t *testing.T, src string) {
	kb := knowledge.New(knowledge.WithLimits(fuzzLimits), knowledge.WithOutput(io.Discard))
	defer kb.Close()
	if err := kb.DefineExpression("f", "++depth; #arg(0) => f(#arg(0) - 1)"); err != nil {
		t.Fatal(err)
	}
	kb.Define("g", func(c *knowledge.Call) (karl.Value, error) {
		if c.Arg(0).Kind().IsString() {
			return c.Guard.Evaluate(c.Arg(0).String(), nil)
		}
		return c.Arg(0), c.Guard.Set("g", karl.Int(int64(len(c.Args))))
	})
	begin := time.Now()
	for _, s := range []*knowledge.EvalSettings{{MaxSteps: 10_000}, {MaxSteps: 1_000, Strict: true}, {MaxSteps: 500, SendLocals: true}} {
		_, err := kb.Evaluate(src, s)
		var fault *knowledge.EvalError
		var faults karl.ErrorList
		switch {
		case errors.As(err, &fault):
			for _, site := range fault.Sites {
				if n := len(site.Program.Source); site.Pos.Offset > n || site.End.Offset > n || site.Pos.Offset > site.End.Offset {
					t.Errorf("%q: %v has a site outside the text", src, err)
				}
			}
			if fault.Snippet() == "" {
				t.Errorf("%q: %v has no snippet", src, err)
			}
		case errors.As(err, &faults):
		case err != nil:
			t.Errorf("%q: %v is of no known kind", src, err)
		}
	}
	if d := time.Since(begin); d > 20*time.Second {
		t.Errorf("%q took %v", src, d)
	}
	count := 0
	for name, r := range kb.All("") {
		count++
		if n := r.Value.Len(); n > fuzzLimits.String || r.Value.Kind().IsArray() && n > fuzzLimits.Array && n > len(src) {
			t.Errorf("%q left %.40s with a length of %d", src, name, n)
		}
	}
	if count > fuzzLimits.Variables {
		t.Errorf("%q left %d variables", src, count)
	}
	kb.Reset()
	if v, err := kb.Evaluate("2 + 3", nil); err != nil || v.Int() != 5 {
		t.Errorf("after %q: 2 + 3 = %v, %v", src, v, err)
	}
	g := kb.Lock()
	g.Unlock()
}

// FuzzEvaluate checks that no text makes the base panic or hang, hold more than
// its limits, or be unusable afterwards.
func FuzzEvaluate(f *testing.F) {
	addVectors(f)
	f.Fuzz(evaluateAnything)
}

// FuzzPlainEvaluator compares any text with the plain evaluator.
func FuzzPlainEvaluator(f *testing.F) {
	addVectors(f)
	f.Fuzz(func(t *testing.T, src string) {
		if _, err := karl.Parse("", src); err != nil {
			return
		}
		for _, s := range []knowledge.EvalSettings{{MaxSteps: 300}, {MaxSteps: 300, Strict: true}} {
			x := newTrial(t)
			x.set("s", karl.String("x{n}"))
			x.set("n", karl.Int(3))
			x.set("w", karl.Floats([]float64{0.5, 2}))
			x.guard("q")
			x.defineHost("host")
			x.define("f", "a = #arg(0) ;> a => f(a - 1)")
			e, tree := x.compile(src)
			if x.run(src, e, tree, s) {
				x.run(src, e, tree, s)
			}
			x.kb.Close()
		}
	})
}

// TestPrefixes evaluates every text that a text of the vectors begins with.
func TestPrefixes(t *testing.T) {
	seen := map[string]bool{}
	for _, text := range vectorTexts(t) {
		for end := range len(text) {
			if prefix := text[:end]; !seen[prefix] {
				seen[prefix] = true
				evaluateAnything(t, prefix)
			}
		}
	}
}
