package karl

import "slices"

// use says what becomes of the value of an expression.
type use uint8

const (
	useNone   use = iota // it is dropped
	useResult            // it is that of the program, which may be dropped
	useValue
	useGuard // it decides whether something runs
)

// visit checks n and what is below it, and reports whether evaluating it does
// anything but give a value.
func (c *checker) visit(n Node, u use) (effect bool) {
	switch n := n.(type) {
	case *Name:
		c.read(n)
	case *Index:
		c.read(n.X)
		return c.visit(n.At, useValue)
	case *Paren:
		return n.X != nil && c.visit(n.X, u)
	case *Unary:
		if n.Op == OpNot && u >= useValue {
			c.condition(n.X)
		}
		return c.visit(n.X, useValue)
	case *IncDec:
		return c.count(n, u)
	case *Binary:
		return c.binary(n, u)
	case *Assign:
		c.assign(n, u)
		return true
	case *Sequence:
		return c.sequence(n, u)
	case *Array:
		return c.all(n.Elems)
	case *Call:
		c.call(n)
		c.all(n.Args)
		return true
	case *SystemCall:
		c.systemCall(n)
		return c.all(n.Args) || systemEffect(n)
	case *Loop:
		c.loop(n)
		return true
	}
	return false
}

// all visits nodes whose values are used.
func (c *checker) all(nodes []Node) (effect bool) {
	for _, n := range nodes {
		effect = c.visit(n, useValue) || effect
	}
	return effect
}

// systemEffect reports whether a call does more than give a value.
func systemEffect(n *SystemCall) bool {
	switch n.Func {
	case "clear_var", "delete_var", "eval", "set_clock", "fixed", "scientific", "print", "print_system_calls", "write_file", "sleep":
		return true
	case "log_level", "precision":
		return len(n.Args) > 0
	}
	return false
}

// count checks ++ and --.
func (c *checker) count(n *IncDec, u use) bool {
	x := Unparen(n.X)
	if !c.write(x) {
		return c.visit(n.X, useValue) // ++5 and the like
	}
	if u != useNone {
		c.read(x)
	}
	return true
}

func (c *checker) assign(n *Assign, u use) {
	c.visit(n.Y, useValue)
	x, y := Unparen(n.X), Unparen(n.Y)
	c.write(x)
	if n.Op != OpAssign && u != useNone {
		c.read(x)
	}
	if n.Op == OpAssign {
		if _, ok := x.(*Index); ok && isNoNumber(y) {
			c.report(n, "element-not-number", "Store a number, or give the text a variable of its own, as name{.i}.", nil,
				"%s is not stored: an element of an array holds a number", c.text(n.Y))
		}
		return
	}
	c.arithmetic(n.Op.Operator(), n, n.X, n.Y)
}

// isNoNumber reports whether a node is a text or an array.
func isNoNumber(n Node) bool {
	switch n := n.(type) {
	case *Literal:
		return n.Value.Kind().IsString()
	case *Array:
		return true
	case *SystemCall:
		switch n.Func {
		case "string", "expand", "expand_env", "to_host_dirs", "doubles", "integers", "buffer":
			return true
		}
	}
	return false
}

// arithmetic checks the operands of an arithmetic operator.
func (c *checker) arithmetic(op Op, n, x, y Node) {
	for _, operand := range []Node{x, y} {
		if a, ok := Unparen(operand).(*Array); ok && len(a.Elems) > 1 {
			c.report(operand, "array-arithmetic", "Write a loop over the elements.", nil,
				"%s counts as its element 0 here: %s does not go over the elements", c.text(operand), op)
		}
	}
	if op != OpDiv && op != OpRem {
		return
	}
	if v, ok := constant(y); ok && v.class() != textual && v.Float() == 0 {
		if op == OpRem && v.class() == floating {
			return // the value is the left side
		}
		c.report(n, "divide-by-zero", "Divide by something else, or write nan if that is meant.", nil,
			"%s divides by zero, which gives nan and no error", c.text(n))
	}
}

// constant returns the value of a simple expression without variables.
func constant(n Node) (Value, bool) {
	switch n := n.(type) {
	case *Literal:
		return n.Value, true
	case *Paren:
		if n.X != nil {
			return constant(n.X)
		}
	case *Unary:
		v, ok := constant(n.X)
		switch {
		case !ok:
		case n.Op == OpNeg:
			return v.Neg(), true
		case n.Op == OpPlus:
			return v.Plus(), true
		}
	case *Binary:
		if n.Op < OpAdd {
			break
		}
		x, ok := constant(n.X)
		y, both := constant(n.Y)
		if ok && both {
			return foldOperator(n.Op, x, y)
		}
	}
	return Value{}, false
}

