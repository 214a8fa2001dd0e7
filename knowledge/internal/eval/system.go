package eval

import (
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge/internal/store"
)

// system is one of the language's own functions.
type system struct {
	run   func(f *Frame, args []karl.Value) (karl.Value, error) // args are valid until it returns
	texts uint8                                                 // bit i: argument i is taken as text
}

// systems are the functions with an effect, or whose value depends on more than
// their arguments. The others are in karl; #eval and the forms of the clock that
// name a variable are compiled by systemCall itself.
var systems = map[string]system{
	"args":               {(*Frame).sysArgs, 0},
	"arg":                {(*Frame).sysArg, 0},
	"buffer":             {(*Frame).sysBuffer, 0},
	"clear_var":          {(*Frame).sysClear, 1},
	"delete_var":         {(*Frame).sysDelete, 1},
	"doubles":            {(*Frame).sysDoubles, 0},
	"get_clock":          {(*Frame).sysClock, 0},
	"set_clock":          {(*Frame).sysSetClock, 0},
	"expand":             {(*Frame).sysExpand, 1},
	"expand_env":         {(*Frame).sysExpandEnv, 1},
	"get_time":           {(*Frame).sysTime, 0},
	"get_time_seconds":   {(*Frame).sysTimeSeconds, 0},
	"integers":           {(*Frame).sysIntegers, 0},
	"log_level":          {(*Frame).sysLogLevel, 0},
	"precision":          {(*Frame).sysPrecision, 0},
	"fixed":              {(*Frame).sysFixed, 0},
	"scientific":         {(*Frame).sysScientific, 0},
	"string":             {(*Frame).sysString, 2},
	"print":              {(*Frame).sysPrint, 1},
	"print_system_calls": {(*Frame).sysHelp, 1},
	"rand_double":        {(*Frame).sysRandDouble, 0},
	"rand_int":           {(*Frame).sysRandInt, 0},
	"read_file":          {(*Frame).sysReadFile, 3},
	"write_file":         {(*Frame).sysWriteFile, 1},
	"sleep":              {(*Frame).sysSleep, 0},
	"to_host_dirs":       {(*Frame).sysHostDirs, 1},
}

// pure are those of systems that have no effect and depend on nothing but their
// arguments, the function's and the number format.
var pure = map[string]bool{
	"args": true, "arg": true, "buffer": true, "doubles": true, "integers": true, "string": true, "to_host_dirs": true,
}

func (c *compiler) systemCall(n *karl.SystemCall) node {
	at, fn := n.Span, n.Func
	switch fn {
	case "get_clock", "set_clock":
		if fn == "get_clock" && len(n.Args) == 1 || len(n.Args) == 2 {
			return c.clockOf(n)
		}
	case "eval":
		c.effect()
		c.p.Calls, c.p.Dynamic = true, true
		x := c.expr(n.Args[0])
		return func(f *Frame) karl.Value {
			v := x(f)
			if f.err != nil {
				return v
			}
			return f.evaluate(v, at)
		}
	}
	args := c.exprs(n.Args)
	call, ok := systems[fn]
	switch {
	case !ok:
		call.run = func(f *Frame, args []karl.Value) (karl.Value, error) {
			v, _ := karl.CallPure(fn, args, &f.Env.Format)
			return v, nil
		}
	case fn == "expand":
		c.p.Dynamic = true
	case !pure[fn]:
		c.effect()
	}
	return func(f *Frame) karl.Value {
		e := f.Env
		base := len(e.values)
		for i, arg := range args {
			v := arg(f)
			if f.err == nil && call.texts>>i&1 != 0 {
				v = f.text(v, at)
			}
			if f.err != nil {
				e.pop(base)
				return v
			}
			e.values = append(e.values, v)
		}
		v, err := call.run(f, e.values[base:])
		e.pop(base)
		f.worked(v.Len(), at)
		if err != nil {
			return f.fail(at, fmt.Errorf("#%s: %w", n.Name, err))
		}
		return v
	}
}

// text turns a value into a string.
func (f *Frame) text(v karl.Value, at karl.Span) karl.Value {
	if v.Kind() == karl.KindString {
		return v
	}
	b, err := f.Env.appendText(nil, v, ", ", f.Env.Limits.String)
	if err != nil {
		return f.fail(at, err)
	}
	return karl.String(string(b))
}

// maxTexts is how many texts #eval remembers.
const maxTexts = 64

