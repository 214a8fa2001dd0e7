package karl

import (
	"io"

	"github.com/alecthomas/participle/v2/lexer"
)

// The types of tokens, besides lexer.EOF.
const (
	tokenBad     lexer.TokenType = iota + 1 // what can be no token; badToken says why
	tokenName                               // a variable or function, or a reserved word
	tokenInteger                            //
	tokenDouble                             //
	tokenString                             // with its quotes
	tokenSystem                             // #name

	tokenOpenParen    // (
	tokenOpenArray    // [ that begins an array literal
	tokenOpenIndex    // [ after a name
	tokenOpenLoop     // [ after a name, with a loop arrow behind it
	tokenCloseParen   // )
	tokenCloseBracket // ]

	tokenNot // !
	tokenInc // ++
	tokenDec // --

	// The separators and the binary operators.
	tokenBoth
	tokenEither
	tokenLast
	tokenImplies
	tokenAssign
	tokenAddAssign
	tokenSubAssign
	tokenMulAssign
	tokenDivAssign
	tokenAnd
	tokenOr
	tokenEqual
	tokenNotEqual
	tokenLess
	tokenLessEqual
	tokenGreater
	tokenGreaterEqual
	tokenAdd
	tokenSub
	tokenMul
	tokenDiv
	tokenRem

	tokenTypes = iota + 1
)

// operators gives the operator of a token between two operands, and levels its
// precedence; both are 0 for all other tokens.
var operators, levels = func() (ops [tokenTypes]Op, levels [tokenTypes]int8) {
	for t := tokenBoth; t < tokenTypes; t++ {
		ops[t] = OpBoth + Op(t-tokenBoth)
		levels[t] = int8(ops[t].precedence())
	}
	return ops, levels
}()

func isSeparator(t lexer.TokenType) bool { return t >= tokenBoth && t <= tokenLast }

func isOpener(t lexer.TokenType) bool { return t >= tokenOpenParen && t <= tokenOpenLoop }

func isNumber(t lexer.TokenType) bool { return t == tokenInteger || t == tokenDouble }

// beginsOperand reports whether an operand can begin with the token, prefix
// operators aside.
func beginsOperand(t lexer.TokenType) bool {
	return t >= tokenName && t <= tokenOpenLoop
}

// endsOperand reports whether an operand can end with the token.
func endsOperand(t lexer.TokenType) bool {
	switch t {
	case tokenName, tokenInteger, tokenDouble, tokenString, tokenCloseParen, tokenCloseBracket, tokenInc, tokenDec:
		return true
	}
	return false
}

// definition makes the language's tokens known to participle.
type definition struct{}

// Symbols implements lexer.Definition.
func (definition) Symbols() map[string]lexer.TokenType {
	symbols := map[string]lexer.TokenType{
		"EOF": lexer.EOF, "Bad": tokenBad, "Name": tokenName, "Integer": tokenInteger, "Double": tokenDouble,
		"String": tokenString, "System": tokenSystem, "(": tokenOpenParen, "Array[": tokenOpenArray,
		"Index[": tokenOpenIndex, "Loop[": tokenOpenLoop, ")": tokenCloseParen, "]": tokenCloseBracket,
		"!": tokenNot, "++": tokenInc, "--": tokenDec,
	}
	for t := tokenBoth; t < tokenTypes; t++ {
		symbols[operators[t].String()] = t
	}
	return symbols
}

// Lex implements lexer.Definition. The lexer reads the first piece of the text.
func (definition) Lex(_ string, r io.Reader) (lexer.Lexer, error) {
	src, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return newScanner(string(src), Parser{}.limits()), nil
}
