package knowledge_test

import (
	"context"
	"testing"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// allocations fails the test if f allocates more than most times, once it has run.
func allocations(t *testing.T, what string, most float64, f func()) {
	t.Helper()
	for range 3 {
		f()
	}
	if got := testing.AllocsPerRun(100, f); got > most {
		t.Errorf("%s: %v allocations, want at most %v", what, got, most)
	}
}

// TestScalarProgramsAllocateNothing runs each form of programs on numbers in the
// ways that programs are evaluated, with and without a sink.
func TestScalarProgramsAllocateNothing(t *testing.T) {
	elements := map[string]bool{}
	programs := []string{"w[0] = 5", "w[0] = d", "w[1] += 2", "++w[0]", "w[1]--", "v[0] = i", "v[1] += 0.5", "w{none}[1] = 2"}
	for _, src := range programs {
		elements[src] = true
	}
	programs = append(programs,
		"++i", "--i", "i++", "i--", "i = 5", "i = j", "i += 3", "i -= j", "i *= 2", "i /= 3", "i = i % 7 + 1",
		"d = 0.5", "d += 0.5", "++d", "d++", "d -= i", "d *= 1.5", "d /= 2.5", "d = d * 0.5 + i / 2.0 - j", "-d + -i", "+i",
		"i < 5", "d >= 0.5", "i == d", "i != j && d > 0 || !i", "!d", "i => ++j", "1 => ++j", "i == 5 => j = 7", "i = j = 3",
		"i; j; d", "i, d, j", "i ;> d ;> j", "++i; ++j; d += 0.5; i < j => ++i", "++i; 1 => ++j; 2.5; ++i",
		".i[0->10) (++j)", ".i[0->10] (j += .i)", ".i[0 -2> 10) (d += 0.5)", ".i[0 -.5> 3) (++j)", ".i[0->3) (.j[0->3) (++i))", ".i[0->3)",
		"w[1]", "w[i % 2]",
		"x{k}", "x{k} = 5", "x{k} += 1", "++x{k}", "x{x{k}}", ".{k}[0->3) (++x{k})",
		"none{k}", "s == 'text'", "s < 'x' && s", "s => ++i", "i == '5'", "s = 'other'", "t = s",
		"extern()", "extern(1)", "extern(i, d)", "extern(extern(i))", "body()", "body(1)", "body(d) + body(i)", "nested()", "setter()",
		"ex{k}()", "#arg(0)", "#args()", "#size(s)", "#type(d)", "#integer(d)", "#double(i)", "#sqrt(d)", "#pow(d, 2)", "#sin(d)",
		"#isinf(d)", "#get_clock()", "#get_clock(i)", "#get_time()", "#rand_int(1, 6)", "#rand_double()", "#log_level()", "#precision()",
		"#eval('++i')", "#eval(s)", "#clear_var('i') ;> ++i", "#print('x', 9)",
	)
	for _, sinks := range []int{0, 1} {
		var opts []knowledge.Option
		if sinks > 0 {
			opts = append(opts, knowledge.WithSink(func(uint64, []knowledge.Update) {}))
		}
		kb := newBase(t, opts...)
		eval(t, kb, "i = 3; j = 4; d = 0.5; k = 1; x1 = 2; x2 = 3; w = [1, 2]; w[1] = 3; v = [0.5, 2]; v[1] = 3; s = 'i'; x5 = 1")
		kb.Define("extern", func(c *knowledge.Call) (karl.Value, error) { return c.Arg(0), nil })
		kb.Define("ex1", func(c *knowledge.Call) (karl.Value, error) { return karl.Int(1), nil })
		kb.DefineExpression("body", "#arg(0) + ++j")
		inner, err := kb.Compile("++j")
		if err != nil {
			t.Fatal(err)
		}
		kb.Define("nested", func(c *knowledge.Call) (karl.Value, error) { return c.Guard.Run(inner, nil) })
		kb.Define("setter", func(c *knowledge.Call) (karl.Value, error) {
			return c.Guard.Get("d"), c.Guard.Set("i", karl.Int(c.Guard.Get("i").Int()+1))
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, src := range programs {
			e, err := kb.Compile(src)
			if err != nil {
				t.Fatalf("%s: %v", src, err)
			}
			run := func(f func() (karl.Value, error)) func() {
				return func() {
					if _, err := f(); err != nil {
						t.Fatalf("%s: %v", src, err)
					}
				}
			}
			most := 0.0
			if sinks > 0 && elements[src] {
				most = 1 // the sink was given the array, so the write is to a copy
			}
			allocations(t, src, most, run(func() (karl.Value, error) { return e.Evaluate(nil) }))
			if sinks > 0 {
				continue
			}
			other := string([]byte(src)) // found in the cache by its bytes
			allocations(t, src+" by text", 0, run(func() (karl.Value, error) { return kb.Evaluate(src, nil) }))
			allocations(t, src+" by texts", 0, func() {
				_, err := kb.Evaluate(src, nil)
				_, also := kb.Evaluate(other, nil)
				if err != nil || also != nil {
					t.Fatal(src, err, also)
				}
			})
			for _, s := range []knowledge.EvalSettings{{Delay: true}, {SendLocals: true}, {LocalOnly: true}, {MaxSteps: 1000}, {NoSignal: true, NoTrack: true}} {
				allocations(t, src+" with settings", 0, run(func() (karl.Value, error) { return e.Evaluate(&s) }))
			}
			allocations(t, src+" with a context", 0, run(func() (karl.Value, error) { return e.EvaluateContext(ctx, nil) }))
			g := kb.Lock()
			allocations(t, src+" by a guard", 0, run(func() (karl.Value, error) { return g.Run(e, nil) }))
			allocations(t, src+" by a guard's text", 0, run(func() (karl.Value, error) { return g.Evaluate(src, nil) }))
			g.Unlock()
		}
	}
}

func TestAccessAllocatesNothing(t *testing.T) {
	for _, opts := range [][]knowledge.Option{nil, {knowledge.WithNullLock()}, {knowledge.WithExactTimes()}} {
		kb := newBase(t, opts...)
		eval(t, kb, "i = 1; d = 0.5; s = 'text'; w = [1, 2]; w[1] = 3")
		i, d, b := knowledge.NewVar[int64](kb, "i"), knowledge.NewVar[float64](kb, "d"), knowledge.NewVar[bool](kb, "b")
		s := knowledge.NewVar[string](kb, "s")
		text := karl.String("other")
		var n int64
		var f float64
		for what, op := range map[string]func(){
			"Get":             func() { n += kb.Get("i").Int() },
			"Get of a string": func() { n += int64(kb.Get("s").Len()) },
			"Get of an array": func() { n += int64(kb.Get("w").Len()) },
			"Get of nothing":  func() { n += int64(kb.Get("none").Len()) },
			"Lookup":          func() { r, _ := kb.Lookup("i"); n += r.Value.Int() },
			"Set":             func() { kb.Set("i", karl.Int(n)) },
			"Set of a double": func() { kb.Set("d", karl.Float(f)) },
			"Set of a string": func() { kb.Set("s", text) },
			"Set and Lookup":  func() { kb.Set("i", karl.Int(n)); kb.Lookup("i") },
			"SetIndex":        func() { kb.SetIndex("v", 1, karl.Int(n)) },
			"Clear":           func() { kb.Clear("i"); kb.Set("i", karl.Int(1)) },
			"Var.Get":         func() { n += i.Get(); f += d.Get() },
			"Var.Set":         func() { i.Set(n); d.Set(f); b.Set(true) },
			"Var.Add":         func() { i.Add(2); d.Add(0.5) },
			"Var of a string": func() { s.Set("constant"); n += int64(len(s.Get())) },
			"Lock": func() {
				g := kb.Lock()
				g.Set("i", g.Get("i"))
				i.In(g).Add(1)
				d.In(g).Set(f)
				n += i.In(g).Get()
				g.Unlock()
			},
			"Peek":             func() { n += i.Peek(); f += d.Peek() },
			"Set while peeked": func() { i.Set(n); n += i.Peek() },
			"Update":           func() { kb.Update(func(g knowledge.Guard) error { return g.Set("i", karl.Int(4)) }) },
		} {
			allocations(t, what, 0, op)
		}
	}
}

// TestSendAllocatesNothing hands changes of each kind to a sink.
func TestSendAllocatesNothing(t *testing.T) {
	n := 0
	kb := newBase(t, knowledge.WithSink(func(_ uint64, updates []knowledge.Update) { n += len(updates) }))
	e, err := kb.Compile("++a; d += 0.5; s = 'text'; b = 3; x{b} = a; .l = 5")
	if err != nil {
		t.Fatal(err)
	}
	allocations(t, "Evaluate", 0, func() { e.Evaluate(nil) })
	allocations(t, "Set and Send", 0, func() { kb.Set("a", karl.Int(1)); kb.Send(t.Context()) })
	only := &knowledge.EvalSettings{SendOnly: []string{"a"}}
	allocations(t, "SendOnly", 0, func() { e.Evaluate(only) })
	if n == 0 {
		t.Error("nothing was sent")
	}
}

// TestWaitAllocatesLittle bounds what a wait costs, whatever the number of
// evaluations in it.
func TestWaitAllocatesLittle(t *testing.T) {
	kb := newBase(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	yes, err := kb.Compile("a == 0")
	if err != nil {
		t.Fatal(err)
	}
	allocations(t, "a wait that is over at once", 8, func() { yes.Wait(ctx, nil) })
	kb.Define("again", func(c *knowledge.Call) (karl.Value, error) { return karl.Bool(c.Guard.Get("n").Int() >= 50), nil })
	many, err := kb.Compile("++n; again() ;> n >= 50")
	if err != nil {
		t.Fatal(err)
	}
	s := &knowledge.WaitSettings{Poll: 1}
	allocations(t, "a wait of 50 evaluations", 20, func() {
		kb.Set("n", karl.Int(0))
		if v, err := many.Wait(ctx, s); err != nil || !v.IsTrue() {
			t.Fatal(v, err)
		}
	})
}
