package knowledge

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge/internal/store"
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/wire"
)

// Rules is what callers of a base that [Base.Serve] offers may do. The zero
// value, and a nil pointer, lets them read, write and wait for all variables but
// local ones, and evaluate nothing.
type Rules struct {
	// The prefixes of the names that may be used with each method. nil means all
	// names but local ones, an empty slice none; a local name, which begins with a
	// dot, needs a prefix that does so too.
	Get, Set, Snapshot, Wait []string

	// Evaluate lets callers run any program, which may read and write every
	// variable, and wait with any expression.
	Evaluate bool

	// Allow, unless nil, is asked in addition: source is who calls, as
	// transport.Request.Source, and name the variable, the prefix of a snapshot or
	// the program. It runs on many goroutines, and not under the lock.
	Allow func(source, method, name string) bool

	MaxSteps uint64        // of a program or an expression; 0 is 1,000,000
	MaxTime  time.Duration // the same, while the lock is held; 0 is 100 ms, at most a minute
	Waits    int           // waits at the same time for each priority, at most 1,024; 0 is 64. One more waits for its turn
}

// The methods of a base.
const (
	methodGet      = "get"
	methodSet      = "set"
	methodEvaluate = "evaluate"
	methodSnapshot = "snapshot"
	methodWait     = "wait"
)

// The defaults of Rules.
const (
	defaultRemoteSteps = 1_000_000
	defaultRemoteTime  = 100 * time.Millisecond
	maxRemoteTime      = time.Minute
	defaultWaits       = 64
)

// remoteErrors are the errors that the other end gets as what they are, by their
// place here; a code is never given to another error.
var remoteErrors = []error{
	1: ErrName, 2: ErrKind, 3: ErrIndex, 4: ErrQuality, 5: ErrLimit, 6: ErrMissing, 7: ErrUndefined,
	8: ErrTimeout, 9: ErrClosed, 10: ErrNullLock, 11: ErrAccess, 12: ErrRequest,
}

const (
	statusOK    = 0
	statusError = 255 // of no kind that the other end knows
)

// service answers requests for a base.
type service struct {
	b     *Base
	rules Rules
	each  []transport.Service

	once sync.Once
	err  error
}

// Serve lets others read, write and wait for variables, and if the rules say so
// evaluate, through a Control: it answers the methods get, set, snapshot, wait and
// evaluate, which [Dial] calls. What a caller sets or evaluates is sent to peers
// as by Send. The service ends with its Close or that of the base, which wait for
// requests that are being answered. The errors are those of Control.Serve,
// ErrClosed and, for a base without a lock, ErrNullLock. r may be nil.
func (b *Base) Serve(c transport.Control, r *Rules) (transport.Service, error) {
	if b.null {
		return nil, ErrNullLock
	}
	s := &service{b: b}
	if r != nil {
		s.rules = *r
		for _, list := range []*[]string{&s.rules.Get, &s.rules.Set, &s.rules.Snapshot, &s.rules.Wait} {
			*list = slices.Clone(*list)
		}
	}
	if s.rules.MaxSteps == 0 {
		s.rules.MaxSteps = defaultRemoteSteps
	}
	switch {
	case s.rules.MaxTime < 0 || s.rules.MaxTime > maxRemoteTime:
		return nil, fmt.Errorf("knowledge.Rules.MaxTime is %v, allowed is 0 to %v: %w", s.rules.MaxTime, maxRemoteTime, transport.ErrSettings)
	case s.rules.MaxTime == 0:
		s.rules.MaxTime = defaultRemoteTime
	}
	waits := s.rules.Waits
	if waits == 0 {
		waits = defaultWaits
	}
	for _, m := range []struct {
		method string
		o      *transport.ServeOptions
		answer func(context.Context, *transport.Request) ([]byte, error)
	}{
		{methodGet, nil, s.get},
		{methodSet, nil, s.set},
		{methodSnapshot, nil, s.snapshot},
		{methodEvaluate, nil, s.evaluate},
		{methodWait, &transport.ServeOptions{Workers: waits, Queue: 1}, s.wait},
	} {
		one, err := c.Serve(m.method, m.o, func(ctx context.Context, r *transport.Request) ([]byte, error) {
			response, err := m.answer(ctx, r)
			if err != nil && ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				return errorResponse(err), nil
			}
			return response, nil
		})
		if err != nil {
			s.Close()
			return nil, err
		}
		s.each = append(s.each, one)
	}
	b.lock("Base.Serve")
	closed := b.closed
	if !closed {
		b.services = append(b.services, s)
	}
	b.unlock()
	if closed {
		s.Close()
		return nil, ErrClosed
	}
	return s, nil
}

