package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// record is the outcome of an evaluation, to be written as a line of JSON.
type record struct {
	id     []byte // JSON, nil for none
	result *karl.Value
	vars   iter.Seq2[string, knowledge.Record]
	output *string
	fault  *fault
}

// fault is an error in JSON.
type fault struct {
	phase   string
	message string
	program int // which of several, from 1; 0 if there is one
	pos     karl.Pos
}

// faultOf describes the first fault in an error.
func faultOf(code int, err error) *fault {
	f := &fault{phase: "evaluate", message: err.Error()}
	if code == exitCompile {
		f.phase = "compile"
	}
	var run *knowledge.EvalError
	var list karl.ErrorList
	switch {
	case errors.As(err, &run):
		f.message, f.pos = run.Err.Error(), run.Pos()
		if n := len(run.Sites); n > 1 || n == 1 && run.Sites[0].Function != "" {
			f.message = run.Error() // with the calls
		}
	case errors.As(err, &list) && len(list) > 0:
		f.message, f.pos = list[0].Msg, list[0].Pos
		if len(list) > 1 {
			f.message += fmt.Sprintf(" (and %d more)", len(list)-1)
		}
	}
	return f
}

// writeTo writes the record as one line, variable by variable.
func (r *record) writeTo(w io.Writer) error {
	b := []byte("{")
	if r.id != nil {
		b = append(append(append(b, `"id":`...), r.id...), ',')
	}
	if r.result != nil {
		b = append(appendValue(append(b, `"result":`...), *r.result), ',')
	}
	b = append(b, `"vars":{`...)
	if r.vars != nil {
		first := true
		for name, v := range r.vars {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = append(appendName(b, name), ':')
			b = appendValue(b, v.Value)
			if len(b) >= 64<<10 {
				if _, err := w.Write(b); err != nil {
					return err
				}
				b = b[:0]
			}
		}
	}
	b = append(b, '}')
	if r.output != nil {
		b = appendText(append(b, `,"output":`...), *r.output)
	}
	if f := r.fault; f != nil {
		b = append(b, `,"error":{"phase":"`...)
		b = append(append(b, f.phase...), `","message":`...)
		b = appendName(b, strings.ToValidUTF8(f.message, "\uFFFD"))
		if f.program > 0 {
			b = fmt.Appendf(b, `,"program":%d`, f.program)
		}
		if f.pos.IsValid() {
			b = fmt.Appendf(b, `,"line":%d,"column":%d`, f.pos.Line, f.pos.Column)
		}
		b = append(b, '}')
	}
	_, err := w.Write(append(b, '}', '\n'))
	return err
}

// appendValue appends {"type":…,"value":…}. Doubles always have a point or an
// exponent, and those that are not finite are texts.
func appendValue(b []byte, v karl.Value) []byte {
	b = append(append(append(b, `{"type":"`...), v.Kind().String()...), `","value":`...)
	switch k := v.Kind(); {
	case k == karl.KindUninitialized:
		b = append(b, "null"...)
	case k == karl.KindInteger:
		b = strconv.AppendInt(b, v.Int(), 10)
	case k == karl.KindDouble:
		b = appendFloat(b, v.Float())
	case k.IsString():
		b = appendText(b, v.String())
	case k.IsFile():
		b = appendBytes(b, v.Bytes())
	default:
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			if x, _ := v.At(i); k == karl.KindIntegers {
				b = strconv.AppendInt(b, x.Int(), 10)
			} else {
				b = appendFloat(b, x.Float())
			}
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

func appendFloat(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, `"nan"`...)
	case math.IsInf(f, 1):
		return append(b, `"inf"`...)
	case math.IsInf(f, -1):
		return append(b, `"-inf"`...)
	}
	from := len(b)
	b = strconv.AppendFloat(b, f, 'g', -1, 64)
	if !strings.ContainsAny(string(b[from:]), ".e") {
		b = append(b, ".0"...)
	}
	return b
}

// appendText appends a string, or the list of its bytes if it is not UTF-8, so
// that nothing is lost.
func appendText(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		return appendBytes(b, []byte(s))
	}
	return appendName(b, s)
}

func appendBytes(b, list []byte) []byte {
	b = append(b, '[')
	for i, c := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(c), 10)
	}
	return append(b, ']')
}

// appendName appends a string. A byte that is not UTF-8 becomes one of \udc80
// to \udcff, which UTF-8 text cannot contain.
func appendName(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b = fmt.Appendf(b, `\udc%02x`, s[i])
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\t':
			b = append(b, '\\', 't')
		case r < ' ' || r == 0x7f:
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = append(b, s[i:i+size]...)
		}
		i += size
	}
	return append(b, '"')
}
