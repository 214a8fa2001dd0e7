package transport

import (
	"context"
	"errors"
)

// Errors of links.
var (
	ErrClosed   = errors.New("transport is closed")
	ErrTooLarge = errors.New("payload is too large")
	ErrTopic    = errors.New("topic cannot be used on this link")
	ErrSettings = errors.New("setting is out of range")
)

// Errors of calls.
var (
	ErrTimeout     error = timeoutError{}
	ErrUnreachable       = errors.New("target cannot be reached")
	ErrBusy              = errors.New("target is busy")
	ErrMethod            = errors.New("method is not served")
)

// Errors of a Sealer's Open.
var (
	ErrUnknownKey = errors.New("not sealed with a key that is known")
	ErrForged     = errors.New("forged, or changed on the way")
	ErrReplayed   = errors.New("came before")
)

type timeoutError struct{}

func (timeoutError) Error() string        { return "no response in time" }
func (timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }
