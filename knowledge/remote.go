package knowledge

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge/internal/store"
	"github.com/madara-go/madara/transport"
)

// Remote is a base of another process that [Base.Serve] offers there. Its methods
// are those of Base, take a context, and go over the network each time. It may be
// used by many goroutines. Beside the errors of Base they return those of
// transport.Control.Call, and ErrAccess for what the other side does not allow.
// What only reads is sent again, until the context ends, if the connection breaks
// after it was sent.
type Remote struct {
	control transport.Control
	target  string

	// Priority is that of the calls. It may be set before the first one.
	Priority transport.Priority
}

// Dial returns the base that serves at a target of a Control. It does not
// connect before the first call.
func Dial(c transport.Control, target string) *Remote { return &Remote{control: c, target: target} }

// call calls a method and returns its response without the status.
func (r *Remote) call(ctx context.Context, method string, request []byte, idempotent bool) ([]byte, error) {
	response, err := r.control.Call(ctx, r.target, method, request, &transport.CallOptions{Priority: r.Priority, Idempotent: idempotent})
	if errors.Is(err, transport.ErrTimeout) {
		return nil, &remoteError{err.Error(), errors.Join(err, ErrTimeout)}
	}
	if err != nil {
		return nil, err
	}
	if len(response) == 0 {
		return nil, r.strange(method, "nothing")
	}
	code, text := response[0], response[1:]
	switch {
	case code == statusOK:
		return text, nil
	case int(code) < len(remoteErrors):
		return nil, &remoteError{fmt.Sprintf("%s: %s", r.target, text), remoteErrors[code]}
	}
	return nil, &transport.RemoteError{Target: r.target, Method: method, Message: string(text)}
}

// remoteError is an error of a call or of the other base, with its text.
type remoteError struct {
	text string
	is   error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.is }

func (r *Remote) strange(method, what string) error {
	return fmt.Errorf("%s of %s answered with %s: %w", method, r.target, what, ErrRequest)
}

// one calls a method that answers with one variable or none.
func (r *Remote) one(ctx context.Context, method string, request []byte, idempotent bool) (Record, error) {
	response, err := r.call(ctx, method, request, idempotent)
	if err != nil || len(response) == 0 {
		return Record{}, err
	}
	_, rec, rest, err := readRecord(response)
	if err != nil {
		return Record{}, fmt.Errorf("%s of %s: %w", method, r.target, err)
	}
	if len(rest) > 0 {
		return Record{}, r.strange(method, "more than a value")
	}
	return rec, nil
}

// Get returns the value of a variable, the zero Value if it has none.
func (r *Remote) Get(ctx context.Context, name string) (karl.Value, error) {
	rec, err := r.one(ctx, methodGet, []byte(name), true)
	return rec.Value, err
}

// Lookup returns a copy of a variable, and whether it has a value.
func (r *Remote) Lookup(ctx context.Context, name string) (Record, bool, error) {
	rec, err := r.one(ctx, methodGet, []byte(name), true)
	return rec, err == nil && rec.Value.Exists(), err
}

// Set writes a variable, which the other base sends to its peers. If the
// connection breaks meanwhile, it may have been written or not.
func (r *Remote) Set(ctx context.Context, name string, v karl.Value) error {
	if !v.Exists() {
		return store.Errorf(ErrKind, "setting %q to nothing", clipName(name))
	}
	if err := checkName(name); err != nil {
		return err
	}
	_, err := r.call(ctx, methodSet, appendRecord(nil, name, Record{Value: v}), false)
	return err
}

// Evaluate runs a program in the other base and returns its value. If the
// connection breaks meanwhile, it may have run or not.
func (r *Remote) Evaluate(ctx context.Context, src string) (karl.Value, error) {
	rec, err := r.one(ctx, methodEvaluate, []byte(src), false)
	return rec.Value, err
}

// Wait returns when an expression is true in the other base, with its value.
func (r *Remote) Wait(ctx context.Context, src string) (karl.Value, error) {
	rec, err := r.one(ctx, methodWait, []byte(src), true)
	return rec.Value, err
}

// All returns the variables whose names start with prefix, in the order of the
// names. They are read in pages of some megabytes: each is of one moment. What
// goes wrong is the error of the last turn, which has no name.
func (r *Remote) All(ctx context.Context, prefix string) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		after := ""
		for {
			page, more, err := r.page(ctx, prefix, after)
			if err != nil {
				yield(Update{}, err)
				return
			}
			for _, u := range page {
				if !yield(u, nil) {
					return
				}
				after = u.Name
			}
			if !more {
				return
			}
		}
	}
}

func (r *Remote) page(ctx context.Context, prefix, after string) (page []Update, more bool, err error) {
	response, err := r.call(ctx, methodSnapshot, appendSnapshotRequest(prefix, after), true)
	if err != nil {
		return nil, false, err
	}
	if len(response) == 0 {
		return nil, false, r.strange(methodSnapshot, "nothing")
	}
	more, response = response[0] != 0, response[1:]
	for last := after; len(response) > 0; {
		var u Update
		if u.Name, u.Record, response, err = readRecord(response); err != nil {
			return nil, false, fmt.Errorf("snapshot of %s: %w", r.target, err)
		}
		if u.Name <= last {
			return nil, false, r.strange(methodSnapshot, "names out of order")
		}
		last = u.Name
		page = append(page, u)
	}
	if more && len(page) == 0 {
		return nil, false, r.strange(methodSnapshot, "no end")
	}
	return page, more, nil
}

// Join takes over the variables of another base whose names start with prefix, by
// the rules for what peers send: values of higher quality or a later clock stay.
// It returns how many were taken. A base that attaches to an Event first and then
// joins a peer misses nothing: whichever comes first, the later value stays.
// Local names are left out.
func (b *Base) Join(ctx context.Context, r *Remote, prefix string) (taken int, err error) {
	after := ""
	for more := true; more; {
		var page []Update
		if page, more, err = r.page(ctx, prefix, after); err != nil {
			return taken, err
		}
		n, err := b.take(page)
		taken += n
		if err != nil {
			return taken, err
		}
		if len(page) > 0 {
			after = page[len(page)-1].Name
		}
	}
	return taken, nil
}

func (b *Base) take(page []Update) (taken int, err error) {
	b.lock("Base.Join")
	defer b.unlock()
	if b.closed {
		return 0, ErrClosed
	}
	for _, u := range page {
		if u.Name[0] == '.' || len(u.Name) > maxName || u.Clock > store.MaxClock {
			continue
		}
		rec, err := b.store.Intern(u.Name)
		if err != nil {
			return taken, err
		}
		if b.store.Receive(rec, u.Value, u.Clock, u.Quality, nil) == store.Accepted {
			taken++
		}
	}
	if taken > 0 {
		b.noteHeard()
	}
	return taken, nil
}
