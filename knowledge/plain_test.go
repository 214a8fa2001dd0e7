package knowledge_test

import (
	"errors"
	"strconv"
	"strings"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// plain is a second evaluator of the language, written from its description to be
// compared with the real one: it walks the tree, keeps variables in a map, resolves
// names at every use and compiles nothing. It models what can be seen from outside:
// values, variables, what is marked, clocks, printed text, and the fault with its place.
type plain struct {
	vars    map[string]karl.Value
	clocks  map[string]int64
	keys    map[string]bool
	marks   map[string]bool
	guarded map[string]bool // of higher quality than this process writes
	clock   int64
	format  karl.NumberFormat
	level   int64
	out     strings.Builder

	functions map[string]*plainFunction
	evaluated map[string]*karl.Program
	fold      bool // walk folded trees

	// Of the running program.
	frame  plainFrame
	depth  int
	steps  uint64
	max    uint64 // 0: no limit
	limits knowledge.Limits
}

type plainFunction struct {
	body *karl.Program
	host func(args []karl.Value) (karl.Value, error)
}

// plainFrame is how the program at hand runs.
type plainFrame struct {
	settings knowledge.EvalSettings
	function string
	args     []karl.Value
}

// plainFault stops a program.
type plainFault struct {
	err      error
	offset   int
	function string
}

var (
	errPlainParse   = errors.New("a text that does not parse")
	errPlainUnknown = errors.New("a system call that the plain evaluator lacks")
)

func newPlain(limits knowledge.Limits) *plain {
	return &plain{
		vars: map[string]karl.Value{}, clocks: map[string]int64{}, keys: map[string]bool{},
		marks: map[string]bool{}, guarded: map[string]bool{}, level: 1, limits: limits,
		functions: map[string]*plainFunction{}, evaluated: map[string]*karl.Program{},
	}
}

// compile notes the names of a program.
func (p *plain) compile(tree *karl.Program) {
	karl.Walk(tree.Body, func(n karl.Node) bool {
		if name, ok := n.(*karl.Name); ok && !strings.Contains(name.Text, "{") {
			p.keys[name.Text] = true
		}
		return true
	})
}

func (p *plain) body(tree *karl.Program) karl.Node {
	if p.fold {
		return karl.Fold(tree.Body)
	}
	return tree.Body
}

// run runs a compiled program.
func (p *plain) run(tree *karl.Program, s knowledge.EvalSettings) (v karl.Value, fault *plainFault) {
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(*plainFault)
			if !ok {
				panic(r)
			}
			v, fault = karl.Value{}, f
		}
	}()
	p.frame, p.depth, p.steps, p.max = plainFrame{settings: s}, 0, 0, s.MaxSteps
	body := p.body(tree)
	if _, list := karl.Unparen(body).(*karl.Sequence); !list { // a list charges its own statements
		p.charge(1, nil)
	}
	return p.eval(body), nil
}

// take returns the marked variables that leave, and raises the clock.
func (p *plain) take() map[string]karl.Value {
	sent := map[string]karl.Value{}
	for name := range p.marks {
		if v := p.vars[name]; v.Exists() && name[0] != '.' {
			sent[name] = v
			p.clocks[name] = p.clock
		}
	}
	clear(p.marks)
	if len(sent) > 0 {
		p.clock++
	}
	return sent
}

func (p *plain) fail(n karl.Node, err error) {
	f := &plainFault{err: err, function: p.frame.function}
	if n != nil {
		f.offset = n.Pos()
	}
	panic(f)
}

func (p *plain) charge(n int, at karl.Node) {
	p.steps += uint64(n)
	if p.max > 0 && p.steps > p.max {
		p.fail(at, knowledge.ErrLimit)
	}
}

// text is the text of a value under the limit of strings.
func (p *plain) text(v karl.Value, delimiter string, at karl.Node) string {
	s := v.Text(&p.format, delimiter)
	p.checkLength(len(s), at)
	return s
}

func (p *plain) checkLength(n int, at karl.Node) {
	if n > p.limits.String {
		p.fail(at, knowledge.ErrLimit)
	}
}

// expand is one pass of expansion; used is the length of what stands before s.
func (p *plain) expand(s string, used int, at karl.Node) string {
	out := ""
	for {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			out += s
			break
		}
		out += s[:i]
		depth, end := 0, -1
		for j := i; j < len(s) && end < 0; j++ {
			switch s[j] {
			case '{':
				depth++
			case '}':
				if depth--; depth <= 0 {
					end = j
				}
			}
		}
		if s[i] == '}' || end < 0 {
			break
		}
		out += p.text(p.vars[p.expand(s[i+1:end], used+len(out), at)], ", ", at)
		p.checkLength(used+len(out), at)
		s = s[end+1:]
	}
	p.checkLength(used+len(out), at)
	return out
}

