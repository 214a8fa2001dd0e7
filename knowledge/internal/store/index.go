package store

import (
	"slices"
	"strings"

	"github.com/puzpuzpuz/xsync/v3"
)

// index is the table of names. Loads need no lock; everything else happens
// under the base's. It is the only file that knows xsync.
type index struct {
	names *xsync.MapOf[string, *Record]

	// The records in the order of their names, for listings: sorted up to the
	// tail of those made since the last listing. Dead records stay until the
	// next merge drops them.
	sorted []*Record
	tail   int // sorted[:tail] is in order
	dead   int

	slab []Record // the rest of the slab that new records come from
}

// slabSize is the number of records allocated at once; the first slab is small,
// because most bases of a small robot have few variables.
const (
	firstSlab = 16
	slabSize  = 512
)

func newIndex() index { return index{names: xsync.NewMapOf[string, *Record]()} }

func (x *index) load(name string) *Record {
	r, _ := x.names.Load(name)
	return r
}

// add makes the record of a name that is not in the table.
func (x *index) add(name string) *Record {
	if len(x.slab) == 0 {
		n := slabSize
		if len(x.sorted) < firstSlab {
			n = firstSlab
		}
		x.slab = make([]Record, n)
	}
	r := &x.slab[0]
	x.slab = x.slab[1:]
	r.name = strings.Clone(name)
	if strings.HasPrefix(name, ".") {
		r.State = local | quiet
	}
	x.names.Store(r.name, r)
	if x.tail == len(x.sorted) && (x.tail == 0 || x.sorted[x.tail-1].name < name) {
		x.tail++
	}
	x.sorted = append(x.sorted, r)
	return r
}

func (x *index) remove(r *Record) {
	x.names.Delete(r.name)
	r.State |= dead
	x.dead++
	if x.dead > 64 && x.dead > len(x.sorted)/2 {
		x.merge()
	}
}

func (x *index) size() int { return len(x.sorted) - x.dead }

func byName(a, b *Record) int { return strings.Compare(a.name, b.name) }

// merge puts the tail into order and drops dead records.
func (x *index) merge() {
	if x.dead > 0 {
		live := x.sorted[:0]
		tail := 0
		for i, r := range x.sorted {
			if r.State&dead != 0 {
				continue
			}
			live = append(live, r)
			if i < x.tail {
				tail = len(live)
			}
		}
		clear(x.sorted[len(live):])
		x.sorted, x.tail, x.dead = live, tail, 0
	}
	if x.tail == len(x.sorted) {
		return
	}
	fresh := slices.Clone(x.sorted[x.tail:])
	slices.SortFunc(fresh, byName)
	// Merge from the back, in place: the head moves up by what is still to come.
	i, j := x.tail-1, len(fresh)-1
	for k := len(x.sorted) - 1; j >= 0; k-- {
		if i >= 0 && x.sorted[i].name > fresh[j].name {
			x.sorted[k] = x.sorted[i]
			i--
		} else {
			x.sorted[k] = fresh[j]
			j--
		}
	}
	x.tail = len(x.sorted)
}

// withPrefix returns the records whose names start with prefix, in the order of
// the names. The slice is valid until the next change of the index.
func (x *index) withPrefix(prefix string) []*Record {
	x.merge()
	from, _ := slices.BinarySearchFunc(x.sorted, prefix, func(r *Record, p string) int {
		return strings.Compare(r.name, p)
	})
	rest := x.sorted[from:]
	n, _ := slices.BinarySearchFunc(rest, prefix, func(r *Record, p string) int {
		if strings.HasPrefix(r.name, p) {
			return -1
		}
		return 1
	})
	return rest[:n]
}
