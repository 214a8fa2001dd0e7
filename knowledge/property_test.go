package knowledge_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// A writer draws the text of a program over few variables, so that its parts meet.
type writer struct {
	t     *rapid.T
	loops int // loops around the place at hand
}

func (w *writer) pick(label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(w.t, label)
}

func (w *writer) chance(percent int) bool {
	return rapid.IntRange(1, 100).Draw(w.t, "chance") <= percent
}

var plainNames = []string{"a", "b", "c", ".l", "w", "s", "q", "x1"}

// name draws the name of a variable, one in four with braces.
func (w *writer) name() string {
	if w.chance(25) {
		return w.pick("dynamic", "x{a}", "{s}", "x{b}{.l}", "x{x{a}}", "{{s}}", ".{.l}", "w{zero}")
	}
	return w.pick("name", plainNames...)
}

func (w *writer) target(depth int) string {
	if w.chance(25) {
		return w.name() + "[" + w.index(depth) + "]"
	}
	return w.name()
}

func (w *writer) index(depth int) string {
	if w.chance(60) {
		return w.pick("index", "0", "1", "2", "7", "-1", "a", "'1'", "1.9", "1000")
	}
	return "(" + w.expr(depth-1) + ")" // without the parentheses - and > make a loop of it
}

func (w *writer) literal() string {
	return w.pick("literal", "0", "1", "2", "3", "5", "-1", "9223372036854775807", "0.5", "2.5", "-1.5", "1e30",
		"true", "false", "nan", "inf", "''", "'a'", "'x1'", "'5'", "'2.5'", "'abc'", "'a{b}'", "'{s}'", "'}'", "'{'",
		"[1, 2]", "[1, 2.5]", "[]")
}

func (w *writer) operator() string {
	return " " + w.pick("operator", "+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||") + " "
}

// operand draws something that any operator may stand beside.
func (w *writer) operand(depth int) string {
	if depth <= 0 || w.chance(40) {
		switch {
		case w.chance(35):
			return w.literal()
		case w.chance(20):
			return w.name() + "[" + w.index(0) + "]"
		}
		return w.name()
	}
	if w.chance(40) {
		return "(" + w.statements(depth-1) + ")"
	}
	switch w.pick("operand", "unary", "step", "post", "array", "call", "system", "system", "loop") {
	case "unary":
		return w.pick("prefix", "-", "!", "+") + "(" + w.expr(depth-1) + ")"
	case "step":
		return w.pick("step", "++", "--") + w.pick("of", w.target(depth-1), "("+w.expr(depth-1)+")")
	case "post":
		return w.target(depth-1) + w.pick("post", "++", "--")
	case "array":
		return "[" + w.list(1, 3, depth-1) + "]"
	case "call":
		return w.pick("function", "f", "g", "host", "f", "g", "host", "none", "{s}", "{x{a}}f") + "(" + w.list(0, 2, depth-1) + ")"
	case "system":
		return w.systemCall(depth)
	}
	return w.loop(depth)
}

func (w *writer) list(least, most, depth int) string {
	parts := make([]string, rapid.IntRange(least, most).Draw(w.t, "length"))
	for i := range parts {
		parts[i] = w.expr(depth)
	}
	return strings.Join(parts, ", ")
}

func (w *writer) systemCall(depth int) string {
	name, arguments, _ := strings.Cut(w.pick("system call", "size 1", "type 1", "string 1", "string 2", "integer 1", "double 1",
		"integers 1", "doubles 1", "fragment 3", "buffer 1", "sqrt 1", "pow 2", "isinf 1", "arg 1", "arg 1", "args 0",
		"expand 1", "print 1", "print 2", "clear_var 1", "delete_var 1", "clear_var n", "delete_var n", "get_clock 0", "set_clock 1",
		"get_clock v", "set_clock v", "precision 0", "precision 1", "fixed 0", "scientific 0", "log_level 1", "eval t", "eval 1"), " ")
	switch arguments {
	case "n":
		return "#" + name + "('" + w.name() + "')"
	case "v":
		if name == "set_clock" {
			return "#set_clock(" + w.name() + ", " + w.pick("clock", "0", "7", "-3", "a") + ")"
		}
		return "#get_clock(" + w.name() + ")"
	case "t":
		text := w.statements(depth - 1)
		if !strings.Contains(text, `"`) {
			return `#eval("` + text + `")`
		}
		return "#eval('a = 1;')"
	}
	n := int(arguments[0] - '0')
	switch name {
	case "precision", "set_clock", "log_level":
		if n > 0 {
			return "#" + name + "(" + w.pick("number", "-1", "0", "2", "9") + ")"
		}
	}
	return "#" + name + "(" + w.list(n, n, depth-1) + ")"
}

