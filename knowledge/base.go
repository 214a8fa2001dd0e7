package knowledge

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"iter"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge/internal/eval"
	"github.com/madara-go/madara/knowledge/internal/store"
)

// Base is a knowledge base: named variables, the programs that work on them, and
// who waits for them. All methods may be called from many goroutines at the same
// time, but for a base made WithNullLock. A method called from a function that
// runs under the base's lock panics; such functions use the Guard they are given.
// MADARA knows it as KnowledgeBase.
type Base struct {
	mu     sync.Mutex
	null   bool
	closed bool

	// Who runs code of the user under the lock. While somebody does, lease holds
	// the goroutine's number and that of the hold, and guards are about.
	lease    atomic.Uint64
	lent     bool   // lease is set
	lentTo   string // what is run, for messages; read by the same goroutine only
	locked   bool   // under the null lock only
	callouts int    // Update and Await predicates that run; functions count in env.Hosts

	evaluating bool // the hold is that of an evaluation, which nobody defers the end of

	store store.Store
	env   *eval.Env
	texts textCache

	id      string
	log     *slog.Logger
	limits  Limits
	calls   []*Call
	printer printer
	sender  sender
	done    chan struct{} // closed by Close when it begins

	finished chan struct{} // closed by Close when it ends

	attachments []*Attachment
	services    []*service
	manual      bool // Send is the only call that sends
	heard       bool // a peer's value was accepted
	late        bool // what was set waits for long to be sent: to be logged
	warned      bool // it was, once
}

// Record is a copy of a variable: its value and what is known about it.
type Record struct {
	Value        karl.Value
	Time         time.Duration // of insertion, by the host's monotonic clock
	Clock        uint64        // Lamport time
	Quality      uint32        // of the value
	WriteQuality uint32        // what this process writes with
}

// maxName is the longest name of a variable or function, in bytes.
const maxName = store.MaxName

// New returns an empty base.
func New(opts ...Option) *Base {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	b := &Base{
		null: o.nullLock, id: o.id, log: o.logger,
		limits: o.limits.withDefaults(), done: make(chan struct{}), finished: make(chan struct{}),
	}
	if b.id == "" {
		b.id = newID()
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	now := o.clock
	if now == nil {
		start, host := time.Now(), hostClock()
		now = func() time.Duration { return host + time.Since(start) }
	}
	if o.clock != nil {
		now = steady(o.clock)
	}
	b.store.Init(func() int64 { return int64(now()) }, store.Limits{Variables: b.limits.Variables, Array: b.limits.Array})
	b.store.Exact = o.exact
	for _, t := range o.traces {
		b.store.Trace(t.pattern, t.capacity)
	}
	b.env = eval.NewEnv(&b.store, eval.Limits{CallDepth: b.limits.CallDepth, String: b.limits.String, Functions: b.limits.Variables})
	b.env.Files, b.env.Environ, b.env.Sleep = o.files, o.env, o.sleep
	b.env.Print = b.print
	b.env.Goexit = b.goexit
	b.texts.init(b.limits.Texts, b.limits.TextBytes)
	b.printer.init(o.output, b.log)
	b.sender.sinks, b.manual = o.sinks, o.manual
	b.sender.active = len(o.sinks) > 0 && !o.manual
	return b
}

// steady keeps a clock of the user that panics from leaving the lock behind: its
// last time stands.
func steady(clock func() time.Duration) func() time.Duration {
	var last atomic.Int64
	return func() (t time.Duration) {
		defer func() {
			if recover() != nil {
				t = time.Duration(last.Load())
			}
			last.Store(int64(t))
		}()
		return clock()
	}
}

func newID() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	var random [16]byte
	rand.Read(random[:])
	return host[:min(len(host), 30)] + ":" + hex.EncodeToString(random[:])
}

// ID returns the name of the base among its peers.
func (b *Base) ID() string { return b.id }

// lock takes the lock for a method that the message of a panic names.
func (b *Base) lock(method string) {
	if b.null {
		b.lockNull(method)
		return
	}
	if !b.mu.TryLock() {
		b.lockSlow(method)
	}
}

