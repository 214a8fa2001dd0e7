package knowledge

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge/internal/eval"
	"github.com/madara-go/madara/knowledge/internal/store"
)

// Errors of reading and writing variables.
var (
	ErrName    = eval.ErrName     // the name is empty, too long, reserved, or has braces where none may be
	ErrKind    = eval.ErrKind     // the value is of a kind that cannot be used so
	ErrIndex   = store.ErrIndex   // an array index is negative or beyond the limit
	ErrQuality = store.ErrQuality // the value there is of higher quality than this process may write
	ErrLimit   = store.ErrLimit   // one of Limits, MaxSteps, or a limit of the parser
)

// Errors of evaluating and waiting.
var (
	ErrMissing   = eval.ErrMissing   // a variable that is not set was read under Strict
	ErrUndefined = eval.ErrUndefined // a function that nobody defined was called
	ErrTimeout   = errors.New("timed out before the expression was true")
)

// Errors of a base.
var (
	ErrClosed   = errors.New("knowledge base is closed")
	ErrNullLock = errors.New("not possible on a knowledge base without a lock")
)

// Errors of bases of other processes.
var (
	ErrAccess  = errors.New("not allowed by the rules of the base")
	ErrRequest = errors.New("not what a knowledge base sends")
)

// EvalError is a fault of a running program: where it happened, through which
// calls, and what it was. errors.Is and errors.As reach Err, which for a failed
// host function is what that function returned.
type EvalError struct {
	Err   error
	Sites []Site // innermost first; at most 16
}

// Site is a place in a program.
type Site struct {
	Program  *karl.Program
	Function string // whose body the program is; "" for a text that was evaluated
	Pos, End karl.Pos
}

func newEvalError(e *eval.Error) error {
	if e == nil {
		return nil
	}
	out := &EvalError{Err: e.Err}
	if inner, ok := e.Err.(*EvalError); ok { // what a function returned of a program it ran
		*out = EvalError{Err: inner.Err, Sites: slices.Clone(inner.Sites)}
	}
	for _, s := range e.Sites {
		if len(out.Sites) == 16 {
			break
		}
		out.Sites = append(out.Sites, Site{
			Program: s.Program, Function: s.Function,
			Pos: s.Program.Position(s.From), End: s.Program.Position(s.To),
		})
	}
	return out
}

// Pos returns the place of the fault.
func (e *EvalError) Pos() karl.Pos {
	if len(e.Sites) == 0 {
		return karl.Pos{}
	}
	return e.Sites[0].Pos
}

// Error returns "name:line:column: message", with the calls that led there in
// parentheses.
func (e *EvalError) Error() string {
	var b strings.Builder
	for i, s := range e.Sites {
		switch i {
		case 0:
			fmt.Fprintf(&b, "%s: %v", s, e.Err)
			continue
		case 1:
			b.WriteString(" (called at ")
		default:
			b.WriteString(", at ")
		}
		b.WriteString(s.String())
	}
	if len(e.Sites) > 1 {
		b.WriteByte(')')
	}
	return b.String()
}

// Unwrap returns Err.
func (e *EvalError) Unwrap() error { return e.Err }

// Snippet returns the line of the fault with a caret under it.
func (e *EvalError) Snippet() string {
	if len(e.Sites) == 0 {
		return ""
	}
	s := e.Sites[0]
	return s.Program.Snippet(s.Pos, s.End)
}

// String returns "name:line:column", with the function's name in place of one
// where the text has none.
func (s Site) String() string {
	name := s.Program.Name
	if name == "" && s.Function != "" {
		name = s.Function + "()"
	}
	if name == "" {
		return s.Pos.String()
	}
	return name + ":" + s.Pos.String()
}