// Close is transport.Service.Close.
func (s *service) Close() error {
	s.once.Do(func() {
		for _, one := range s.each {
			s.err = errors.Join(s.err, one.Close())
		}
		s.b.lock("Service.Close")
		s.b.services = slices.DeleteFunc(s.b.services, func(x *service) bool { return x == s })
		s.b.unlock()
	})
	return s.err
}

func errorResponse(err error) []byte {
	code := byte(statusError)
	for i, known := range remoteErrors {
		if known != nil && errors.Is(err, known) {
			code = byte(i)
			break
		}
	}
	return append([]byte{code}, err.Error()...)
}

// may returns an error unless a caller may use a name.
func (s *service) may(r *transport.Request, prefixes []string, name string) error {
	if allows(prefixes, name) && (s.rules.Allow == nil || s.rules.Allow(r.Source, r.Method, name)) {
		return nil
	}
	return fmt.Errorf("%s of %q by %s: %w", r.Method, clipName(name), r.Source, ErrAccess)
}

func allows(prefixes []string, name string) bool {
	local := strings.HasPrefix(name, ".")
	if prefixes == nil {
		return !local
	}
	return slices.ContainsFunc(prefixes, func(p string) bool {
		return strings.HasPrefix(name, p) && (!local || strings.HasPrefix(p, "."))
	})
}

// appendRecord appends a variable with its metadata; nothing if it has no value.
func appendRecord(dst []byte, name string, r Record) []byte {
	if !r.Value.Exists() {
		return dst
	}
	dst = binary.BigEndian.AppendUint64(dst, r.Clock)
	dst = binary.BigEndian.AppendUint32(dst, r.Quality)
	dst = binary.BigEndian.AppendUint32(dst, r.WriteQuality)
	return wire.AppendRecord(dst, name, r.Value, uint64(r.Time))
}

// readRecord reads what appendRecord wrote, and returns what is behind it.
func readRecord(b []byte) (name string, r Record, rest []byte, err error) {
	if len(b) < 16 {
		return "", r, nil, fmt.Errorf("%d bytes where a variable should be: %w", len(b), ErrRequest)
	}
	r.Clock, r.Quality, r.WriteQuality = binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])
	var w wire.Record
	if rest, err = wire.ParseRecord(b[16:], &w); err != nil {
		return "", r, nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	r.Value, r.Time = w.Value, time.Duration(w.Time)
	return string(w.Name), r, rest, nil
}

// valueName stands where a value goes alone.
const valueName = "value"

func (s *service) get(_ context.Context, r *transport.Request) ([]byte, error) {
	name := string(r.Payload)
	if err := checkName(name); err != nil {
		return nil, err
	}
	if err := s.may(r, s.rules.Get, name); err != nil {
		return nil, err
	}
	rec, _ := s.b.Lookup(name)
	return appendRecord([]byte{statusOK}, name, rec), nil
}

func (s *service) set(ctx context.Context, r *transport.Request) ([]byte, error) {
	name, rec, rest, err := readRecord(r.Payload)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes behind the value: %w", len(rest), ErrRequest)
	}
	if err == nil {
		err = s.may(r, s.rules.Set, name)
	}
	if err == nil {
		err = s.b.Set(name, rec.Value)
	}
	if err != nil {
		return nil, err
	}
	s.b.Send(ctx) // failures are counted, as those of Evaluate
	return []byte{statusOK}, nil
}

func (s *service) evaluate(ctx context.Context, r *transport.Request) ([]byte, error) {
	src := string(r.Payload)
	if !s.rules.Evaluate {
		return nil, fmt.Errorf("evaluate is not offered: %w", ErrAccess)
	}
	if err := s.may(r, []string{"", "."}, src); err != nil {
		return nil, err
	}
	v, err := s.b.EvaluateContext(ctx, src, &EvalSettings{MaxSteps: s.rules.MaxSteps, MaxTime: s.rules.MaxTime})
	if err != nil {
		return nil, err
	}
	return appendRecord([]byte{statusOK}, valueName, Record{Value: v}), nil
}