// evaluate is #eval.
func (f *Frame) evaluate(v karl.Value, at karl.Span) karl.Value {
	e := f.Env
	if !f.charge(1, at) {
		return karl.Value{}
	}
	text := f.text(v, at).String()
	// Parsing takes time too: a step for each 16 bytes, whether the text is
	// remembered or not, so that programs behave alike each time.
	if f.err != nil || !f.charge(int64(len(text)/16), at) {
		return v
	}
	p := e.texts[text]
	if p == nil {
		tree, err := karl.Parse("#eval", text)
		if err != nil {
			return f.fail(at, err)
		}
		bound, failure := e.Compile(tree, "")
		if failure != nil {
			return f.fail(at, failure.Err)
		}
		p = bound
		if len(text) <= maxEvalText {
			if len(e.textOrder) == maxTexts {
				delete(e.texts, e.textOrder[0])
				e.textOrder = slices.Delete(e.textOrder, 0, 1)
			}
			e.texts[text] = p
			e.textOrder = append(e.textOrder, text)
		}
	}
	return f.nest(p, f.args, f.inCall, f.mode, at)
}

// maxEvalText is the longest text that #eval remembers, in bytes.
const maxEvalText = 64 << 10

func (f *Frame) sysArgs([]karl.Value) (karl.Value, error) { return karl.Int(int64(len(f.args))), nil }

func (f *Frame) sysArg(args []karl.Value) (karl.Value, error) {
	i := args[0].Int()
	if i < 0 || i >= int64(len(f.args)) {
		return karl.Value{}, nil
	}
	return f.args[i], nil
}

// named finds the variable that a text names, for the calls that take a name.
func (f *Frame) named(v karl.Value) (*store.Record, error) {
	name, err := f.Env.Expand(v.String())
	if err != nil {
		return nil, err
	}
	return f.st.Lookup(name), nil
}

func (f *Frame) sysClear(args []karl.Value) (karl.Value, error) {
	r, err := f.named(args[0])
	if r == nil || err != nil {
		return karl.Int(0), err
	}
	return karl.Bool(f.st.Clear(r)), nil
}

func (f *Frame) sysDelete(args []karl.Value) (karl.Value, error) {
	r, err := f.named(args[0])
	if r == nil || err != nil {
		return karl.Int(0), err
	}
	return karl.Bool(f.st.Delete(r)), nil
}

func (f *Frame) sysClock([]karl.Value) (karl.Value, error) {
	return karl.Int(int64(f.st.Clock)), nil
}

// maxClock is the latest clock that a program may set: a clock that overflows
// would never be later than any again.
const maxClock = 1 << 62

func (f *Frame) sysSetClock(args []karl.Value) (karl.Value, error) {
	c := args[0].Int()
	if c > maxClock {
		return karl.Value{}, store.Errorf(store.ErrLimit, "clock %d, at most %d is allowed", c, int64(maxClock))
	}
	if c > 0 {
		f.st.RaiseClock(uint64(c))
	}
	return karl.Int(int64(f.st.Clock)), nil
}

// clockOf compiles #get_clock(x) and #set_clock(x, v).
func (c *compiler) clockOf(n *karl.SystemCall) node {
	c.effect()
	at := n.Span
	name, ok := karl.Unparen(n.Args[0]).(*karl.Name)
	if !ok {
		c.fail(at, store.Errorf(ErrName, "#%s takes a variable", n.Name))
		return nil
	}
	t := &target{at: name.Span}
	if dynamic(name) {
		t.dynamic = c.dynamicName(name)
	} else {
		t.rec = c.record(name, access(len(n.Args))) // reads with one, writes with two
	}
	if len(n.Args) == 1 {
		return func(f *Frame) karl.Value {
			r := t.rec
			if r == nil {
				r = t.dynamic.record(f)
			}
			if f.err != nil {
				return karl.Value{}
			}
			if f.strict && (r == nil || !r.Exists()) {
				return f.missing(t.name(), t.at)
			}
			if r == nil {
				return karl.Int(0)
			}
			return karl.Int(int64(r.Clock))
		}
	}
	value := c.expr(n.Args[1])
	return func(f *Frame) karl.Value {
		v := value(f).Int()
		if f.err != nil {
			return karl.Value{}
		}
		r := t.write(f)
		if r == nil {
			return karl.Value{}
		}
		if v > maxClock {
			return f.fail(at, store.Errorf(store.ErrLimit, "#%s: clock %d, at most %d is allowed", n.Name, v, int64(maxClock)))
		}
		f.st.SetClock(r, uint64(max(v, 0)))
		return karl.Int(int64(r.Clock))
	}
}

