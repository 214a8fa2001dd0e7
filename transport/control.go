package transport

import (
	"context"
	"fmt"
)

// Control is request and response over one link. All methods may be called by
// many goroutines.
type Control interface {
	// Call sends a request to a target and returns its response, which is the
	// caller's. request may be changed after Call returned. o may be nil. The
	// target sees how much time ctx leaves, and does not serve a request whose
	// time is over. The errors are ErrTimeout (which is also
	// context.DeadlineExceeded), ErrUnreachable, ErrBusy, ErrMethod, ErrClosed,
	// ErrTooLarge, what ctx was cancelled with, and *RemoteError.
	Call(ctx context.Context, target, method string, request []byte, o *CallOptions) (response []byte, err error)

	// Serve answers the requests for a method, a name of 1 to 255 bytes, with
	// handle, which runs on several goroutines at the same time. o may be nil. The
	// errors are ErrClosed, ErrSettings and ErrMethod for a name that is taken or
	// cannot be used.
	Serve(method string, o *ServeOptions, handle Handler) (Service, error)

	// MaxPayload is the longest request or response in bytes.
	MaxPayload() int

	// Stats returns what was counted since the link was opened.
	Stats() Stats

	// Close ends calls and services and waits for handlers that run. It may be
	// called again, but not by a handler.
	Close() error
}

// Handler answers one request. ctx ends when the caller's time is over, when it
// has left, and when the link is closed. The response is taken over. An error
// reaches the caller as *RemoteError, or as ErrBusy if it is that. A panic is an
// error too, without its stack, and counted.
type Handler func(ctx context.Context, r *Request) (response []byte, err error)

// Request is one request that arrived. It is valid until the handler returns.
type Request struct {
	Method   string
	Payload  []byte
	Source   string // as [Message.Source]
	Priority Priority
}

// Priority orders requests. No request is begun while one of a higher class
// waits, but each class that is held back so begins one every 100 ms.
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
	Idempotent bool // is sent again, until ctx ends, if the link breaks before the response
}

// ServeOptions bounds a service, for each priority. Zero fields are defaults.
type ServeOptions struct {
	Workers int // requests that are handled at the same time; 0 is 4, at most 1,024
	Queue   int // requests that wait for them; 0 is 64, at most 65,536. More are answered with ErrBusy
}

// The defaults and bounds of ServeOptions, and of names.
const (
	DefaultWorkers = 4
	MaxWorkers     = 1024
	DefaultQueue   = 64
	MaxQueue       = 65_536
	MaxMethod      = 255 // bytes
	MaxTopic       = 255 // bytes
)

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
