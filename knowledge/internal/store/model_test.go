package store

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/madara-go/madara/karl"
)

// model is a store as plain Go: what a Store must look like from outside.
type model struct {
	vars  map[string]*variable
	marks []string // in the order in which they were listed
	clock uint64
	now   int64
}

type variable struct {
	value                 karl.Value
	quality, writeQuality uint32
	clock                 uint64
	time                  int64
	raises                int  // of the clock, when it was stamped
	seen                  bool // the metadata were looked at since the last write
	marked, listed        bool
	held, key             bool
}

const (
	modelVariables = 12
	modelArray     = 70
)

// storeMachine makes the same calls on a store and on its model.
type storeMachine struct {
	store  Store
	model  model
	raises int
	kept   []keptValue // values handed out, with copies of what they were
	waiter *Waiter
	on     map[string]bool // what the waiter waits for
	woken  bool
	asked  int // how often the waiter was asked since it was last looked at
}

type keptValue struct{ value, copy karl.Value }

var modelNames = []string{"a", "b", "ab", "abc", "b.x", ".l", ".0", "c", "", "aa", "\xff", "z"}

func newStoreMachine() *storeMachine {
	m := &storeMachine{on: map[string]bool{}}
	m.store.Init(func() int64 { return m.model.now }, Limits{Variables: modelVariables, Array: modelArray})
	m.model.vars = map[string]*variable{}
	m.waiter = NewWaiter()
	m.waiter.Ready = func() bool { m.asked++; return true }
	return m
}

func (m *storeMachine) name(t *rapid.T) string {
	names := modelNames
	if rapid.Bool().Draw(t, "often") {
		names = names[:2] // so that calls meet
	}
	return rapid.SampledFrom(names).Draw(t, "name")
}

// record finds or makes a record in both.
func (m *storeMachine) record(t *rapid.T) (*Record, *variable) { return m.recordOf(t, m.name(t)) }

func (m *storeMachine) recordOf(t *rapid.T, name string) (*Record, *variable) {
	r, err := m.store.Intern(name)
	if err != nil {
		t.Fatal(err)
	}
	v := m.model.vars[name]
	if v == nil {
		v = &variable{}
		m.model.vars[name] = v
	}
	if again := m.store.Lookup(name); again != r || r.Dead() || r.Name() != name {
		t.Fatalf("%q is found as %p %q, made as %p", name, again, r.Name(), r)
	}
	return r, v
}

func drawNumber(t *rapid.T) karl.Value {
	if rapid.Bool().Draw(t, "double") {
		return karl.Float(float64(rapid.IntRange(0, 9).Draw(t, "value")) / 2)
	}
	return karl.Int(int64(rapid.IntRange(0, 9).Draw(t, "value")))
}

func drawStored(t *rapid.T) karl.Value {
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return karl.String(rapid.SampledFrom([]string{"", "text"}).Draw(t, "text"))
	case 1:
		return karl.Ints(make([]int64, rapid.IntRange(0, 5).Draw(t, "length")))
	case 2:
		return karl.Floats(make([]float64, rapid.IntRange(0, 5).Draw(t, "length")))
	}
	return drawNumber(t)
}

func drawWrite(t *rapid.T) Write {
	if rapid.Bool().Draw(t, "usual") {
		return 0
	}
	return Write(rapid.IntRange(0, 31).Draw(t, "write"))
}

// wrote is the model of what follows a write.
func (m *storeMachine) wrote(name string, v *variable, w Write) {
	v.quality = v.writeQuality
	if v.raises != m.raises || v.seen || v.time == 0 {
		v.time = m.model.now
		v.clock = m.model.clock
	}
	v.raises, v.seen = m.raises, false
	v.key = true
	if (name == "" || name[0] != '.' || w&SendLocals != 0) && w&LocalOnly == 0 {
		if !v.listed {
			m.model.marks = append(m.model.marks, name)
		}
		v.marked, v.listed = true, true
	}
	if m.on[name] && w&NoSignal == 0 {
		m.woken = true
	}
}

// put writes as evaluation does: at once if nothing else is to do, and the long way otherwise.
func (m *storeMachine) put(t *rapid.T) {
	m.model.now++
	r, v := m.record(t)
	x, w := drawStored(t), drawWrite(t)
	number := x.Kind() == karl.KindInteger || x.Kind() == karl.KindDouble
	if w == 0 && number && r.Settled(uint32(x.Kind())|SettledFlags) {
		_, bits, _ := x.Words()
		r.PutBits(bits)
	} else if err := m.store.Set(r, x, w); (err != nil) != (v.quality > v.writeQuality && w&Overwrite == 0) {
		t.Fatalf("Set of %q: %v, with quality %d over %d", r.Name(), err, v.writeQuality, v.quality)
	} else if err != nil {
		return
	}
	v.value = x
	m.wrote(r.Name(), v, w)
}