func (s *service) wait(ctx context.Context, r *transport.Request) ([]byte, error) {
	p, err := karl.Parse("", string(r.Payload))
	if err != nil {
		return nil, err
	}
	if err := s.mayWait(r, p); err != nil {
		return nil, err
	}
	e, err := s.b.Bind(p)
	if err != nil {
		return nil, err
	}
	if !s.rules.Evaluate && !e.Pure() {
		return nil, fmt.Errorf("waiting with effects: %w", ErrAccess)
	}
	v, err := e.Wait(ctx, &WaitSettings{EvalSettings: EvalSettings{MaxSteps: s.rules.MaxSteps, MaxTime: s.rules.MaxTime}})
	if err != nil {
		return nil, err
	}
	return appendRecord([]byte{statusOK}, valueName, Record{Value: v}), nil
}

// mayWait looks at an expression before it is bound, which makes its names.
func (s *service) mayWait(r *transport.Request, p *karl.Program) (err error) {
	if s.rules.Evaluate {
		return s.may(r, []string{"", "."}, p.Source)
	}
	if p.Body == nil {
		return nil
	}
	karl.Walk(p.Body, func(n karl.Node) bool {
		if err != nil {
			return false
		}
		switch n := n.(type) {
		case *karl.Name:
			if strings.ContainsAny(n.Text, "{}") {
				err = fmt.Errorf("waiting for %q, a name with braces: %w", clipName(n.Text), ErrAccess)
			} else {
				err = s.may(r, s.rules.Wait, n.Text)
			}
		case *karl.Call, *karl.SystemCall, *karl.Assign, *karl.IncDec, *karl.Loop:
			err = fmt.Errorf("waiting with calls or effects: %w", ErrAccess)
		}
		return err == nil
	})
	return err
}

// snapshotPage is about how many bytes one response of a snapshot has.
const snapshotPage = 4 << 20

// snapshot answers with variables in the order of their names: those that begin
// with a prefix and come after a name. The first byte behind the status says
// whether there are more.
func (s *service) snapshot(_ context.Context, r *transport.Request) ([]byte, error) {
	prefix, after, err := snapshotRequest(r.Payload)
	if err == nil && s.rules.Snapshot != nil && !slices.ContainsFunc(s.rules.Snapshot, func(p string) bool {
		return strings.HasPrefix(prefix, p) || strings.HasPrefix(p, prefix)
	}) {
		err = fmt.Errorf("%s of %q by %s: %w", r.Method, clipName(prefix), r.Source, ErrAccess)
	}
	if err == nil && s.rules.Allow != nil && !s.rules.Allow(r.Source, r.Method, prefix) {
		err = fmt.Errorf("%s of %q by %s: %w", r.Method, clipName(prefix), r.Source, ErrAccess)
	}
	if err != nil {
		return nil, err
	}
	b := s.b
	out := []byte{statusOK, 0}
	b.lock("a snapshot")
	defer b.unlock()
	if b.closed {
		return nil, ErrClosed
	}
	records := b.store.WithPrefix(prefix)
	from, found := slices.BinarySearchFunc(records, after, func(x *store.Record, name string) int { return strings.Compare(x.Name(), name) })
	if found {
		from++
	}
	for _, x := range records[from:] {
		rec, ok := lookup(x)
		if !ok || !allows(s.rules.Snapshot, x.Name()) {
			continue
		}
		size := len(out)
		if size > 2 && size+wire.RecordSize(x.Name(), rec.Value) > snapshotPage {
			out[1] = 1
			break
		}
		out = appendRecord(out, x.Name(), rec)
	}
	return out, nil
}

func appendSnapshotRequest(prefix, after string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(prefix)))
	return append(append(b, prefix...), after...)
}

func snapshotRequest(b []byte) (prefix, after string, err error) {
	if len(b) < 4 || uint64(binary.BigEndian.Uint32(b)) > uint64(len(b)-4) || len(b) > 4+2*maxName {
		return "", "", fmt.Errorf("a snapshot with %d bytes: %w", len(b), ErrRequest)
	}
	n := 4 + int(binary.BigEndian.Uint32(b))
	return string(b[4:n]), string(b[n:]), nil
}
