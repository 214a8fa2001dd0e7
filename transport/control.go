package transport

import (
	"context"
	"fmt"
)

// Control is request and response over one link. All methods may be called by
// many goroutines.
type Control interface {
	// Call sends a request to a target and returns its response, which is the
	// caller's. It copies request before it returns. o may be nil. The errors are
	// ErrTimeout (which is also context.DeadlineExceeded), ErrUnreachable,
	// ErrBusy, ErrClosed, ErrTooLarge and *RemoteError.
	Call(ctx context.Context, target, method string, request []byte, o *CallOptions) (response []byte, err error)

	// Serve answers the requests for a method. o may be nil.
	Serve(method string, o *ServeOptions, handle Handler) (Service, error)

	// MaxPayload is the longest request or response in bytes.
	MaxPayload() int

	// Stats returns what was counted since the link was opened.
	Stats() Stats

	// Close ends calls and services and waits for handlers that run. It may be
	// called again, but not by a handler.
	Close() error
}

// Handler answers one request. ctx ends when the caller's time is over. The
// response is taken over. An error reaches the caller as *RemoteError.
type Handler func(ctx context.Context, r *Request) (response []byte, err error)

// Request is one request that arrived. It is valid until the handler returns.
type Request struct {
	Method   string
	Payload  []byte
	Source   string // as [Message.Source]
	Priority Priority
}

// Priority orders requests: those of a higher class go first.
type Priority int8

// The priorities.
const (
	Background Priority = iota - 1
	Normal              // the zero value
	High
	Urgent
)

// CallOptions is how a call differs from the default, the zero value.
type CallOptions struct {
	Priority   Priority
	Idempotent bool // may be sent again if the link broke before the response
}

// ServeOptions bounds a service, for each priority. Zero fields are defaults.
type ServeOptions struct {
	Workers int // requests that are handled at the same time; 0 is 4
	Queue   int // requests that wait for them; 0 is 64. More are answered with ErrBusy
}

// Service is one method that is served.
type Service interface {
	// Close ends it; after Close no handler runs.
	Close() error
}

// RemoteError is what a handler at the other end returned.
type RemoteError struct {
	Target, Method string
	Message        string
}

func (e *RemoteError) Error() string {
	return fmt.Sprintf("%s of %s failed: %s", e.Method, e.Target, e.Message)
}