func (m *storeMachine) element(t *rapid.T) {
	m.model.now++
	r, v := m.record(t)
	i := int64(rapid.IntRange(-1, modelArray).Draw(t, "index"))
	if rapid.Bool().Draw(t, "small") {
		i %= 5
	}
	x, w := drawNumber(t), drawWrite(t)
	err := m.store.Element(r, i, x, w)
	switch {
	case i < 0 || i >= modelArray:
		if !errors.Is(err, ErrIndex) {
			t.Fatalf("element %d: %v", i, err)
		}
		return
	case v.quality > v.writeQuality && w&Overwrite == 0:
		if !errors.Is(err, ErrQuality) {
			t.Fatalf("element of quality %d over %d: %v", v.writeQuality, v.quality, err)
		}
		return
	case err != nil:
		t.Fatal(err)
	}
	v.value = v.value.WithElement(int(i), x)
	m.wrote(r.Name(), v, w)
}

func (m *storeMachine) clear(t *rapid.T) {
	r, v := m.record(t)
	if got := m.store.Clear(r); got != v.key {
		t.Fatalf("Clear(%q) = %v", r.Name(), got)
	}
	if v.value.Exists() && m.on[r.Name()] {
		m.woken = true
	}
	v.value, v.marked = karl.Value{}, false
}

func (m *storeMachine) remove(t *rapid.T) {
	r, v := m.record(t)
	was := v.key
	if got := m.store.Delete(r); got != was {
		t.Fatalf("Delete(%q) = %v", r.Name(), got)
	}
	if (was || v.value.Exists()) && m.on[r.Name()] {
		m.woken = true
	}
	m.forget(r.Name(), v, true)
	if r.Dead() == (v.held || m.on[r.Name()]) {
		t.Fatalf("deleted %q, held %v: dead %v", r.Name(), v.held, r.Dead())
	}
}

// forget is the model of a variable that is deleted.
func (m *storeMachine) forget(name string, v *variable, listed bool) {
	*v = variable{held: v.held, listed: listed && v.listed}
	if !v.held && !m.on[name] {
		delete(m.model.vars, name)
		m.model.marks = slices.DeleteFunc(m.model.marks, func(s string) bool { return s == name })
	}
}

func (m *storeMachine) reset(*rapid.T) {
	for name, v := range m.model.vars {
		if m.on[name] {
			m.woken = true
		}
		m.forget(name, v, false)
	}
	m.store.Reset()
	m.model.marks, m.model.clock = nil, 0
	m.raises++
}

func (m *storeMachine) hold(t *rapid.T) {
	r, v := m.record(t)
	named := rapid.Bool().Draw(t, "named")
	r.Hold(named)
	v.held, v.key = true, v.key || named
}

func (m *storeMachine) quality(t *rapid.T) {
	r, v := m.record(t)
	v.writeQuality = uint32(rapid.IntRange(0, 3).Draw(t, "quality"))
	m.store.SetQuality(r, v.writeQuality)
}

func (m *storeMachine) raise(t *rapid.T) {
	c := uint64(rapid.IntRange(0, 30).Draw(t, "clock"))
	m.store.RaiseClock(c)
	m.raiseModel(c)
}

func (m *storeMachine) raiseModel(c uint64) {
	if c > m.model.clock {
		m.model.clock = c
		m.raises++
	}
}

func (m *storeMachine) setClock(t *rapid.T) {
	r, v := m.record(t)
	c := uint64(rapid.IntRange(0, 30).Draw(t, "clock"))
	m.store.SetClock(r, c)
	m.raiseModel(c)
	v.clock = c
	if c != m.model.clock {
		v.seen = true // the next write stamps it again
	}
}

func (m *storeMachine) take(t *rapid.T) {
	var only []string
	if rapid.IntRange(0, 3).Draw(t, "only") == 0 {
		only = rapid.SliceOfN(rapid.SampledFrom(modelNames), 1, 3).Draw(t, "names")
	}
	records, clock := m.store.TakeMarks(nil, only)
	var got, want, kept []string
	for _, r := range records {
		got = append(got, r.Name())
	}
	if clock != m.model.clock {
		t.Fatalf("marks are taken at clock %d, want %d", clock, m.model.clock)
	}
	for _, name := range m.model.marks {
		v := m.model.vars[name]
		if v.marked && len(only) > 0 && !slices.Contains(only, name) {
			kept = append(kept, name)
			continue
		}
		if v.marked && !strings.HasPrefix(name, ".") {
			want = append(want, name)
			v.clock = clock
		}
		v.marked, v.listed = false, false
	}
	m.model.marks = kept
	if len(want) > 0 {
		m.raiseModel(clock + 1)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("took %q, want %q, only %q", got, want, only)
	}
}

func (m *storeMachine) mark(t *rapid.T) {
	m.model.now++
	r, v := m.record(t)
	m.store.Mark(r)
	if v.value.Exists() {
		m.wrote(r.Name(), v, 0)
	}
}

