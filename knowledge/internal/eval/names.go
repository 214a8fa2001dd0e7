package eval

import (
	"bytes"
	"strings"
	"unsafe"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge/internal/store"
)

// dynamicName is a name with braces at one place of a program. It remembers the
// record it meant last, because a name usually means the same one again.
type dynamicName struct {
	text  string
	parts []namePart // nil where braces are nested
	at    karl.Span
	last  *store.Record
}

// namePart is some text of a name, and the variable in braces behind it.
type namePart struct {
	text string
	rec  *store.Record // nil behind the last text
}

func (c *compiler) dynamicName(n *karl.Name) *dynamicName {
	c.p.Dynamic = true
	d := &dynamicName{text: n.Text, at: n.Span}
	rest := n.Text
	for {
		open := strings.IndexByte(rest, '{')
		if open < 0 {
			d.parts = append(d.parts, namePart{text: rest})
			return d
		}
		end := strings.IndexAny(rest[open+1:], "{}")
		if end < 0 || rest[open+1+end] == '{' {
			d.parts = nil
			return d
		}
		r, err := c.env.Store.Intern(rest[open+1 : open+1+end])
		if err != nil {
			c.fail(n.Span, err)
			return d
		}
		r.Hold(false)
		d.parts = append(d.parts, namePart{rest[:open], r})
		rest = rest[open+end+2:]
	}
}

// expand returns the name the text stands for now; the bytes are valid until the
// next expansion. Every use of a name makes two passes.
func (d *dynamicName) expand(f *Frame) []byte {
	e := f.Env
	var name []byte
	var err error
	if d.parts == nil {
		name, err = e.appendExpanded(e.name[:0], d.text)
	} else {
		name = e.name[:0]
		for i := range d.parts {
			p := &d.parts[i]
			name = append(name, p.text...)
			if p.rec == nil {
				break
			}
			e.Track(p.rec)
			if name, err = e.appendText(name, p.rec.Peek(), ", ", e.Limits.String-len(name)); err != nil {
				break
			}
		}
	}
	if err == nil && bytes.ContainsAny(name, "{}") {
		name, err = e.appendExpanded(nil, string(name))
	}
	if err != nil {
		f.fail(d.at, err)
		return nil
	}
	if cap(name) <= 4096 {
		e.name = name[:0]
	}
	return name
}

// record returns the record the name means, nil if there is none.
func (d *dynamicName) record(f *Frame) *store.Record {
	name := d.expand(f)
	if r := d.last; r != nil && r.Name() == string(name) && !r.Dead() {
		f.Env.Track(r)
		return r
	}
	s := unsafe.String(unsafe.SliceData(name), len(name))
	if f.Env.Tracked != nil {
		f.Env.TrackName(s)
	}
	r := f.st.Lookup(s)
	d.last = r
	return r
}

func (d *dynamicName) read(f *Frame) karl.Value {
	r := d.record(f)
	if r == nil {
		if f.strict && f.err == nil {
			return f.missing(d.text, d.at)
		}
		return karl.Value{}
	}
	return f.load(r, d.at)
}

// write returns the record to write to, made if there is none; nil if f failed.
func (d *dynamicName) write(f *Frame) *store.Record {
	if r := d.record(f); r != nil || f.err != nil {
		return r
	}
	name := d.expand(f)
	if len(name) == 0 {
		f.fail(d.at, store.Errorf(ErrName, "the name %q expands to nothing", clip(d.text)))
		return nil
	}
	r, err := f.st.Intern(string(name))
	if err != nil {
		f.fail(d.at, err)
		return nil
	}
	d.last = r
	return r
}

//go:noinline
func (f *Frame) missing(name string, at karl.Span) karl.Value {
	return f.fail(at, store.Errorf(ErrMissing, "variable %q is not set", clip(name)))
}

// maxBraces bounds how deep braces nest in a text that is expanded.
const maxBraces = 1000

// Expand replaces each {name} in the text by the value's text, innermost first.
// From the first unmatched brace on the rest is dropped.
func (e *Env) Expand(text string) (string, error) {
	if strings.IndexByte(text, '{') < 0 && strings.IndexByte(text, '}') < 0 {
		return text, nil
	}
	out, err := e.appendExpanded(nil, text)
	return string(out), err
}

// appendExpanded is one pass of expansion.
func (e *Env) appendExpanded(dst []byte, text string) ([]byte, error) {
	limit := e.Limits.String
	start := len(dst)
	var open []int // where in dst the text of each open brace begins
	var room [8]int
	open = room[:0]
	unmatched := -1
	for {
		i := strings.IndexAny(text, "{}")
		if i < 0 {
			dst = append(dst, text...)
			break
		}
		dst = append(dst, text[:i]...)
		c := text[i]
		text = text[i+1:]
		if c == '{' {
			if len(open) == maxBraces {
				return dst, store.Errorf(store.ErrLimit, "braces are nested more than %d deep", maxBraces)
			}
			open = append(open, len(dst))
			continue
		}
		if len(open) == 0 {
			unmatched = len(dst)
			break
		}
		from := open[len(open)-1]
		open = open[:len(open)-1]
		name := unsafe.String(unsafe.SliceData(dst[from:]), len(dst)-from)
		if e.Tracked != nil {
			e.TrackName(strings.Clone(name))
		}
		var v karl.Value
		if r := e.Store.Lookup(name); r != nil {
			v = r.Peek()
		}
		var err error
		if dst, err = e.appendText(dst[:from], v, ", ", limit-(from-start)); err != nil {
			return dst, err
		}
	}
	if len(open) > 0 {
		unmatched = open[0]
	}
	if unmatched >= 0 {
		dst = dst[:unmatched]
	}
	if len(dst)-start > limit {
		return dst, tooLong(limit)
	}
	return dst, nil
}

func tooLong(limit int) error {
	return store.Errorf(store.ErrLimit, "a string would have more than %d bytes", limit)
}

// appendText appends the text of a value if it has at most room bytes.
func (e *Env) appendText(dst []byte, v karl.Value, delimiter string, room int) ([]byte, error) {
	if !v.Kind().IsArray() {
		if v.Kind() == karl.KindString && v.Len() > room {
			return dst, tooLong(e.Limits.String)
		}
		start := len(dst)
		dst = v.AppendText(dst, &e.Format, delimiter)
		if len(dst)-start > room {
			return dst, tooLong(e.Limits.String)
		}
		return dst, nil
	}
	start := len(dst)
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, delimiter...)
		}
		x, _ := v.At(i)
		dst = x.AppendText(dst, &e.Format, delimiter)
		if len(dst)-start > room {
			return dst, tooLong(e.Limits.String)
		}
	}
	return dst, nil
}

// concat is + with a string on its left.
func (f *Frame) concat(x, y karl.Value, at karl.Span) karl.Value {
	f.worked(x.Len()+y.Len(), at)
	limit := f.Env.Limits.String
	if n := y.Len(); x.Len()+n > limit/2 || y.Kind().IsArray() {
		// Long: build it under the limit before anything is allocated for the whole.
		if x.Len() > limit {
			return f.fail(at, tooLong(limit))
		}
		if y.Kind().IsString() {
			if x.Len()+n > limit {
				return f.fail(at, tooLong(limit))
			}
		} else {
			b, err := f.Env.appendText(nil, y, ", ", limit-x.Len())
			if err != nil {
				return f.fail(at, err)
			}
			y = karl.String(string(b))
		}
	}
	v := karl.OpAdd.Apply(x, y, &f.Env.Format)
	if v.Len() > limit { // a number next to a small limit
		return f.fail(at, tooLong(limit))
	}
	return v
}