func (f *Frame) sysExpand(args []karl.Value) (karl.Value, error) {
	s, err := f.Env.Expand(args[0].String())
	return karl.String(s), err
}

func (f *Frame) sysString(args []karl.Value) (karl.Value, error) {
	delimiter := ", "
	if len(args) > 1 {
		delimiter = args[1].String()
	}
	b, err := f.Env.appendText(nil, args[0], delimiter, f.Env.Limits.String)
	return karl.String(string(b)), err
}

func (f *Frame) sysBuffer(args []karl.Value) (karl.Value, error) {
	if v := args[0]; v.Kind().IsArray() && v.Len() > f.Env.Limits.String/8 {
		return karl.Value{}, tooLong(f.Env.Limits.String)
	}
	return args[0].Buffer(), nil
}

func (f *Frame) sysIntegers(args []karl.Value) (karl.Value, error) {
	if err := f.checkElements(args[0]); err != nil {
		return karl.Value{}, err
	}
	return args[0].Integers(), nil
}

func (f *Frame) sysDoubles(args []karl.Value) (karl.Value, error) {
	if err := f.checkElements(args[0]); err != nil {
		return karl.Value{}, err
	}
	return args[0].Doubles(), nil
}

// checkElements refuses to make more elements of the bytes of a value than an
// array may have.
func (f *Frame) checkElements(v karl.Value) error {
	if limit := f.st.Limits.Array; !v.Kind().IsArray() && v.Size() > int64(limit) {
		return store.Errorf(store.ErrLimit, "an array would have more than %d elements", limit)
	}
	return nil
}

// sysExpandEnv replaces $(X) and ${X} by the environment variable X.
func (f *Frame) sysExpandEnv(args []karl.Value) (karl.Value, error) {
	if !f.Env.Environ {
		return karl.Value{}, fmt.Errorf("the environment is closed to programs: %w", os.ErrPermission)
	}
	s := args[0].String()
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		// The shortest reference is four bytes long.
		if i < 0 || len(s)-i < 4 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		rest := s[i+2:]
		end := strings.IndexAny(rest, ")}")
		if end < 0 {
			end = len(rest)
		}
		b.WriteString(os.Getenv(rest[:end]))
		if b.Len() > f.Env.Limits.String {
			return karl.Value{}, tooLong(f.Env.Limits.String)
		}
		s = rest[min(end+1, len(rest)):]
	}
	return karl.String(b.String()), nil
}

func (f *Frame) sysTime([]karl.Value) (karl.Value, error) { return karl.Int(f.st.Now()), nil }

func (f *Frame) sysTimeSeconds([]karl.Value) (karl.Value, error) {
	return karl.Int(time.Now().Unix()), nil
}

func (f *Frame) sysLogLevel(args []karl.Value) (karl.Value, error) {
	if len(args) > 0 {
		f.Env.Level = int(min(max(args[0].Int(), math.MinInt32), math.MaxInt32))
	}
	return karl.Int(int64(f.Env.Level)), nil
}

func (f *Frame) sysPrecision(args []karl.Value) (karl.Value, error) {
	if len(args) > 0 {
		f.Env.Format.SetPrecision(args[0].Int())
	}
	return karl.Int(f.Env.Format.Precision()), nil
}

func (f *Frame) sysFixed([]karl.Value) (karl.Value, error) {
	f.Env.Format.Scientific = false
	return karl.Value{}, nil
}

func (f *Frame) sysScientific([]karl.Value) (karl.Value, error) {
	f.Env.Format.Scientific = true
	return karl.Value{}, nil
}

func (f *Frame) sysPrint(args []karl.Value) (karl.Value, error) {
	level := int64(0)
	if len(args) > 1 {
		level = args[1].Int()
	}
	if level > int64(f.Env.Level) {
		return karl.Int(0), nil
	}
	s, err := f.Env.Expand(args[0].String())
	if err == nil && f.Env.Print != nil {
		f.Env.Print(int(level), s)
	}
	return karl.Int(0), err
}

func (f *Frame) sysHelp(args []karl.Value) (karl.Value, error) {
	name := ""
	if len(args) > 0 {
		name = args[0].String()
	}
	if f.Env.Print != nil {
		f.Env.Print(0, karl.SystemCallHelp(name))
	}
	if len(args) > 0 {
		return karl.Int(1), nil
	}
	return karl.Value{}, nil
}