func (c *checker) binary(n *Binary, u use) (effect bool) {
	switch {
	case n.Op == OpImplies:
		return c.implies(n, u)
	case n.Op == OpAnd || n.Op == OpOr:
		c.logic(n, u)
	case n.Op <= OpGreaterEqual:
		c.comparison(n)
	default:
		c.arithmetic(n.Op, n, n.X, n.Y)
	}
	left := useValue
	if n.Op == OpAnd || n.Op == OpOr {
		left = useGuard
	}
	effect = c.visit(n.X, left)
	right := useValue
	if left == useGuard {
		right = max(u, useResult)
	}
	return c.visit(n.Y, right) || effect
}

// implies checks guard => statement.
func (c *checker) implies(n *Binary, u use) bool {
	if u >= useValue {
		c.report(n, "implies-value", "Use && to combine conditions, or assign in the statement: a => (x = b).", nil,
			"the value of %s is that of its left side, not of its right side", c.text(n))
	}
	c.condition(n.X)
	c.visit(n.X, useGuard)
	effect := c.visit(n.Y, useNone)
	if !effect {
		c.report(n.Y, "value-unused", "Assign a variable, count or call something there.", comparisonEdit(c, n.Y),
			"%s right of => does nothing: only its value is found, and dropped", c.text(n.Y))
	}
	return true
}

// condition reports an assignment that stands where something is asked.
func (c *checker) condition(n Node) {
	a, ok := Unparen(n).(*Assign)
	if !ok || a.Op != OpAssign {
		return
	}
	at := c.operator(a.X.End(), a.Y.Pos(), "=")
	c.report(a, "assign-in-condition", "Write == to compare.", &Edit{at, at + 1, "=="},
		"%s assigns %s, it does not compare", c.text(a), c.text(a.X))
}

// operator returns the place of an operator between two operands.
func (c *checker) operator(from, to int, op string) int {
	s := newScanner(c.p.Source[:to], Parser{}.limits())
	for s.pos, s.piece = from, to; ; {
		t, _ := s.Next()
		if t.EOF() || t.Value == op {
			return t.Pos.Offset
		}
	}
}

// comparisonEdit makes an assignment of a comparison that does nothing.
func comparisonEdit(c *checker, n Node) *Edit {
	b, ok := Unparen(n).(*Binary)
	if !ok || b.Op != OpEqual {
		return nil
	}
	if _, ok := Unparen(b.X).(*Name); !ok {
		return nil
	}
	at := c.operator(b.X.End(), b.Y.Pos(), "==")
	return &Edit{at, at + 2, "="}
}

// logic checks a && b and a || b.
func (c *checker) logic(n *Binary, u use) {
	c.condition(n.X)
	if u >= useValue { // else a && (b = 1) is a way to write a => b = 1
		c.condition(n.Y)
	}
	if x, ok := n.X.(*Binary); ok && n.Op == OpAnd && x.Op == OpOr {
		var edit *Edit
		if from, to := x.Pos(), x.End(); to-from <= maxEdit {
			edit = &Edit{from, to, "(" + c.p.Source[from:to] + ")"}
		}
		c.report(n, "mixed-logic", "Write parentheses: (a || b) && c, or a || (b && c).", edit,
			"%s means (%s) && …: || and && have one rank", c.text(n), c.text(x))
	}
}

func (c *checker) comparison(n *Binary) {
	if x, ok := n.X.(*Binary); ok && x.Op >= OpEqual && x.Op <= OpGreaterEqual {
		c.report(n, "comparison-chain", "Write a < b && b < c, or parentheses if that is meant.", nil,
			"%s compares the 1 or 0 of %s", c.text(n), c.text(x))
	}
	x, ok := Unparen(n.X).(*Literal)
	y, both := Unparen(n.Y).(*Literal)
	if ok && both && x.Value.Kind().IsString() != y.Value.Kind().IsString() {
		c.report(n, "string-number", "Compare texts with texts, or numbers with numbers.", nil,
			"%s compares a text with a number", c.text(n))
	}
}

