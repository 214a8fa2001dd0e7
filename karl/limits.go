package karl

import (
	"fmt"
	"math"
)

// The limits that a zero [Parser] keeps.
const (
	DefaultMaxSource  = 4 << 20 // bytes of a text
	DefaultMaxNesting = 1000    // brackets, prefix operators and right sides within each other
	DefaultMaxTokens  = 100_000 // tokens from one ; outside brackets to the next
)

// maxFaults is the greatest number of faults that [Parse] returns.
const maxFaults = 20

// Parser parses texts under limits, so that a text from anywhere can be parsed
// without risk to memory or stack. The zero Parser has the default limits; it
// may be copied and used by goroutines at the same time.
type Parser struct {
	MaxSource  int // bytes; 0 is DefaultMaxSource
	MaxNesting int // levels; 0 is DefaultMaxNesting
	MaxTokens  int // of one statement; 0 is DefaultMaxTokens
}

// limits returns p with the defaults filled in. Offsets are kept in 32 bits.
func (p Parser) limits() Parser {
	or := func(n, fallback int) int {
		if n <= 0 {
			return fallback
		}
		return min(n, math.MaxInt32-1)
	}
	return Parser{
		MaxSource:  or(p.MaxSource, DefaultMaxSource),
		MaxNesting: or(p.MaxNesting, DefaultMaxNesting),
		MaxTokens:  or(p.MaxTokens, DefaultMaxTokens),
	}
}

func tooDeep(limit int) string {
	return fmt.Sprintf("nested deeper than %d levels", limit)
}