// lockSlow waits for the lock. An evaluation is shorter than parking a goroutine
// and waking it, so it tries again for about 2 µs first, at growing distances,
// unless code of the user holds the lock. 16 goroutines that evaluate on two
// processors take 75 ns each so, 160 to 190 with Lock alone. What the mutex does
// against starving goroutines stays: TryLock fails while one is owed the lock.
//
//go:noinline
func (b *Base) lockSlow(method string) {
	if l := b.lease.Load(); l&leaseHolder == 0 {
		for distance := 64; distance <= 2048; distance *= 2 {
			for range distance {
			}
			if b.mu.TryLock() {
				return
			}
		}
	} else if l&leaseHolder == leaseOf(goroutine()) {
		misuse("%s called by %s, which runs under the base's lock; use the Guard it was given", method, b.lentTo)
	}
	b.mu.Lock()
}

func (b *Base) lockNull(method string) {
	if b.locked {
		misuse("%s called while %s runs on a base without a lock; use the Guard it was given", method, b.lentTo)
	}
	b.locked = true
}

// unlock ends a hold: it wakes the waiters of what changed.
func (b *Base) unlock() {
	if b.store.Touched() {
		b.store.Settle()
	}
	if b.lent {
		b.reclaim()
	}
	if b.null {
		b.locked = false
		return
	}
	b.mu.Unlock()
}

// A lease is the number of a goroutine in its low bits, 0 for none, and above it
// the number of the hold. Both wrap around: a guard that was kept through exactly
// 2^24 holds would be taken for a fresh one.
const leaseHolder = 1<<40 - 1

func leaseOf(goroutine int64) uint64 { return uint64(goroutine) & leaseHolder }

// lend notes that code of the user begins to run under the lock.
func (b *Base) lend(to string) {
	b.lentTo = to
	if !b.lent {
		b.lent = true
		b.lease.Store(b.lease.Load() + leaseOf(goroutine()))
	}
}

// reclaim makes the guards of this hold useless.
func (b *Base) reclaim() {
	b.lent = false
	b.lentTo = ""
	b.lease.Store(b.lease.Load()&^leaseHolder + leaseHolder + 1)
}

// goexit cleans up when a function called by a program ended its goroutine
// instead of returning: it releases the lock, unless whoever took it does so.
func (b *Base) goexit() {
	b.env.Abandon()
	if b.evaluating {
		b.evaluating = false
		b.unlock()
	}
}

func (b *Base) guard(borrowed bool) Guard {
	return Guard{b: b, lease: b.lease.Load(), borrowed: borrowed}
}

// Get returns the value of a variable, the zero Value if it has none. It never
// makes a variable.
func (b *Base) Get(name string) karl.Value {
	r := b.store.Lookup(name)
	if r == nil {
		return karl.Value{}
	}
	b.lock("Base.Get")
	v := r.Value() // of a record that died meanwhile: it has none
	b.unlock()
	return v
}

// Lookup returns a copy of a variable with its metadata, and whether it has a value.
func (b *Base) Lookup(name string) (Record, bool) {
	r := b.store.Lookup(name)
	if r == nil {
		return Record{}, false
	}
	b.lock("Base.Lookup")
	defer b.unlock()
	return lookup(r)
}

func lookup(r *store.Record) (Record, bool) {
	if !r.Exists() {
		return Record{}, false
	}
	r.Look()
	return newRecord(r.Copy()), true
}

// Set writes a variable and marks it to be sent; Send and the next Evaluate or
// Wait send it. A name is any text without braces, up to 4,096 bytes; one that
// starts with a dot is local and is never sent. The errors are ErrName, ErrKind
// for the zero Value (use Clear), ErrQuality, ErrLimit and ErrClosed.
func (b *Base) Set(name string, v karl.Value) error {
	r := b.store.Lookup(name)
	b.lock("Base.Set")
	err := b.set(r, name, v)
	late := b.late
	b.late = false
	b.unlock()
	if late {
		b.log.Warn("variables that were set have waited for more than a second to be sent: Send, Evaluate and Wait send them")
	}
	return err
}

func (b *Base) set(r *store.Record, name string, v karl.Value) error {
	if !v.Exists() {
		return store.Errorf(ErrKind, "setting %q to nothing; Clear does that", clipName(name))
	}
	if r == nil || r.Dead() || b.closed {
		var err error
		if r, err = b.resolve(name); err != nil {
			return err
		}
	}
	switch v.Kind() {
	case karl.KindInteger, karl.KindDouble:
		if r.Settled(uint32(v.Kind()) | store.SettledFlags) {
			_, bits, _ := v.Words()
			r.PutBits(bits)
			return nil
		}
	}
	err := b.store.Set(r, v, 0)
	if len(b.attachments) > 0 && !b.warned && b.store.Marked() > 0 && r.Time-b.store.MarkedSince > int64(time.Second) {
		b.warned, b.late = true, true
	}
	return err
}