func (c *checker) sequence(n *Sequence, u use) (effect bool) {
	last := len(n.Stmts) - 1
	effects := make([]bool, len(n.Stmts))
	for i, stmt := range n.Stmts {
		su := u
		switch {
		case u == useResult && i < last:
			su = useNone
		case u >= useValue && i < last && n.Ops[i] == OpLast && !slices.Contains(n.Ops[i:], OpBoth) && !slices.Contains(n.Ops[i:], OpEither):
			su = useNone
		}
		effects[i] = c.visit(stmt, su)
		effect = effect || effects[i]
	}
	if !effect {
		return false // to give the greatest, or the like, is what it is for
	}
	if u >= useValue {
		if i := slices.Index(n.Ops, OpBoth); i >= 0 {
			at := c.operator(n.Stmts[i].End(), n.Stmts[i+1].Pos(), ";")
			var edit *Edit
			if len(n.Ops) == 1 {
				edit = &Edit{at, at + 1, " ;>"}
			}
			c.report(n, "semicolon-value", "Write ;> between statements to get the value of the last.", edit,
				"the value of %s is the greatest of its statements, not the last", c.text(n))
		}
		return true
	}
	for i, stmt := range n.Stmts {
		if !effects[i] && (i < last || u == useNone) {
			c.report(stmt, "value-unused", "Assign it to a variable, or leave it out.", comparisonEdit(c, stmt),
				"%s does nothing: only its value is found, and dropped", c.text(stmt))
		}
	}
	return true
}

// foreign has what to write for the keywords of other languages.
var foreign = map[string]string{
	"if":     "Write condition => (statements).",
	"while":  "Write a loop, .i[0->n) (statements), or evaluate the program again and again.",
	"for":    "Write a loop, .i[0->n) (statements).",
	"switch": "Write a rule for each case: x == 1 => (statements).",
	"return": "The value of a program is that of its last statement: write ;> before it.",
	"print":  "Write #print(text).",
	"not":    "Write !x.",
}

func (c *checker) call(n *Call) {
	if c.functions[n.Name] {
		return
	}
	if fix, ok := foreign[n.Name]; ok {
		c.report(n, "foreign-keyword", fix, nil, "%s calls a function named %s: the language has no %s", c.text(n), n.Name, n.Name)
		return
	}
	for _, inner := range innerNames(n.Name) {
		c.inner(inner, n)
	}
	if c.options.Functions == nil || len(innerNames(n.Name)) > 0 {
		return
	}
	fix := "Define it in the host program, or correct its name."
	if _, ok := systemFuncs[n.Name]; ok {
		fix = "Write #" + n.Name + " for the language's own function."
	}
	c.reportAt(n.Pos(), n.Pos()+len(n.Name), "unknown-function", fix, nil, "function %s is not defined", n.Name)
}

func (c *checker) loop(n *Loop) {
	c.write(n.Var)
	c.read(n.Var)
	for _, bound := range []Node{n.Start, n.Step, n.Stop} {
		if bound != nil {
			c.visit(bound, useValue)
		}
	}
	if n.Body == nil {
		return
	}
	if n.Body.X != nil && !c.visit(n.Body, useNone) {
		c.report(n.Body, "value-unused", "Assign a variable, count or call something there.", nil,
			"the body of this loop does nothing: only its value is found, and dropped")
	}
	start, known := Int(0), true
	if n.Start != nil {
		start, known = constant(n.Start)
	}
	stop, end := constant(n.Stop)
	if known && end && start.class() != textual && stop.class() != textual {
		if start.Float() > stop.Float() || start.Float() == stop.Float() && !n.Through {
			c.report(n, "loop-never-runs", "Loops count up: write the smaller number first.", nil,
				"the body never runs: %s starts at %s and the end is %s", n.Var.Text, start, stop)
			return
		}
	}
	if n.Step == nil {
		return
	}
	step, ok := constant(n.Step)
	if !ok || step.class() == textual || step.Float() > 0 || c.changes(n) {
		return
	}
	if known && end {
		c.report(n, "endless-loop", "Write a step above 0, as .i[0 -2> 10).", nil,
			"the loop never ends: %s starts at %s, and the step %s does not bring it to %s", n.Var.Text, start, step, stop)
	}
}

// changes reports whether a loop may change its variable or never come to its
// next turn: a function, and a name with braces, may write anything.
func (c *checker) changes(loop *Loop) (changes bool) {
	Walk(loop.Body, func(n Node) bool {
		var target Node
		switch n := n.(type) {
		case *Call:
			changes = true
		case *SystemCall:
			changes = changes || systemEffect(n) && n.Func != "print"
		case *Assign:
			target = n.X
		case *IncDec:
			target = n.X
		case *Loop:
			target = n.Var
		}
		if target == nil {
			return true
		}
		switch x := Unparen(target).(type) {
		case *Name:
			changes = changes || x.Text == loop.Var.Text || len(innerNames(x.Text)) > 0
		case *Index:
			changes = changes || x.X.Text == loop.Var.Text || len(innerNames(x.X.Text)) > 0
		}
		return true
	})
	return changes || len(innerNames(loop.Var.Text)) > 0
}