func (w *writer) loop(depth int) string {
	variable := w.pick("variable", "a", "b", ".l", "i", "x{a}", "i{zero}", "s")
	start := w.pick("start", "0", "", "1", "-1", "0.5", "'1'", "(a)", "c")
	if w.chance(10) {
		start = "(" + w.expr(depth-1) + ")"
	}
	step := w.pick("step", "", "", "", "1", "2", "0.5", "(1 + 1)", "c", "(++b)")
	stop := w.pick("stop", "3", "2", "3.5", "4 - 1", "a", "#size(w)", "'2'", "(c + 2)", "(b = 2)")
	if w.chance(10) {
		stop = "(" + w.expr(depth-1) + ")"
	}
	header := variable + "[" + start + "-" + step + ">" + stop + w.pick("close", ")", ")", "]")
	if w.loops >= 2 || w.chance(10) {
		return header
	}
	w.loops++
	defer func() { w.loops-- }()
	return header + "(" + w.statements(depth-1) + ")"
}

// short draws an operator between variables and constants, for which evaluators
// like to have code of their own.
func (w *writer) short() string {
	x := w.pick("left", plainNames...)
	if w.chance(30) {
		x = "(" + w.operand(1) + ")"
	}
	y := w.pick("right", "0", "1", "2", "3", "-1", "0.5", "a", "b", ".l", "'a'", "(b)")
	return x + w.operator() + y
}

// expr draws a statement without a separator outside brackets.
func (w *writer) expr(depth int) string {
	switch {
	case w.chance(25):
		return w.short()
	case depth <= 0 || w.chance(20):
		return w.operand(depth)
	case w.chance(40):
		x := w.operand(depth - 1)
		for range rapid.IntRange(1, 3).Draw(w.t, "operands") {
			x += w.operator() + w.operand(depth-1)
		}
		return x
	case w.chance(50):
		return w.target(depth-1) + w.pick("assign", " = ", " = ", " = ", " += ", " -= ", " *= ", " /= ") + w.assigned(depth-1)
	case w.chance(50):
		return w.pick("condition", "1", "-7", "0", "a", w.short(), w.operand(depth-1)) + " => " + w.expr(depth-1)
	}
	return w.operand(depth)
}

func (w *writer) assigned(depth int) string {
	switch {
	case w.chance(30):
		return w.literal()
	case w.chance(30):
		return w.short()
	case w.chance(20):
		return w.target(0) + " = " + w.assigned(depth)
	}
	return w.operand(depth) + w.operator() + w.operand(depth)
}

// simple draws one of the statements that large programs are made of.
func (w *writer) simple() string {
	name := w.pick("name", plainNames...)
	s := w.pick("simple", "++"+name, "--"+name, name+" = 5", name+" = -2", name+" += 1", name+" -= 2", name+"++")
	if w.chance(30) {
		s = w.pick("guard", "1", "5", "0", "2.5", "a", "9999999999") + " => " + s
	}
	return s
}

// statements draws a list of statements.
func (w *writer) statements(depth int) string {
	n := rapid.IntRange(1, 3).Draw(w.t, "statements")
	simple := w.chance(20)
	if simple {
		n += 3
	}
	same := w.chance(60)
	separator := w.pick("separator", "; ", "; ", ", ", " ;> ")
	var b strings.Builder
	for i := range n {
		if i > 0 {
			if !same {
				separator = w.pick("separator", "; ", ", ", " ;> ")
			}
			b.WriteString(separator)
		}
		if simple || w.chance(20) {
			b.WriteString(w.simple())
		} else {
			b.WriteString(w.expr(depth))
		}
	}
	return b.String()
}

var errHost = errors.New("the host function failed")

func hostFunction(args []karl.Value) (karl.Value, error) {
	if len(args) == 0 {
		return karl.Int(42), nil
	}
	if args[0].Kind().IsString() {
		return karl.Value{}, errHost
	}
	return args[len(args)-1], nil
}