// name is the variable that a name means now.
func (p *plain) name(n *karl.Name) string {
	if !strings.Contains(n.Text, "{") {
		return n.Text
	}
	return p.expand(p.expand(n.Text, 0, n), 0, n)
}

// written is name for a write.
func (p *plain) written(n *karl.Name) string {
	name := p.name(n)
	if name == "" {
		p.fail(n, knowledge.ErrName)
	}
	return name
}

// wrote notes a write.
func (p *plain) wrote(name string) {
	s := &p.frame.settings
	p.keys[name] = true
	p.clocks[name] = p.clock
	delete(p.guarded, name)
	if (name[0] != '.' || s.SendLocals) && !s.LocalOnly {
		p.marks[name] = true
	}
}

// refused reports whether a variable may not be written.
func (p *plain) refused(name string, at karl.Node) bool {
	if !p.guarded[name] || p.frame.settings.Overwrite {
		return false
	}
	if p.frame.settings.Strict {
		p.fail(at, knowledge.ErrQuality)
	}
	return true
}

func (p *plain) store(name string, v karl.Value, at karl.Node) {
	if p.refused(name, at) {
		return
	}
	if !v.Exists() {
		v = karl.Int(0)
	}
	p.vars[name] = v
	p.wrote(name)
}

// read is a variable's value, which must be there under Strict.
func (p *plain) read(name string, at karl.Node) karl.Value {
	v := p.vars[name]
	if !v.Exists() && p.frame.settings.Strict {
		p.fail(at, knowledge.ErrMissing)
	}
	return v
}

func elementOf(v karl.Value, i int64) karl.Value {
	if i < 0 || i >= int64(v.Len()) {
		return karl.Value{}
	}
	x, _ := v.At(int(i))
	return x
}

func (p *plain) storeElement(name string, i int64, v karl.Value, at karl.Node) {
	if i < 0 || i >= int64(p.limits.Array) {
		p.fail(at, knowledge.ErrIndex)
	}
	if p.refused(name, at) {
		return
	}
	p.vars[name] = p.vars[name].WithElement(int(i), v)
	p.wrote(name)
}

func isNumber(v karl.Value) bool { return v.Kind() == karl.KindInteger || v.Kind() == karl.KindDouble }

// apply is an arithmetic operator or a comparison.
func (p *plain) apply(op karl.Op, x, y karl.Value, at karl.Node) karl.Value {
	v := op.Apply(x, y, &p.format)
	if op == karl.OpAdd && x.Kind().IsString() {
		p.checkLength(v.Len(), at)
	}
	return v
}

func (p *plain) eval(n karl.Node) karl.Value {
	switch n := n.(type) {
	case nil:
		return karl.Int(0)
	case *karl.Literal:
		return n.Value
	case *karl.Paren:
		return p.eval(n.X)
	case *karl.Name:
		return p.read(p.name(n), n)
	case *karl.Index:
		i := p.eval(n.At).Int()
		return elementOf(p.read(p.name(n.X), n.X), i)
	case *karl.Unary:
		x := p.eval(n.X)
		switch n.Op {
		case karl.OpNeg:
			return x.Neg()
		case karl.OpNot:
			return karl.Bool(!x.IsTrue())
		}
		return karl.OpAdd.Apply(karl.Int(0), x, nil)
	case *karl.IncDec:
		return p.incDec(n)
	case *karl.Binary:
		return p.binary(n)
	case *karl.Assign:
		return p.assign(n)
	case *karl.Sequence:
		return p.sequence(n)
	case *karl.Array:
		elems := make([]karl.Value, len(n.Elems))
		for i, e := range n.Elems {
			elems[i] = p.eval(e)
		}
		return karl.ArrayOf(elems)
	case *karl.Call:
		return p.call(n)
	case *karl.SystemCall:
		return p.systemCall(n)
	case *karl.Loop:
		return p.loop(n)
	}
	panic("unknown node")
}

