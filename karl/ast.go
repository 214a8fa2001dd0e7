package karl

import (
	"sort"
	"unicode/utf8"
)

// Program is a parsed text: what [Parse] returns, what a knowledge base binds,
// and what checker and formatter read. It is immutable and may be shared by
// goroutines.
type Program struct {
	Name   string // as given to Parse; "" for a text without a file
	Source string // the text
	Body   Node   // nil for a text without a statement, whose value is the integer 0
}

// Position returns line and column of a byte offset that a node gave.
func (p *Program) Position(offset int) Pos { return positionOf(p.Source, offset) }

// Positions returns a function that does what [Program.Position] does, faster
// where there are many offsets. Goroutines may call it at the same time.
func (p *Program) Positions() func(offset int) Pos {
	src := p.Source
	starts, ascii := []int{0}, true
	for i := range len(src) {
		if src[i] == '\n' {
			starts = append(starts, i+1)
		}
		ascii = ascii && src[i] < utf8.RuneSelf
	}
	return func(offset int) Pos {
		offset = min(max(offset, 0), len(src))
		line := sort.SearchInts(starts, offset+1)
		column := offset - starts[line-1]
		if !ascii {
			column = utf8.RuneCountInString(src[starts[line-1]:offset])
		}
		return Pos{Offset: offset, Line: line, Column: column + 1}
	}
}

// Node is a node of a program's tree: one of the pointer types of this file.
// Pos and End are byte offsets into the source: of the first byte, and behind
// the last one.
type Node interface {
	Pos() int
	End() int
}

// Span is the place of a node.
type Span struct{ From, To int32 }

// Pos returns the offset of the node's first byte.
func (s Span) Pos() int { return int(s.From) }

// End returns the offset behind the node's last byte.
func (s Span) End() int { return int(s.To) }

type (
	// Literal is a number, a string, or one of true, false, nan and inf.
	Literal struct {
		Span
		Value Value
		Text  string // as written, with quotes; "" when folding made the literal
	}

	// Name is a variable. Where Text contains braces, it is expanded at every use.
	Name struct {
		Span
		Text string
	}

	// Index is an element of an array variable: X[At].
	Index struct {
		Span
		X  *Name
		At Node
	}

	// Paren is an expression in parentheses. X is nil for an empty statement,
	// "()" or "(;)", whose value is the integer 0 where it has one.
	Paren struct {
		Span
		X Node
	}

	// Unary is one of OpNeg, OpPlus and OpNot before X.
	Unary struct {
		Span
		Op Op
		X  Node
	}

	// IncDec is ++ or -- (OpInc, OpDec) before or after X. After it, X is a
	// *Name or *Index; before it, it may be anything, perhaps in parentheses.
	IncDec struct {
		Span
		Op      Op
		Postfix bool
		X       Node
	}

	// Binary is X Op Y for arithmetic, comparisons, OpAnd, OpOr and OpImplies.
	Binary struct {
		Span
		Op   Op
		X, Y Node
	}

	// Assign is X = Y (OpAssign) or a compound assignment (OpAddAssign…). X is
	// a *Name or *Index, perhaps in parentheses.
	Assign struct {
		Span
		Op   Op
		X, Y Node
	}

	// Sequence is a list of statements: Stmts[0] Ops[0] Stmts[1] Ops[1]…, left
	// to right, where an operator is OpBoth (;), OpEither (,) or OpLast (;>).
	// It has at least two statements; empty ones are left out.
	Sequence struct {
		Span
		Stmts []Node
		Ops   []Op
	}

	// Array is an array literal with at least one element, or [] with none.
	Array struct {
		Span
		Elems []Node
	}

	// Call is a call of a function of the knowledge base.
	Call struct {
		Span
		Name string
		Args []Node
	}

	// SystemCall is a call of one of the language's own functions, #Name(Args).
	SystemCall struct {
		Span
		Name string // as written, without #
		Func string // the name among its aliases that the language goes by, "to_string" written "string"
		Args []Node
	}

	// Loop is Var[Start -Step> Stop) Body. Start and Step are nil where the text
	// has none (0 and 1). Through says that it closed with "]" and includes Stop.
	// Body is nil for the form without a body, and a *Paren otherwise.
	Loop struct {
		Span
		Var               *Name
		Start, Step, Stop Node
		Through           bool
		Body              *Paren
	}
)

// Unparen returns the node inside any parentheses around n. It returns nil for
// an empty statement.
func Unparen(n Node) Node {
	for {
		p, ok := n.(*Paren)
		if !ok {
			return n
		}
		if p.X == nil {
			return nil
		}
		n = p.X
	}
}
