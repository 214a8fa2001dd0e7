package main

import "github.com/madara-go/madara/knowledge"

// containerRows are the reference's rows about its typed containers, which are
// Var here, and about the staged ones, which work on a copy.
func containerRows() []row {
	return []row{
		{name: "KaRL container: Assignment", per: 1, open: assignHandle(".var1")},
		{name: "KaRL container: Increments", per: 1, open: incrementHandle},
		{name: "KaRL staged container: Assignment", per: 1, open: staged(func(s *stagedInteger, units int) {
			for range units {
				s.next++
				s.set(s.next)
			}
		})},
		{name: "KaRL staged container: Increments", per: 1, open: staged(func(s *stagedInteger, units int) {
			for range units {
				s.add(1)
			}
		})},
	}
}

// assignHandle writes a variable through its handle, another number each time.
func assignHandle(name string) func(...knowledge.Option) (*work, error) {
	return func(opts ...knowledge.Option) (*work, error) {
		kb := knowledge.New(opts...)
		v := knowledge.NewVar[int64](kb, name)
		var next int64
		return &work{check: variableCounts(name)(kb), run: func(units int) error {
			for range units {
				next++
				if err := v.Set(next); err != nil {
					return err
				}
			}
			return nil
		}}, nil
	}
}

func incrementHandle(opts ...knowledge.Option) (*work, error) {
	kb := knowledge.New(opts...)
	v := knowledge.NewVar[int64](kb, ".var1")
	return &work{check: variableCounts(".var1")(kb), run: func(units int) error {
		for range units {
			if err := v.Add(1); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

// stagedInteger is what a Go program writes in place of the reference's staged
// container: a copy of the variable to work on, written back once.
type stagedInteger struct {
	v    *knowledge.Var[int64]
	copy int64
	next int64 // the number assigned last
}

//go:noinline
func (s *stagedInteger) set(x int64) { s.copy = x }

//go:noinline
func (s *stagedInteger) add(x int64) { s.copy += x }

func staged(use func(*stagedInteger, int)) func(...knowledge.Option) (*work, error) {
	return func(opts ...knowledge.Option) (*work, error) {
		kb := knowledge.New(opts...)
		s := &stagedInteger{v: knowledge.NewVar[int64](kb, ".var1")}
		return &work{check: variableCounts(".var1")(kb), run: func(units int) error {
			s.copy = s.v.Get()
			use(s, units)
			return s.v.Set(s.copy)
		}}, nil
	}
}