func drawValue(t *rapid.T) karl.Value {
	switch rapid.IntRange(0, 13).Draw(t, "kind") {
	case 0, 1:
		return karl.Value{}
	case 10, 11, 12, 13:
		return karl.Int(rapid.Int64Range(0, 3).Draw(t, "small"))
	case 2, 3:
		return karl.Int(rapid.SampledFrom([]int64{0, 1, 2, -1, 3, 1<<63 - 1, -1 << 63}).Draw(t, "int"))
	case 4:
		return karl.Float(rapid.SampledFrom([]float64{0, 0.5, 1.5, -2, 1e300}).Draw(t, "double"))
	case 5:
		return karl.String(rapid.SampledFrom([]string{"", "a", "b", "x1", "5", "2.5", "f", "a{b}", "{a}", "}", "{"}).Draw(t, "string"))
	case 6:
		return karl.Ints(rapid.SliceOfN(rapid.Int64Range(-1, 3), 0, 3).Draw(t, "ints"))
	case 7:
		return karl.Floats(rapid.SliceOfN(rapid.Float64Range(-1, 3), 0, 3).Draw(t, "doubles"))
	case 8:
		return karl.File(karl.KindJPEG, []byte(rapid.SampledFrom([]string{"", "abc"}).Draw(t, "file")))
	}
	return karl.File(karl.KindXML, []byte("<a/>"))
}

var sentinels = []error{
	knowledge.ErrMissing, knowledge.ErrUndefined, knowledge.ErrName, knowledge.ErrKind,
	knowledge.ErrIndex, knowledge.ErrLimit, knowledge.ErrQuality, errHost,
}

// describeFault is an error of the real evaluator in the form of a plain fault.
func describeFault(err error) string {
	if err == nil {
		return "none"
	}
	var e *knowledge.EvalError
	if !errors.As(err, &e) {
		return err.Error()
	}
	kind := e.Err
	for _, s := range sentinels {
		if errors.Is(err, s) {
			kind = s
		}
	}
	if errors.As(err, new(karl.ErrorList)) {
		kind = errPlainParse
	}
	return fmt.Sprintf("%v at %d in %q", kind, e.Sites[0].Pos.Offset, e.Sites[0].Function)
}

func (f *plainFault) describe() string {
	if f == nil {
		return "none"
	}
	return fmt.Sprintf("%v at %d in %q", f.err, f.offset, f.function)
}

func describeValue(v karl.Value) string {
	k, bits, _ := v.Words()
	if k == karl.KindDouble && v.Float() != v.Float() {
		return "double nan"
	}
	if k == karl.KindInteger || k == karl.KindDouble {
		return fmt.Sprintf("%v %d", k, bits)
	}
	return fmt.Sprintf("%v %q", k, v.Buffer().Bytes())
}

func describeValues(values map[string]karl.Value) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&b, "%s = %s\n", name, describeValue(values[name]))
	}
	return b.String()
}

// fataler is what testing and rapid have in common.
type fataler interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// trial is one base beside the plain evaluators that must do the same: one that
// walks trees as they were parsed, and one that walks folded trees.
type trial struct {
	t      fataler
	kb     *knowledge.Base
	out    *strings.Builder
	sent   map[string]karl.Value
	plains [2]*plain
}

func newTrial(t fataler) *trial {
	limits := knowledge.Limits{String: 4096, Array: 500, CallDepth: 12}
	x := &trial{t: t, out: &strings.Builder{}, sent: map[string]karl.Value{}}
	x.kb = knowledge.New(knowledge.WithLimits(limits), knowledge.WithOutput(x.out),
		knowledge.WithSink(func(_ uint64, updates []knowledge.Update) {
			for _, u := range updates {
				x.sent[u.Name] = u.Value
			}
		}))
	x.plains = [2]*plain{newPlain(limits), newPlain(limits)}
	x.plains[1].fold = true
	return x
}

func (x *trial) set(name string, v karl.Value) {
	if !v.Exists() {
		return
	}
	if err := x.kb.Set(name, v); err != nil {
		x.t.Fatal(err)
	}
	for _, p := range x.plains {
		p.vars[name] = v
		p.wrote(name)
	}
}

// guard makes what the variable holds of higher quality than what programs write.
func (x *trial) guard(name string) {
	x.kb.SetQuality(name, 3)
	x.set(name, karl.Int(7))
	x.kb.SetQuality(name, 0)
	for _, p := range x.plains {
		p.guarded[name] = true
	}
}

func (x *trial) define(name, text string) {
	if err := x.kb.DefineExpression(name, text); err != nil {
		x.t.Fatalf("%s\n%v", text, err)
	}
	for _, p := range x.plains {
		tree, _ := karl.Parse("", text)
		p.compile(tree)
		p.functions[name] = &plainFunction{body: tree}
	}
}

func (x *trial) reset() {
	x.kb.Reset()
	for _, p := range x.plains {
		clear(p.vars)
		clear(p.clocks)
		clear(p.keys)
		clear(p.marks)
		clear(p.guarded)
		p.clock = 0
	}
}

