package karl

// Op is an operator of the language.
type Op uint8

// The operators, weakest first.
const (
	_              Op = iota
	OpBoth            // ;   the greatest operand
	OpEither          // ,   the least operand
	OpLast            // ;>  the last operand
	OpImplies         // =>  runs its right side if the left is true, and is the left side
	OpAssign          // =
	OpAddAssign       // +=
	OpSubAssign       // -=
	OpMulAssign       // *=
	OpDivAssign       // /=
	OpAnd             // &&
	OpOr              // ||
	OpEqual           // ==
	OpNotEqual        // !=
	OpLess            // <
	OpLessEqual       // <=
	OpGreater         // >
	OpGreaterEqual    // >=
	OpAdd             // +
	OpSub             // -
	OpMul             // *
	OpDiv             // /
	OpRem             // %
	OpNeg             // -x
	OpPlus            // +x
	OpNot             // !x
	OpInc             // ++
	OpDec             // --

	ops = iota
)

var opTexts = [ops]string{
	OpBoth: ";", OpEither: ",", OpLast: ";>", OpImplies: "=>",
	OpAssign: "=", OpAddAssign: "+=", OpSubAssign: "-=", OpMulAssign: "*=", OpDivAssign: "/=",
	OpAnd: "&&", OpOr: "||",
	OpEqual: "==", OpNotEqual: "!=", OpLess: "<", OpLessEqual: "<=", OpGreater: ">", OpGreaterEqual: ">=",
	OpAdd: "+", OpSub: "-", OpMul: "*", OpDiv: "/", OpRem: "%",
	OpNeg: "-", OpPlus: "+", OpNot: "!", OpInc: "++", OpDec: "--",
}

// String returns the operator as it is written.
func (o Op) String() string {
	if int(o) < len(opTexts) {
		return opTexts[o]
	}
	return ""
}

// precedence is the level of spec section 2, 1 for the weakest; 0 for no operator.
func (o Op) precedence() int {
	switch {
	case o == 0:
		return 0
	case o <= OpLast:
		return 1
	case o == OpImplies:
		return 2
	case o <= OpDivAssign:
		return 3
	case o <= OpOr:
		return 4
	case o <= OpGreaterEqual:
		return 5
	case o <= OpSub:
		return 6
	case o <= OpRem:
		return 7
	}
	return 8
}

// Operator returns the arithmetic operator of a compound assignment, OpAdd for
// OpAddAssign, and 0 for any other.
func (o Op) Operator() Op {
	switch o {
	case OpAddAssign:
		return OpAdd
	case OpSubAssign:
		return OpSub
	case OpMulAssign:
		return OpMul
	case OpDivAssign:
		return OpDiv
	}
	return 0
}
