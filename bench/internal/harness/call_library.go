package harness

import (
	"context"
	"slices"
	"time"

	"github.com/madara-go/madara/transport"
)

// The gateway's workers and queue are enough for the calls that are to time out.
const (
	gatewayWorkers = 64
	gatewayQueue   = 1 << 14
)

// lateness is how long after the caller gave up the late answers come.
const lateness = 10 * time.Millisecond

// libraryControl is a Control of the library and what a caller calls.
type libraryControl struct {
	transport.Control
	target string
}

func serveLibrary(e *Endpoint, c *controlPeer) (*libraryControl, error) {
	link, err := openControl(e, e.Address)
	if err != nil {
		return nil, err
	}
	methods := map[string]transport.Handler{
		methodEcho: func(_ context.Context, r *transport.Request) ([]byte, error) { return c.handle(r.Payload), nil },
		methodNever: func(ctx context.Context, r *transport.Request) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		methodLate: func(ctx context.Context, r *transport.Request) ([]byte, error) {
			<-ctx.Done()
			time.Sleep(lateness)
			return slices.Clone(r.Payload), nil
		},
	}
	for name, handle := range methods {
		o := &transport.ServeOptions{Workers: gatewayWorkers, Queue: gatewayQueue}
		if name == methodEcho {
			o = nil
		}
		if _, err := link.Serve(name, o, handle); err != nil {
			link.Close()
			return nil, err
		}
	}
	return &libraryControl{Control: link}, nil
}

func dialLibrary(e *Endpoint) (caller, error) {
	link, err := openControl(e, "")
	if err != nil {
		return nil, err
	}
	return &libraryControl{link, e.Address}, nil
}

var (
	optionsHigh = &transport.CallOptions{Priority: transport.High}
	optionsLow  = &transport.CallOptions{Priority: transport.Background}
)

func (l *libraryControl) call(ctx context.Context, method string, request []byte, high, low bool) ([]byte, error) {
	var o *transport.CallOptions
	switch {
	case high:
		o = optionsHigh
	case low:
		o = optionsLow
	}
	return l.Call(ctx, l.target, method, request, o)
}

func (l *libraryControl) close() error { return l.Close() }