func (p *plain) binary(n *karl.Binary) karl.Value {
	x := p.eval(n.X)
	switch n.Op {
	case karl.OpImplies:
		if x.IsTrue() {
			p.eval(n.Y)
		}
		return x
	case karl.OpAnd:
		return karl.Bool(x.IsTrue() && p.eval(n.Y).IsTrue())
	case karl.OpOr:
		if x.IsTrue() || p.eval(n.Y).IsTrue() {
			return karl.Int(1)
		}
		return karl.Value{}
	}
	return p.apply(n.Op, x, p.eval(n.Y), n)
}

func (p *plain) sequence(n *karl.Sequence) karl.Value {
	p.charge(len(n.Stmts), n)
	v := p.eval(n.Stmts[0])
	for i, s := range n.Stmts[1:] {
		w := p.eval(s)
		switch {
		case n.Ops[i] == karl.OpLast,
			n.Ops[i] == karl.OpBoth && karl.OpGreater.Apply(w, v, nil).IsTrue(),
			n.Ops[i] == karl.OpEither && karl.OpLess.Apply(w, v, nil).IsTrue():
			v = w
		}
	}
	return v
}

func (p *plain) assign(n *karl.Assign) karl.Value {
	v := p.eval(n.Y)
	switch x := karl.Unparen(n.X).(type) {
	case *karl.Name:
		name := p.written(x)
		if n.Op != karl.OpAssign {
			v = p.apply(n.Op.Operator(), p.read(name, x), v, n)
		}
		p.store(name, v, x)
		return v
	case *karl.Index:
		if n.Op == karl.OpAssign {
			if !isNumber(v) {
				if p.frame.settings.Strict {
					p.fail(x, knowledge.ErrKind)
				}
				return v
			}
			i := p.eval(x.At).Int()
			p.storeElement(p.written(x.X), i, v, x)
			return v
		}
		i := p.eval(x.At).Int()
		name := p.written(x.X)
		v = p.apply(n.Op.Operator(), elementOf(p.read(name, x), i), v, n)
		p.storeElement(name, i, v, x)
		return elementOf(p.vars[name], i)
	}
	panic("no target")
}

func (p *plain) incDec(n *karl.IncDec) karl.Value {
	delta := int64(1)
	if n.Op == karl.OpDec {
		delta = -1
	}
	switch x := karl.Unparen(n.X).(type) {
	case *karl.Name:
		name := p.written(x)
		old := p.vars[name]
		if n.Postfix {
			p.read(name, x)
		}
		p.store(name, old.Step(delta), x)
		if n.Postfix {
			return old
		}
		return old.Step(delta)
	case *karl.Index:
		i := p.eval(x.At).Int()
		name := p.written(x.X)
		if n.Postfix {
			p.read(name, x)
		}
		old := elementOf(p.vars[name], i)
		p.storeElement(name, i, old.Step(delta), x)
		if n.Postfix {
			return old
		}
		return elementOf(p.vars[name], i)
	}
	return p.eval(n.X).Step(delta)
}

func (p *plain) loop(n *karl.Loop) karl.Value {
	if n.Body == nil {
		v := p.eval(n.Stop)
		if n.Through {
			v = karl.OpAdd.Apply(v, karl.Int(1), nil)
		}
		p.store(p.written(n.Var), v, n.Var)
		return v
	}
	start, compare := karl.Int(0), karl.OpLess
	if n.Start != nil {
		start = p.eval(n.Start)
	}
	if n.Through {
		compare = karl.OpLessEqual
	}
	p.store(p.written(n.Var), start, n.Var)
	for turns := int64(0); ; turns++ {
		end := p.eval(n.Stop)
		if !compare.Apply(p.vars[p.written(n.Var)], end, nil).IsTrue() {
			return karl.Int(turns)
		}
		p.charge(1, n)
		p.eval(n.Body)
		step := karl.Int(1)
		if n.Step != nil {
			step = p.eval(n.Step)
		}
		name := p.written(n.Var)
		p.store(name, p.apply(karl.OpAdd, p.vars[name], step, n), n.Var)
	}
}

func (p *plain) call(n *karl.Call) karl.Value {
	args := make([]karl.Value, len(n.Args))
	for i, arg := range n.Args {
		args[i] = p.eval(arg)
		slot := "." + strconv.Itoa(i)
		delete(p.vars, slot)
		if args[i].Exists() {
			p.vars[slot] = args[i]
			p.keys[slot] = true
		}
	}
	name := n.Name
	if strings.Contains(name, "{") {
		if name = p.name(&karl.Name{Span: n.Span, Text: name}); name == "" {
			p.fail(n, knowledge.ErrName)
		}
	}
	p.charge(1, n)
	f := p.functions[name]
	switch {
	case f == nil:
		p.fail(n, knowledge.ErrUndefined)
	case f.host != nil:
		v, err := f.host(args)
		if err != nil {
			p.fail(n, err)
		}
		return v
	}
	return p.nest(f.body, plainFrame{function: name, args: args}, n)
}

