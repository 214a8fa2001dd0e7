package knowledge

import (
	"context"
	"fmt"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge/internal/eval"
	"github.com/madara-go/madara/knowledge/internal/store"
)

// EvalSettings is how an evaluation differs from the usual one. The zero value,
// and a nil pointer, is the default everywhere. It is read during the call only.
// MADARA knows it as EvalSettings, KnowledgeUpdateSettings and
// KnowledgeReferenceSettings.
type EvalSettings struct {
	Delay      bool          // do not send what changed (delay_sending_modifieds)
	LocalOnly  bool          // do not mark what changes to be sent (treat_globals_as_locals)
	SendLocals bool          // mark local variables too; they still never leave the base (treat_locals_as_globals)
	Overwrite  bool          // write over values of higher quality (always_overwrite)
	Strict     bool          // reading a variable that is not set is an error (exception_on_unitialized)
	NoSignal   bool          // wake no waiter (signal_changes)
	NoTrack    bool          // leave changes out of the next difference checkpoint (track_local_changes)
	MaxSteps   uint64        // statements, loop turns and calls before ErrLimit; 0 is no limit
	MaxTime    time.Duration // how long the program may take and hold the lock before ErrLimit; 0 is no limit
	Before     string        // statement to expand and print before the evaluation (pre_print_statement)
	After      string        // the same after it (post_print_statement)

	// SendOnly, unless empty, names the only variables to be sent; the others
	// stay marked (send_list).
	SendOnly []string
}

// WaitSettings is EvalSettings and the times of a wait. The zero value waits
// for ever, and evaluates again on each change of what the expression reads.
type WaitSettings struct {
	EvalSettings

	// Poll is the period of evaluations, on a grid that begins with the wait. An
	// expression with effects is evaluated on the grid only; one without is
	// evaluated on changes whatever Poll is, because nothing else can make it
	// true. Zero means on changes, and for an expression with effects every
	// 100 ms too (poll_frequency, there in seconds).
	Poll time.Duration

	// Timeout ends the wait with ErrTimeout, and an evaluation that takes too long
	// too. Below zero it has passed: the expression is evaluated once. Zero means
	// that only the context ends the wait (max_wait_time, there in seconds, where
	// it is the other way about).
	Timeout time.Duration
}

// mode returns the settings that concern what a program does.
func (s *EvalSettings) mode() eval.Mode {
	var m eval.Mode
	if s.LocalOnly {
		m |= eval.Mode(store.LocalOnly)
	}
	if s.SendLocals {
		m |= eval.Mode(store.SendLocals)
	}
	if s.Overwrite {
		m |= eval.Mode(store.Overwrite)
	}
	if s.NoSignal {
		m |= eval.Mode(store.NoSignal)
	}
	if s.NoTrack {
		m |= eval.Mode(store.NoTrack)
	}
	if s.Strict {
		m |= eval.Strict
	}
	return m
}

// run evaluates a program as the settings say. s and ctx may be nil, which is why
// ctx comes last.
func (s *EvalSettings) run(env *eval.Env, p *eval.Program, ctx context.Context) (karl.Value, *eval.Error) {
	var mode eval.Mode
	var steps uint64
	if s != nil {
		mode, steps = s.mode(), s.MaxSteps
	}
	if ctx != nil && ctx.Done() == nil {
		ctx = nil
	}
	if s != nil && s.MaxTime != 0 {
		if ctx == nil {
			ctx = context.Background()
		}
		within, cancel := context.WithTimeoutCause(ctx, s.MaxTime, fmt.Errorf("the program took longer than %v: %w", s.MaxTime, ErrLimit))
		defer cancel()
		ctx = within
	}
	if ctx == nil && steps == 0 {
		return env.Run(p, mode)
	}
	return env.RunWithin(p, mode, eval.Bounds{MaxSteps: steps, Context: ctx})
}

// Limits bounds what a base holds and what a single step of a program may do.
// Zero fields are the defaults. They do not bound the sum: a program may fill many
// variables with long strings, and runs as long as MaxSteps and the context let
// it. Lower Variables and String for programs from strangers.
type Limits struct {
	Variables int // names; default 1,000,000. It bounds the names of functions too.
	CallDepth int // calls and #eval inside each other; default 256
	Array     int // elements of an array that grows by an index or is made of bytes; default 2^24, at most 2^27
	String    int // bytes of a string that a program makes or reads; default 64 MiB, at most 1 GiB
	Texts     int // texts that Evaluate and Compile remember; default 1,024
	TextBytes int // bytes of those texts and what they were compiled to, about; default 32 MiB
}

func (l Limits) withDefaults() Limits {
	or := func(n *int, fallback int) {
		if *n <= 0 {
			*n = fallback
		}
	}
	or(&l.Variables, 1_000_000)
	or(&l.CallDepth, 256)
	or(&l.Array, 1<<24)
	or(&l.String, 64<<20)
	or(&l.Texts, 1024)
	or(&l.TextBytes, 32<<20)
	// What the machine could not address, or this library not count.
	l.Array, l.String = min(l.Array, 1<<27), min(l.String, 1<<30)
	return l
}
