package knowledge

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/madara-go/madara/knowledge/internal/store"
)

// ChangeKind says what a [Change] is about.
type ChangeKind uint8

// The kinds of a Change.
const (
	Set     ChangeKind = iota // the variable was written
	Cleared                   // its value was taken away
	Deleted                   // it was deleted
	Reset                     // all variables were taken away; Name is ""
	Current                   // all that was there when the watch began has been told; Name is ""
	Ended                     // the watch is over because of Err
)

var changeKinds = [...]string{"set", "cleared", "deleted", "reset", "current", "ended"}

// String returns the kind in lower case, "set".
func (k ChangeKind) String() string {
	if int(k) < len(changeKinds) {
		return changeKinds[k]
	}
	return fmt.Sprintf("ChangeKind(%d)", uint8(k))
}

// Change is what a watch tells.
type Change struct {
	Name    string
	Record  Record // after the change
	Kind    ChangeKind
	Dropped uint64 // names pushed out of the watch's buffer since the change before
	Err     error  // of Ended: ErrClosed or ErrNullLock
}

// Watch tells the changes of the variables that match one of the patterns; in a
// pattern each * stands for any text, and no pattern means all variables. First
// come the variables that match now, in the order of their names, then one
// Change of kind Current, then changes as they happen. The loop's body runs
// without the lock and may use the base. The watch ends with the loop, with ctx,
// or with the base, which is told as a Change of kind Ended.
//
// A reader that is slower than the writers sees only the newest value of each
// variable. If more than 4,096 variables wait for it, the one that waits longest
// is pushed out, counted in Dropped, and told again before the watch is next
// idle: intermediate values are lost, the last one is not. Only the deletion of
// a variable that nothing else refers to can be, if more than 4,096 of those
// wait. Watched variables cost a clock reading on each write.
func (b *Base) Watch(ctx context.Context, patterns ...string) iter.Seq[Change] {
	if len(patterns) == 0 {
		patterns = []string{"*"}
	}
	return func(yield func(Change) bool) {
		if b.null {
			yield(Change{Kind: Ended, Err: ErrNullLock})
			return
		}
		w := store.NewWatch(patterns)
		b.lock("Base.Watch")
		if b.closed {
			b.unlock()
			yield(Change{Kind: Ended, Err: ErrClosed})
			return
		}
		present := b.store.AddWatch(w)
		b.unlock()
		defer func() {
			b.lock("Base.Watch")
			b.store.RemoveWatch(w)
			b.unlock()
		}()
		for i := range present {
			if ctx.Err() != nil || !yield(newChange(present[i])) {
				return
			}
		}
		present = nil
		if ctx.Err() != nil || !yield(Change{Kind: Current}) {
			return
		}
		for {
			c, ok, behind := w.Next()
			switch {
			case ok:
				if ctx.Err() != nil || !yield(newChange(c)) {
					return
				}
			case behind:
				b.lock("Base.Watch")
				b.store.CatchUp(w)
				b.unlock()
			default:
				select {
				case <-w.Wake:
				case <-ctx.Done():
					return
				case <-b.done:
					if c, ok, _ := w.Next(); ok { // told before the base was closed
						if !yield(newChange(c)) {
							return
						}
						continue
					}
					yield(Change{Kind: Ended, Err: ErrClosed})
					return
				}
			}
		}
	}
}

func newChange(c store.Change) Change {
	return Change{Name: c.Name, Record: newRecord(c.Record), Kind: ChangeKind(c.Event), Dropped: c.Dropped}
}

func newRecord(c store.Copy) Record {
	return Record{
		Value: c.Value, Time: time.Duration(c.Time), Clock: c.Clock,
		Quality: c.Quality, WriteQuality: c.WriteQuality,
	}
}

// History returns the values that a variable had, oldest first, as many as
// [WithHistory] keeps; the last one is the present value, unless the variable
// was cleared. It is nil for a variable that keeps none.
func (b *Base) History(name string) []Record {
	b.lock("Base.History")
	defer b.unlock()
	return b.history(name)
}

func (b *Base) history(name string) []Record {
	r := b.store.Lookup(name)
	if r == nil {
		return nil
	}
	var records []Record
	for _, c := range b.store.History(r) {
		records = append(records, newRecord(c))
	}
	return records
}