func (m *storeMachine) argument(t *rapid.T) {
	r, v := m.recordOf(t, ".0")
	x := karl.Value{}
	if rapid.Bool().Draw(t, "set") {
		x = drawStored(t)
		v.key = true
	}
	m.store.Argument(r, x)
	v.value = x
}

// look reads metadata, after which the next write has a time of its own.
func (m *storeMachine) look(t *rapid.T) {
	r, v := m.record(t)
	r.Look()
	v.seen = true
}

// keep hands a value out, which must stay what it is.
func (m *storeMachine) keep(t *rapid.T) {
	r, _ := m.record(t)
	v := r.Value()
	c := v
	switch v.Kind() {
	case karl.KindIntegers:
		c = karl.Ints(v.AsInts())
	case karl.KindDoubles:
		c = karl.Floats(v.AsFloats())
	}
	m.kept = append(m.kept, keptValue{v, c})
	if len(m.kept) > 8 {
		m.kept = m.kept[1:]
	}
}

func (m *storeMachine) register(t *rapid.T) {
	if len(m.on) > 0 {
		m.settle(t)
		m.store.Unregister(m.waiter)
		for name := range m.on {
			v := m.model.vars[name]
			if !v.held && !v.key && !v.value.Exists() {
				delete(m.model.vars, name)
				m.model.marks = slices.DeleteFunc(m.model.marks, func(s string) bool { return s == name })
			}
		}
		clear(m.on)
		return
	}
	var records []*Record
	for range rapid.IntRange(1, 3).Draw(t, "count") {
		if r, _ := m.record(t); !m.on[r.Name()] {
			records = append(records, r)
			m.on[r.Name()] = true
		}
	}
	m.store.Register(m.waiter, records, nil)
}

func (m *storeMachine) settle(t *rapid.T) {
	m.store.Settle()
	if m.asked > 1 {
		t.Fatalf("the waiter was asked %d times", m.asked)
	}
	m.asked = 0
	select {
	case <-m.waiter.Wake:
		if !m.woken {
			t.Fatal("the waiter was woken by nothing")
		}
	default:
		if m.woken {
			t.Fatal("the waiter was not woken")
		}
	}
	m.woken = false
}

// check compares all that can be seen.
func (m *storeMachine) check(t *rapid.T) {
	if m.store.Clock != m.model.clock {
		t.Fatalf("clock %d, want %d", m.store.Clock, m.model.clock)
	}
	for _, k := range m.kept {
		if !k.value.Equal(k.copy) {
			t.Fatalf("a value handed out became %v, was %v", k.value, k.copy)
		}
	}
	for name, v := range m.model.vars {
		r := m.store.Lookup(name)
		if r == nil {
			t.Fatalf("%q is gone", name)
		}
		if !r.Peek().Equal(v.value) {
			t.Fatalf("%q is %v, want %v", name, r.Peek(), v.value)
		}
		if r.Quality != v.quality || r.WriteQuality != v.writeQuality || r.Clock != v.clock {
			t.Fatalf("%q has quality %d, %d, clock %d, want %d, %d, %d", name, r.Quality, r.WriteQuality, r.Clock, v.quality, v.writeQuality, v.clock)
		}
		if r.Time != v.time {
			t.Fatalf("%q has time %d, want %d", name, r.Time, v.time)
		}
		if r.IsKey() != v.key {
			t.Fatalf("%q is a key: %v", name, r.IsKey())
		}
	}
	if n := m.store.Size(); n != len(m.model.vars) {
		t.Fatalf("%d records, want %d", n, len(m.model.vars))
	}
}

// list compares the listings. It is a call of its own, because records that were
// made and removed since the last one are put into order then.
func (m *storeMachine) list(t *rapid.T) {
	for _, prefix := range []string{"", "a", "ab", ".", "z", "zz", "\xff"} {
		var got, want []string
		for _, r := range m.store.WithPrefix(prefix) {
			got = append(got, r.Name())
		}
		for _, name := range slices.Sorted(maps.Keys(m.model.vars)) {
			if strings.HasPrefix(name, prefix) {
				want = append(want, name)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("with prefix %q: %q, want %q", prefix, got, want)
		}
	}
}

// TestModel makes random calls on a store and on a plain model of it.
func TestModel(t *testing.T) {
	for range 5 {
		rapid.Check(t, repeatCalls)
	}
}

func repeatCalls(t *rapid.T) {
	m := newStoreMachine()
	t.Repeat(map[string]func(*rapid.T){
		"put": m.put, "put again": m.put, "put more": m.put, "element": m.element, "element again": m.element,
		"clear": m.clear, "delete": m.remove, "reset": func(t *rapid.T) {
			if rapid.IntRange(0, 4).Draw(t, "really") == 0 {
				m.reset(t)
			}
		},
		"hold": m.hold, "quality": m.quality, "raise": m.raise, "set clock": m.setClock,
		"take": m.take, "mark": m.mark, "argument": m.argument, "look": m.look, "keep": m.keep,
		"register": m.register, "settle": m.settle, "list": m.list, "": m.check,
	})
}