func (p *plain) nest(tree *karl.Program, frame plainFrame, at karl.Node) karl.Value {
	if p.depth == p.limits.CallDepth {
		p.fail(at, knowledge.ErrLimit)
	}
	outer := p.frame
	p.frame = frame
	p.depth++
	v := p.eval(p.body(tree))
	p.depth--
	p.frame = outer
	return v
}

func (p *plain) systemCall(n *karl.SystemCall) karl.Value {
	switch {
	case n.Func == "get_clock" && len(n.Args) == 1:
		name := p.name(karl.Unparen(n.Args[0]).(*karl.Name))
		p.read(name, n.Args[0])
		return karl.Int(p.clocks[name])
	case n.Func == "set_clock" && len(n.Args) == 2:
		v := p.eval(n.Args[1]).Int()
		name := p.written(karl.Unparen(n.Args[0]).(*karl.Name))
		if v > 1<<62 {
			p.fail(n, knowledge.ErrLimit)
		}
		p.clocks[name] = max(v, 0)
		p.clock = max(p.clock, v)
		return karl.Int(max(v, 0))
	}
	args := make([]karl.Value, len(n.Args))
	for i, arg := range n.Args {
		args[i] = p.eval(arg)
		switch n.Func {
		case "clear_var", "delete_var", "expand", "print", "string":
			if i == 0 != (n.Func == "string") {
				args[i] = karl.String(p.text(args[i], ", ", n))
			}
		}
	}
	switch n.Func {
	case "arg":
		if i := args[0].Int(); i >= 0 && i < int64(len(p.frame.args)) {
			return p.frame.args[i]
		}
		return karl.Value{}
	case "args":
		return karl.Int(int64(len(p.frame.args)))
	case "clear_var", "delete_var":
		name := p.expand(args[0].String(), 0, n)
		was := p.keys[name]
		delete(p.vars, name)
		delete(p.marks, name)
		if n.Func == "delete_var" {
			delete(p.keys, name)
			delete(p.clocks, name)
			delete(p.guarded, name)
		}
		return karl.Bool(was)
	case "eval":
		return p.evaluate(args[0], n)
	case "expand":
		return karl.String(p.expand(args[0].String(), 0, n))
	case "fixed", "scientific":
		p.format.Scientific = n.Func == "scientific"
		return karl.Value{}
	case "precision":
		if len(args) > 0 {
			p.format.SetPrecision(args[0].Int())
		}
		return karl.Int(p.format.Precision())
	case "get_clock":
		return karl.Int(p.clock)
	case "set_clock":
		if args[0].Int() > 1<<62 {
			p.fail(n, knowledge.ErrLimit)
		}
		p.clock = max(p.clock, args[0].Int())
		return karl.Int(p.clock)
	case "log_level":
		if len(args) > 0 {
			p.level = args[0].Int()
		}
		return karl.Int(p.level)
	case "integers", "doubles":
		if v := args[0]; !v.Kind().IsArray() && v.Size() > int64(p.limits.Array) {
			p.fail(n, knowledge.ErrLimit)
		}
	case "print":
		if len(args) < 2 || args[1].Int() <= p.level {
			p.out.WriteString(p.expand(args[0].String(), 0, n))
		}
		return karl.Int(0)
	case "string":
		delimiter := ", "
		if len(args) > 1 {
			delimiter = args[1].String()
		}
		return karl.String(p.text(args[0], delimiter, n))
	}
	v, ok := karl.CallPure(n.Func, args, &p.format)
	if !ok {
		p.fail(n, errPlainUnknown)
	}
	return v
}

func (p *plain) evaluate(v karl.Value, n *karl.SystemCall) karl.Value {
	p.charge(1, n)
	text := p.text(v, ", ", n)
	p.charge(len(text)/16, n)
	tree := p.evaluated[text]
	if tree == nil {
		var err error
		if tree, err = karl.Parse("", text); err != nil {
			p.fail(n, errPlainParse)
		}
		p.compile(tree)
		p.evaluated[text] = tree
	}
	frame := p.frame
	frame.function = ""
	return p.nest(tree, frame, n)
}