// resolve finds or makes the record of a name that a method was given.
func (b *Base) resolve(name string) (*store.Record, error) {
	if b.closed {
		return nil, ErrClosed
	}
	if r := b.store.Lookup(name); r != nil {
		return r, nil
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	return b.store.Intern(name)
}

func checkName(name string) error {
	switch {
	case name == "":
		return store.Errorf(ErrName, "the name is empty")
	case len(name) > maxName:
		return store.Errorf(ErrName, "the name %.40q... has %d bytes, at most %d are allowed", name, len(name), maxName)
	case strings.ContainsAny(name, "{}"):
		return store.Errorf(ErrName, "the name %q has braces; Expand it first", name)
	}
	return nil
}

// SetIndex writes element i of an array variable as name[i] = v does: the array
// grows with zeros, anything but an array is replaced by one, and a double makes
// an array of integers one of doubles. v is an integer or a double, otherwise
// the error is ErrKind. An index that is negative or beyond the limit is ErrIndex.
func (b *Base) SetIndex(name string, i int, v karl.Value) error {
	b.lock("Base.SetIndex")
	defer b.unlock()
	return b.setIndex(name, i, v)
}

func (b *Base) setIndex(name string, i int, v karl.Value) error {
	if k := v.Kind(); k != karl.KindInteger && k != karl.KindDouble {
		return store.Errorf(ErrKind, "an element of %q cannot hold a value of kind %s, only integer or double", name, k)
	}
	r, err := b.resolve(name)
	if err != nil {
		return err
	}
	if err = b.store.Element(r, int64(i), v, 0); err != nil {
		b.store.Release(r)
	}
	return err
}

// SetQuality sets the quality that this process writes a variable with. Where
// the value is of higher quality, writes are refused with ErrQuality. Known in
// MADARA as set_quality of the base and set_write_quality of the context.
func (b *Base) SetQuality(name string, quality uint32) error {
	b.lock("Base.SetQuality")
	defer b.unlock()
	return b.setQuality(name, quality)
}

func (b *Base) setQuality(name string, quality uint32) error {
	r, err := b.resolve(name)
	if err != nil {
		return err
	}
	r.Hold(false)
	b.store.SetQuality(r, quality)
	return nil
}

// Clear takes the value of a variable away and keeps its metadata. It reports
// whether a program named the variable or anybody wrote it. Peers are not told.
func (b *Base) Clear(name string) bool {
	b.lock("Base.Clear")
	defer b.unlock()
	return b.clear(name)
}

func (b *Base) clear(name string) bool {
	r := b.store.Lookup(name)
	return r != nil && !b.closed && b.store.Clear(r)
}

// Delete takes a variable away with its metadata. Programs and handles that use
// it stay valid; a later write makes it anew. It reports what Clear does. Peers
// are not told.
func (b *Base) Delete(name string) bool {
	b.lock("Base.Delete")
	defer b.unlock()
	return b.delete(name)
}

func (b *Base) delete(name string) bool {
	r := b.store.Lookup(name)
	return r != nil && !b.closed && b.store.Delete(r)
}

// Reset takes all variables away and sets the base's clock to 0. Programs,
// handles, functions and waits stay. Peers are not told. MADARA knows it as clear().
func (b *Base) Reset() {
	b.lock("Base.Reset")
	defer b.unlock()
	if !b.closed {
		b.store.Reset()
	}
}

// All returns the variables whose names start with prefix, in the order of the
// names, "" for all. They are copied under one hold of the lock when the loop
// starts, and the loop's body runs without it.
func (b *Base) All(prefix string) iter.Seq2[string, Record] {
	return func(yield func(string, Record) bool) {
		b.lock("Base.All")
		all := b.all(prefix)
		b.unlock()
		for i := range all {
			if !yield(all[i].Name, all[i].Record) {
				return
			}
		}
	}
}

func (b *Base) all(prefix string) []Update {
	records := b.store.WithPrefix(prefix)
	all := make([]Update, 0, len(records))
	for _, r := range records {
		if rec, ok := lookup(r); ok {
			all = append(all, Update{Name: r.Name(), Record: rec})
		}
	}
	return all
}

// Expand replaces each {name} in a statement by the text of the variable,
// innermost first; a variable that is not set is "". The text from the first
// unmatched brace on is dropped. The result is "" if it would be longer than
// the limit of strings.
func (b *Base) Expand(statement string) string {
	b.lock("Base.Expand")
	defer b.unlock()
	s, err := b.env.Expand(statement)
	if err != nil {
		return ""
	}
	return s
}

// Print expands a statement and writes it where WithOutput or WithLogger says.
func (b *Base) Print(statement string) {
	b.lock("Base.Print")
	if s, err := b.env.Expand(statement); err == nil {
		b.print(0, s)
	}
	b.unlock()
	b.printer.drain()
}

// WriteTo writes one line "name=value" for each variable, in the order of the
// names, as MADARA's print does.
func (b *Base) WriteTo(w io.Writer) (int64, error) {
	var buf []byte
	b.lock("Base.WriteTo")
	for _, r := range b.store.WithPrefix("") {
		if r.Exists() {
			buf = append(append(buf, r.Name()...), '=')
			buf = append(r.Peek().AppendText(buf, &b.env.Format, ", "), '\n')
		}
	}
	b.unlock()
	n, err := w.Write(buf)
	return int64(n), err
}

// Lock takes the base's lock for a number of operations and returns the Guard
// that does them. Unlock it with the guard, on the same goroutine.
func (b *Base) Lock() Guard {
	b.lock("Base.Lock")
	b.lend("the holder of Base.Lock")
	return b.guard(false)
}

// Update runs f under the lock and returns what it returned. It is a critical
// section, not a transaction: what f wrote before an error stays. What it
// changed is marked to be sent.
func (b *Base) Update(f func(Guard) error) error {
	b.lock("Base.Update")
	defer b.unlock()
	if b.closed {
		return ErrClosed
	}
	return b.callout("the function given to Update", f)
}

// callout runs a function of the user under the lock.
func (b *Base) callout(who string, f func(Guard) error) error {
	outer := b.lentTo
	b.lend(who)
	b.callouts++
	defer func() {
		b.callouts--
		b.lentTo = outer
	}()
	return f(b.guard(true))
}

// Evaluate compiles a program, or finds it among those compiled before, and
// runs it. It returns the value of the program; what the program changed is
// sent. s may be nil. A text that cannot be parsed is a karl.ErrorList, a
// program that failed an *EvalError; what it did before stays.
func (b *Base) Evaluate(src string, s *EvalSettings) (karl.Value, error) {
	e, err := b.Compile(src)
	if err != nil {
		return karl.Value{}, err
	}
	return b.evaluate(e, s, nil)
}

// EvaluateContext is Evaluate, but stops at the next loop turn or call once ctx
// is done.
func (b *Base) EvaluateContext(ctx context.Context, src string, s *EvalSettings) (karl.Value, error) {
	e, err := b.Compile(src)
	if err != nil {
		return karl.Value{}, err
	}
	return b.evaluate(e, s, ctx)
}

// Wait compiles a program and waits until it is true: see [Expression.Wait].
func (b *Base) Wait(ctx context.Context, src string, s *WaitSettings) (karl.Value, error) {
	e, err := b.Compile(src)
	if err != nil {
		return karl.Value{}, err
	}
	return e.Wait(ctx, s)
}

// Close ends all waits with ErrClosed, detaches the base from its transports,
// and waits for a send or a message that is under way. It does not close the
// transports. Later calls that would change something or run a program return
// ErrClosed; reading still returns what is there. It may be called again. Called by a function that runs under the lock, or by a Sink, it
// panics.
func (b *Base) Close() error {
	b.lock("Base.Close")
	if b.closed {
		inside := b.sending()
		b.unlock()
		if !inside {
			<-b.finished
		}
		return nil
	}
	if b.sending() {
		b.unlock()
		misuse("Base.Close called by a sink or filter of the base")
	}
	b.closed = true
	close(b.done)
	attachments := b.attachments
	services := slices.Clone(b.services)
	b.unlock()
	for _, s := range services {
		s.Close()
	}
	for _, a := range attachments {
		a.detach()
	}
	b.waitSender()
	close(b.finished)
	return nil
}