func (f *Frame) sysRandDouble(args []karl.Value) (karl.Value, error) {
	low, high := 0.0, 1.0
	if len(args) > 0 {
		low = args[0].Float()
	}
	if len(args) > 1 {
		high = args[1].Float()
	}
	if low > high {
		low, high = high, low
	}
	u := f.Env.Rand.Float64()
	return karl.Float(low*(1-u) + high*u), nil
}

func (f *Frame) sysRandInt(args []karl.Value) (karl.Value, error) {
	low, high := int64(0), int64(1)
	if len(args) > 0 {
		low = args[0].Int()
	}
	if len(args) > 1 {
		high = args[1].Int()
	}
	if low > high {
		low, high = high, low
	}
	width := uint64(high) - uint64(low)
	if width == math.MaxUint64 {
		return karl.Int(int64(f.Env.Rand.Uint64())), nil
	}
	return karl.Int(int64(uint64(low) + f.Env.Rand.Uint64N(width+1))), nil
}

func (f *Frame) sysReadFile(args []karl.Value) (karl.Value, error) {
	if f.Env.Files == nil {
		return karl.Value{}, fmt.Errorf("files are closed to programs: %w", os.ErrPermission)
	}
	name := args[0].String()
	kind := karl.KindFile
	switch strings.ToLower(path.Ext(name)) {
	case ".txt":
		kind = karl.KindText
	case ".xml":
		kind = karl.KindXML
	case ".jpg", ".jpeg":
		kind = karl.KindJPEG
	}
	if len(args) > 1 {
		switch strings.ToLower(args[1].String()) {
		case "text", "txt":
			kind = karl.KindText
		case "xml":
			kind = karl.KindXML
		case "jpeg", "jpg":
			kind = karl.KindJPEG
		case "string":
			kind = karl.KindString
		case "file", "binary", "blob":
			kind = karl.KindFile
		default:
			return karl.Value{}, store.Errorf(ErrKind, "type %q is not one of text, xml, jpeg, string, file", clip(args[1].String()))
		}
	}
	// A pipe would wait for its other end, with the base locked.
	file, err := f.Env.Files.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		if os.IsNotExist(err) {
			return karl.Value{}, nil
		}
		return karl.Value{}, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return karl.Value{}, fmt.Errorf("%s is not a regular file", name)
	}
	b, err := io.ReadAll(io.LimitReader(file, int64(f.Env.Limits.String)+1))
	if err != nil {
		return karl.Value{}, err
	}
	if len(b) > f.Env.Limits.String {
		return karl.Value{}, tooLong(f.Env.Limits.String)
	}
	return karl.File(kind, b), nil
}

func (f *Frame) sysWriteFile(args []karl.Value) (karl.Value, error) {
	if f.Env.Files == nil {
		return karl.Value{}, fmt.Errorf("files are closed to programs: %w", os.ErrPermission)
	}
	v := args[1]
	var data []byte
	if v.Kind().IsArray() {
		var err error
		if data, err = f.Env.appendText(nil, v, ", ", f.Env.Limits.String); err != nil {
			return karl.Value{}, err
		}
	} else if v.Exists() {
		data = v.Bytes()
	}
	if err := writeFile(f.Env.Files, args[0].String(), data); err != nil {
		return karl.Int(-1), nil
	}
	if !v.Exists() {
		return karl.Int(0), nil
	}
	return karl.Value{}, nil
}

// writeFile replaces the contents of a regular file, made if there is none.
func writeFile(root *os.Root, name string, data []byte) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|nonblock, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", name)
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err = file.Write(data)
	return err
}

func (f *Frame) sysSleep(args []karl.Value) (karl.Value, error) {
	if !f.Env.Sleep {
		return karl.Value{}, fmt.Errorf("programs may not sleep here: %w", os.ErrPermission)
	}
	seconds := args[0].Float()
	if !(seconds > 0) {
		return karl.Float(0), nil
	}
	d := time.Duration(math.MaxInt64)
	if ns := seconds * float64(time.Second); ns < math.MaxInt64/2 {
		d = time.Duration(ns)
	}
	began := time.Now()
	err := sleep(f.Env.Context(), d)
	return karl.Float(time.Since(began).Seconds()), err
}

func (f *Frame) sysHostDirs(args []karl.Value) (karl.Value, error) {
	s := args[0].String()
	if os.PathSeparator == '/' {
		s = strings.ReplaceAll(s, `\`, "/")
	} else {
		s = strings.ReplaceAll(s, "/", `\`)
	}
	return karl.String(s), nil
}
