package inproc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/internal/hub"
	"github.com/madara-go/madara/transport/internal/service"
)

// control is a Control of a network.
type control struct {
	network  *Network
	name     string
	source   string
	counters hub.Counters
	services service.Table
	calls    sync.WaitGroup
	max      int // bytes of a request or response

	mu     sync.Mutex
	closed chan struct{}
	ended  bool
}

// OpenControl returns a Control of the network, which the others call by its
// name. Requests and responses are copied once each. The error is ErrSettings for
// a name that is empty or taken. Of the settings, which may be nil, MaxPayload is
// used.
func (n *Network) OpenControl(name string, s *transport.Settings) (transport.Control, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	c := &control{network: n, name: name, source: "inproc:" + name, closed: make(chan struct{}), max: s.WithDefaults().MaxPayload}
	c.services.Counters = &c.counters
	n.mu.Lock()
	defer n.mu.Unlock()
	if name == "" || n.controls[name] != nil {
		return nil, fmt.Errorf("the name %q is empty or taken: %w", name, transport.ErrSettings)
	}
	if n.controls == nil {
		n.controls = map[string]*control{}
	}
	n.controls[name] = c
	return c, nil
}

func (c *control) Serve(method string, o *transport.ServeOptions, handle transport.Handler) (transport.Service, error) {
	return c.services.Serve(method, o, handle)
}

// call is one call. Its job belongs to the target until done.
type call struct {
	service.Job
	caller   *control
	left     atomic.Bool   // the caller has
	done     chan struct{} // capacity 1
	response []byte
	err      error
}

var calls = sync.Pool{New: func() any { return &call{done: make(chan struct{}, 1)} }}

// keep is the longest payload whose memory a call keeps for the next one.
const keep = 1 << 20

func reply(j *service.Job, response []byte, err error) {
	k := j.Owner.(*call)
	if k.left.Load() {
		k.caller.counters.Drop(transport.DropLate, 1)
	}
	k.response, k.err = response, err
	k.done <- struct{}{}
}

func (c *control) Call(ctx context.Context, to, method string, request []byte, o *transport.CallOptions) ([]byte, error) {
	if o == nil {
		o = &transport.CallOptions{}
	}
	if err := service.CheckCall(method, request, c.max, o); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, service.ContextError(ctx)
	}
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return nil, transport.ErrClosed
	}
	c.calls.Add(1)
	c.mu.Unlock()
	defer c.calls.Done()
	c.network.mu.RLock()
	target := c.network.controls[to]
	c.network.mu.RUnlock()
	c.counters.Calls.Add(1)
	if target == nil {
		return nil, fmt.Errorf("%s of %s: %w", method, to, transport.ErrUnreachable)
	}
	c.counters.Pending.Add(1)
	defer c.counters.Pending.Add(-1)
	k := calls.Get().(*call)
	k.Method, k.Source, k.Priority = method, c.source, o.Priority
	k.Payload = append(k.Payload[:0], request...)
	k.Deadline, _ = ctx.Deadline()
	k.Reply, k.Owner, k.caller = reply, k, c
	c.counters.Sent(len(request))
	target.counters.Received(len(request))
	target.services.Submit(&k.Job, nil)
	var err error
	select {
	case <-k.done:
	default:
		select {
		case <-k.done:
		case <-ctx.Done():
			err = service.ContextError(ctx)
		case <-c.closed:
			err = transport.ErrClosed
		}
	}
	if err != nil {
		// The handler may still work on the payload, so k is not used again.
		k.left.Store(true)
		k.Leave()
		return nil, err
	}
	response, err := k.response, k.err
	payload := k.Payload[:0]
	if cap(payload) > keep {
		payload = nil
	}
	*k = call{done: k.done}
	k.Payload = payload
	calls.Put(k)
	switch {
	case err == nil && len(response) > c.max:
		return nil, fmt.Errorf("%s of %s: a response of %d bytes, at most %d are allowed: %w", method, to, len(response), c.max, transport.ErrTooLarge)
	case err == nil:
		c.counters.Received(len(response))
		target.counters.Sent(len(response))
		return response, nil
	case errors.Is(err, transport.ErrClosed), errors.Is(err, context.Canceled) && target.isClosed():
		err = transport.ErrUnreachable
	case errors.Is(err, context.DeadlineExceeded):
		err = service.Expired(ctx)
	case errors.Is(err, transport.ErrBusy):
		err = transport.ErrBusy
	case errors.Is(err, transport.ErrMethod):
		err = transport.ErrMethod
	default:
		return nil, &transport.RemoteError{Target: to, Method: method, Message: err.Error()}
	}
	return nil, fmt.Errorf("%s of %s: %w", method, to, err)
}

func (c *control) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

func (c *control) MaxPayload() int        { return c.max }
func (c *control) Stats() transport.Stats { return c.counters.Stats() }

func (c *control) Close() error {
	c.services.Inside("Control.Close")
	c.mu.Lock()
	if !c.ended {
		c.ended = true
		close(c.closed)
	}
	c.mu.Unlock()
	n := c.network
	n.mu.Lock()
	if n.controls[c.name] == c {
		delete(n.controls, c.name)
	}
	n.mu.Unlock()
	c.services.End()
	c.services.Close()
	c.calls.Wait()
	return nil
}