func (x *trial) defineHost(name string) {
	x.kb.Define(name, func(c *knowledge.Call) (karl.Value, error) { return hostFunction(c.Args) })
	for _, p := range x.plains {
		p.functions[name] = &plainFunction{host: hostFunction}
	}
}

// run evaluates a program on all evaluators and compares what they did. It
// reports false, having compared nothing, for a program that the plain ones lack
// something for.
func (x *trial) run(src string, e *knowledge.Expression, tree *karl.Program, s knowledge.EvalSettings) bool {
	var faults [2]*plainFault
	var values [2]karl.Value
	for i, p := range x.plains {
		values[i], faults[i] = p.run(tree, s)
		if faults[i] != nil && faults[i].err == errPlainUnknown {
			return false
		}
	}
	settings := &s
	if reflect.ValueOf(s).IsZero() {
		settings = nil
	}
	clear(x.sent)
	v, err := e.Evaluate(settings)
	for i, p := range x.plains {
		complain := func(what string, got, want string) {
			if got != want {
				x.t.Fatalf("%s\nsettings %+v, plain evaluator %d: %s\n%s\nwant\n%s", src, s, i, what, got, want)
			}
		}
		complain("fault", describeFault(err), faults[i].describe())
		if err == nil {
			complain("value", describeValue(v), describeValue(values[i]))
			complain("sent", describeValues(x.sent), describeValues(p.take()))
		}
		have := map[string]karl.Value{}
		for name, r := range x.kb.All("") {
			have[name] = r.Value
		}
		complain("variables", describeValues(have), describeValues(p.vars))
		complain("printed", x.out.String(), p.out.String())
	}
	return true
}

// compile prepares a program on all evaluators.
func (x *trial) compile(src string) (*knowledge.Expression, *karl.Program) {
	tree, err := karl.Parse("", src)
	if err != nil {
		x.t.Fatalf("%s\n%v", src, err)
	}
	e, err := x.kb.Compile(src)
	if err != nil {
		x.t.Fatalf("%s\n%v", src, err)
	}
	for _, p := range x.plains {
		p.compile(tree)
	}
	return e, tree
}

// TestPlainEvaluator compares programs, on a fresh base and then on what they
// left, with the plain evaluator.
func TestPlainEvaluator(t *testing.T) {
	for name, s := range map[string]knowledge.EvalSettings{
		"default": {}, "strict": {Strict: true}, "local": {LocalOnly: true}, "locals": {SendLocals: true},
		"overwrite": {Overwrite: true, Strict: true}, "delayless": {NoSignal: true, NoTrack: true},
	} {
		t.Run(name, func(t *testing.T) {
			for range 10 {
				rapid.Check(t, func(t *rapid.T) { checkPlain(t, s) })
			}
		})
	}
}

func checkPlain(t *rapid.T, s knowledge.EvalSettings) {
	x := newTrial(t)
	defer x.kb.Close()
	w := &writer{t: t}
	for _, name := range append(plainNames, ".0") {
		x.set(name, drawValue(t))
	}
	x.guard("guarded")
	if rapid.Bool().Draw(t, "guard") {
		x.guard("q")
	}
	x.defineHost("host")
	x.define("f", w.statements(1))
	x.define("g", w.statements(2))
	src := w.statements(4)
	e, tree := x.compile(src)
	s.MaxSteps = 500
	if rapid.IntRange(1, 10).Draw(t, "short") == 1 {
		s.MaxSteps = 10
	}
	x.run(src, e, tree, s)
	x.run(src, e, tree, s)
	switch w.pick("between", "", "", "", "", "define", "reset") {
	case "define":
		x.define("f", w.statements(1))
	case "reset":
		x.reset()
	}
	x.run(src, e, tree, s)
	if s.MaxSteps == 500 && x.plains[0].steps < 250 {
		// It ends by itself, so the next run can do without a limit.
		if x.plains[0].ends(tree, s) {
			s.MaxSteps = 0
		}
	}
	x.run(src, e, tree, s)
}

// ends reports whether the program ends within the steps of s on a copy of the variables.
func (p *plain) ends(tree *karl.Program, s knowledge.EvalSettings) bool {
	again := newPlain(p.limits)
	maps.Copy(again.vars, p.vars)
	maps.Copy(again.clocks, p.clocks)
	maps.Copy(again.keys, p.keys)
	maps.Copy(again.guarded, p.guarded)
	again.clock, again.format, again.level, again.functions = p.clock, p.format, p.level, p.functions
	_, fault := again.run(tree, s)
	return fault == nil || !errors.Is(fault.err, knowledge.ErrLimit)
}
