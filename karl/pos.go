package karl

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Pos is a place in a text. Line and Column count from 1, Column in runes;
// Offset counts bytes from 0. The zero Pos means no place is known.
type Pos struct {
	Offset, Line, Column int
}

// IsValid reports whether the position is known.
func (p Pos) IsValid() bool { return p.Line > 0 }

// String returns "line:column", or "-" for the zero Pos.
func (p Pos) String() string {
	if !p.IsValid() {
		return "-"
	}
	return fmt.Sprintf("%d:%d", p.Line, p.Column)
}

// positionOf finds line and column of a byte offset in src.
func positionOf(src string, offset int) Pos {
	offset = min(max(offset, 0), len(src))
	line := 1 + strings.Count(src[:offset], "\n")
	start := strings.LastIndexByte(src[:offset], '\n') + 1
	return Pos{Offset: offset, Line: line, Column: 1 + utf8.RuneCountInString(src[start:offset])}
}
