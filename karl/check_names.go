package karl

import (
	"cmp"
	"slices"
	"strings"
)

// usage is where a variable is first read and written. A file of -1 is nowhere.
type usage struct {
	read, written place
	braces        bool // first read in the braces of a name
}

type place struct{ file, from, to int }

var nowhere = place{file: -1}

// pattern is a name with braces: what it begins and ends with, and whether it is
// read or written.
type pattern struct {
	prefix, suffix string
	use            access
}

type access uint8

const (
	reads access = iota
	writes
)

func (c *checker) usage(name string) *usage {
	u := c.names[name]
	if u == nil {
		u = &usage{read: nowhere, written: nowhere}
		c.names[name] = u
	}
	return u
}

// read notes that a variable or element is read.
func (c *checker) read(n Node) {
	name, ok := n.(*Name)
	if !ok {
		x, ok := n.(*Index)
		if !ok {
			return
		}
		name = x.X
	}
	if strings.IndexByte(name.Text, '{') >= 0 {
		c.dynamic(name, reads)
	} else if u := c.usage(name.Text); u.read == nowhere {
		u.read = place{c.file, name.Pos(), name.End()}
	}
}

// write notes that a variable or element is written, and visits the index of
// one. It reports false for anything else.
func (c *checker) write(n Node) bool {
	name, ok := n.(*Name)
	if !ok {
		x, ok := n.(*Index)
		if !ok {
			return false
		}
		c.visit(x.At, useValue)
		name = x.X
	}
	if strings.IndexByte(name.Text, '{') >= 0 {
		c.dynamic(name, writes)
	} else if u := c.usage(name.Text); u.written == nowhere {
		u.written = place{c.file, name.Pos(), name.End()}
	}
	return true
}

// dynamic notes a name with braces, and that the names in them are read.
func (c *checker) dynamic(n *Name, use access) {
	first, last := strings.IndexByte(n.Text, '{'), strings.LastIndexByte(n.Text, '}')
	c.patterns = append(c.patterns, pattern{n.Text[:first], n.Text[last+1:], use})
	for _, inner := range innerNames(n.Text) {
		c.inner(inner, n)
	}
}

// inner notes that a name is read in the braces of a name.
func (c *checker) inner(name string, n Node) {
	if u := c.usage(name); u.read == nowhere {
		u.read, u.braces = place{c.file, n.Pos(), n.End()}, true
	}
}

// innerNames returns the names in braces that have no braces themselves.
func innerNames(text string) (names []string) {
	open := -1
	for i := range len(text) {
		switch text[i] {
		case '{':
			open = i
		case '}':
			if open >= 0 {
				names = append(names, text[open+1:i])
			}
			open = -1
		}
	}
	return names
}

// systemCall notes the variables that a call reads and writes by their names.
func (c *checker) systemCall(n *SystemCall) {
	if len(n.Args) == 0 {
		return
	}
	literal, ok := Unparen(n.Args[0]).(*Literal)
	ok = ok && literal.Value.Kind().IsString()
	switch n.Func {
	case "print", "expand":
		if !ok {
			c.unknown = true
			return
		}
		for _, name := range innerNames(literal.Value.text()) {
			if IsName(name) { // not reported: text may have braces for other reasons
				c.mention(name, false, literal)
			}
		}
	case "eval":
		if !ok {
			c.unknown = true
			return
		}
		p, err := Parse("", literal.Value.text())
		if err != nil || p.Body == nil {
			return
		}
		Walk(p.Body, func(x Node) bool {
			switch x := x.(type) {
			case *Name:
				if strings.IndexByte(x.Text, '{') >= 0 {
					c.unknown = true
				}
				c.mention(x.Text, true, literal)
			case *SystemCall:
				c.unknown = true
			}
			return true
		})
	case "clear_var", "delete_var":
		if ok {
			c.mention(literal.Value.text(), true, literal)
		}
	case "set_clock":
		if x, ok := Unparen(n.Args[0]).(*Name); ok && len(n.Args) == 2 {
			c.write(x)
		}
	}
}

// mention notes a name that a text has, which is read and perhaps written.
func (c *checker) mention(name string, write bool, n Node) {
	u := c.usage(name)
	if u.read == nowhere {
		u.read = place{c.file, n.Pos(), n.End()}
	}
	if write && u.written == nowhere {
		u.written = place{c.file, n.Pos(), n.End()}
	}
}

// checkNames reports the variables that are only read or only written.
func (c *checker) checkNames() {
	for _, name := range c.options.Variables {
		u := c.usage(name)
		u.read, u.written = place{}, place{}
	}
	if c.unknown {
		return
	}
	slices.SortFunc(c.patterns, func(a, b pattern) int {
		return cmp.Or(cmp.Compare(a.prefix, b.prefix), cmp.Compare(a.suffix, b.suffix), cmp.Compare(a.use, b.use))
	})
	c.patterns = slices.Compact(c.patterns)
	for name, u := range c.names {
		if strings.IndexByte(name, '{') >= 0 {
			continue
		}
		if u.read != nowhere && u.written != nowhere {
			continue
		}
		local := strings.HasPrefix(name, ".")
		if !local && (c.options.Variables == nil || u.read == nowhere) {
			continue
		}
		read, written := u.read != nowhere, u.written != nowhere
		for _, p := range c.patterns {
			if len(name) >= len(p.prefix)+len(p.suffix) && strings.HasPrefix(name, p.prefix) && strings.HasSuffix(name, p.suffix) {
				read, written = read || p.use == reads, written || p.use == writes
			}
		}
		switch {
		case read && !written && u.braces:
			c.reportName(u.read, "unresolved-braces", "Assign "+name+" before, or correct its name.",
				"{"+name+"} comes to nothing: "+name+" is never written")
		case read && !written:
			c.reportName(u.read, "never-written", "Assign it somewhere, correct its name, or name it as one that the host writes.",
				name+" is read, but never written")
		case written && !read:
			c.reportName(u.written, "never-read", "Leave it out, or correct its name where it should be read.",
				name+" is written, but never read; names that begin with a dot never leave the base")
		}
	}
}

func (c *checker) reportName(at place, code, fix, msg string) {
	c.findings = append(c.findings, finding{file: at.file, from: at.from, to: at.to, code: code, msg: msg, fix: fix})
}
