package eval

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge/internal/store"
)

// Env is what the programs of one base share.
type Env struct {
	Store  *store.Store
	Format karl.NumberFormat
	Limits Limits

	// Print takes what #print and #print_system_calls print at a level.
	Print func(level int, text string)
	Level int // of #log_level

	Files    *os.Root // nil: no files
	Environ, // #expand_env may read the environment
	Sleep bool // #sleep may sleep
	Rand *rand.Rand

	// Goexit is called when a function that a program called ended its goroutine
	// instead of returning.
	Goexit func()

	// Tracked, unless nil, collects the records that programs read through names
	// known only while they run, and those of the programs they call.
	Tracked *[]*store.Record

	// Prefixes, beside Tracked, are those of the names that were listed.
	Prefixes []string

	Hosts int // host functions that are running inside each other

	functions map[string]*Function
	frames    []*Frame
	depth     int
	weight    int // the depths of the trees that run, but for the innermost one
	meter     meter
	values    []karl.Value // arguments of the running calls
	name      []byte       // of the braced name that is being expanded
	texts     map[string]*Program
	textOrder []string
}

// Limits bounds what programs do.
type Limits struct {
	CallDepth int // calls and #eval inside each other
	String    int // bytes of a string that a program makes
	Functions int // names of functions that programs call or the host defines
}

// NewEnv returns an environment for the store.
func NewEnv(st *store.Store, limits Limits) *Env {
	e := &Env{
		Store: st, Limits: limits, Level: 1,
		functions: map[string]*Function{}, texts: map[string]*Program{},
		Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
	}
	e.meter.start(0, nil)
	e.frames = []*Frame{newFrame(e)}
	return e
}

// Host is a function of the host. The arguments are valid until it returns.
type Host func(e *Env, args []karl.Value) (karl.Value, error)

// Function is the slot of a name: programs keep a pointer to it, so a new
// definition is seen by those compiled before.
type Function struct {
	Name string
	Host Host
	Body *Program
}

// Defined reports whether there is something to call.
func (fn *Function) Defined() bool { return fn.Host != nil || fn.Body != nil }

// Function finds or makes the slot of a name. What programs name is bounded, what
// the host defines is not.
func (e *Env) Function(name string, byProgram bool) (*Function, error) {
	if fn := e.functions[name]; fn != nil {
		return fn, nil
	}
	if byProgram && len(e.functions) >= e.Limits.Functions {
		return nil, store.Errorf(store.ErrLimit, "function %q would be number %d, at most %d names are allowed",
			clip(name), len(e.functions)+1, e.Limits.Functions)
	}
	fn := &Function{Name: string([]byte(name))}
	e.functions[fn.Name] = fn
	return fn, nil
}

// Functions returns the number of names that are defined or called.
func (e *Env) Functions() int { return len(e.functions) }

// clip shortens a name or text for a message.
func clip(s string) string {
	if len(s) > 64 {
		return s[:61] + "..."
	}
	return s
}

// Track notes that a program read a record.
func (e *Env) Track(r *store.Record) {
	if e.Tracked != nil {
		*e.Tracked = append(*e.Tracked, r)
	}
}

// TrackAll notes that a program read the records.
func (e *Env) TrackAll(records []*store.Record) {
	if e.Tracked != nil {
		*e.Tracked = append(*e.Tracked, records...)
	}
}

// TrackPrefix notes that a program listed the names that begin with prefix.
func (e *Env) TrackPrefix(prefix string) {
	if e.Tracked == nil {
		return
	}
	*e.Tracked = append(*e.Tracked, e.Store.WithPrefix(prefix)...)
	if !slices.Contains(e.Prefixes, prefix) {
		e.Prefixes = append(e.Prefixes, prefix)
	}
}

// TrackName notes that a program read a name, which may have no record yet.
func (e *Env) TrackName(name string) {
	if e.Tracked == nil || name == "" {
		return
	}
	if r, err := e.Store.Intern(name); err == nil {
		*e.Tracked = append(*e.Tracked, r)
	}
}

// sleep sleeps while the base is locked, for #sleep.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
