package knowledge_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func isLimit(err error) bool { return errors.Is(err, knowledge.ErrLimit) }

func newBase(t testing.TB, opts ...knowledge.Option) *knowledge.Base {
	t.Helper()
	kb := knowledge.New(opts...)
	t.Cleanup(func() { kb.Close() })
	return kb
}

// eval runs a program that must not fail.
func eval(t testing.TB, kb *knowledge.Base, src string) karl.Value {
	t.Helper()
	v, err := kb.Evaluate(src, nil)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return v
}

// check compares the values of variables with the texts of what they should hold.
func check(t testing.TB, kb *knowledge.Base, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if got := kb.Get(name).String(); got != text {
			t.Errorf("%s = %q, want %q", name, got, text)
		}
	}
}

func dump(kb *knowledge.Base) string {
	var b bytes.Buffer
	kb.WriteTo(&b)
	return b.String()
}

func TestSetGet(t *testing.T) {
	kb := newBase(t)
	values := map[string]karl.Value{
		"i": karl.Int(-5), "f": karl.Float(0.5), "s": karl.String("a'b"), ".local": karl.Int(1),
		"is": karl.Ints([]int64{1, 2}), "fs": karl.Floats([]float64{0.5}), "x y-1": karl.Int(3),
		"jpeg": karl.File(karl.KindJPEG, []byte{0, 1}), "zero": karl.Int(0), "empty": karl.String(""),
	}
	for name, v := range values {
		if err := kb.Set(name, v); err != nil {
			t.Fatalf("Set(%q): %v", name, err)
		}
	}
	for name, v := range values {
		if got := kb.Get(name); !got.Equal(v) {
			t.Errorf("%s = %v, want %v", name, got, v)
		}
		if r, ok := kb.Lookup(name); !ok || !r.Value.Equal(v) {
			t.Errorf("Lookup(%q) = %v, %v", name, r.Value, ok)
		}
	}
	if v := kb.Get("absent"); v.Exists() {
		t.Errorf("absent = %v", v)
	}
	if _, ok := kb.Lookup("absent"); ok {
		t.Error("Lookup found an absent variable")
	}
	var names []string
	for name := range kb.All("") {
		names = append(names, name)
	}
	if want := ".local empty f fs i is jpeg s x y-1 zero"; strings.Join(names, " ") != want {
		t.Errorf("names %q, want %q", names, want)
	}
}

func TestSetErrors(t *testing.T) {
	kb := newBase(t)
	for _, c := range []struct {
		name string
		v    karl.Value
		want error
	}{
		{"", karl.Int(1), knowledge.ErrName},
		{"a{b}", karl.Int(1), knowledge.ErrName},
		{strings.Repeat("n", 4097), karl.Int(1), knowledge.ErrName},
		{"a", karl.Value{}, knowledge.ErrKind},
	} {
		if err := kb.Set(c.name, c.v); !errors.Is(err, c.want) {
			t.Errorf("Set(%.20q, %v) = %v, want %v", c.name, c.v, err, c.want)
		}
	}
	for _, c := range []struct {
		i    int
		v    karl.Value
		want error
	}{
		{-1, karl.Int(1), knowledge.ErrIndex},
		{1 << 24, karl.Int(1), knowledge.ErrIndex},
		{0, karl.String("x"), knowledge.ErrKind},
	} {
		if err := kb.SetIndex("a", c.i, c.v); !errors.Is(err, c.want) {
			t.Errorf("SetIndex(%d, %v) = %v, want %v", c.i, c.v, err, c.want)
		}
	}
	if got := dump(kb); got != "" {
		t.Errorf("failed writes left %q", got)
	}
}

func TestSetIndex(t *testing.T) {
	kb := newBase(t)
	kb.Set("a", karl.Int(5))
	kb.SetIndex("a", 2, karl.Int(1))
	check(t, kb, map[string]string{"a": "0, 0, 1"})
	snapshot := kb.Get("a")
	kb.SetIndex("a", 0, karl.Int(7))
	kb.SetIndex("a", 1, karl.Float(0.5))
	check(t, kb, map[string]string{"a": "7.000000, 0.500000, 1.000000"})
	if snapshot.String() != "0, 0, 1" {
		t.Errorf("a value that was handed out changed to %v", snapshot)
	}
}

// TestArrayPayloads walks element writes through the sizes at which the payload
// is copied, with values handed out in between.
func TestArrayPayloads(t *testing.T) {
	kb := newBase(t)
	var model []int64
	var handed []karl.Value
	var copies []string
	for i := range 200 {
		at := i * 7 % (i/2 + 1)
		for len(model) <= at {
			model = append(model, 0)
		}
		model[at] = int64(i)
		if err := kb.SetIndex("a", at, karl.Int(int64(i))); err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 {
			v := kb.Get("a")
			handed, copies = append(handed, v), append(copies, v.String())
		}
	}
	if got, want := kb.Get("a"), karl.Ints(model); !got.Equal(want) {
		t.Errorf("a = %v, want %v", got, want)
	}
	for i, v := range handed {
		if v.String() != copies[i] {
			t.Errorf("a value that was handed out changed from %s to %v", copies[i], v)
		}
	}
}

func TestClearDeleteReset(t *testing.T) {
	kb := newBase(t)
	e, err := kb.Compile("++held")
	if err != nil {
		t.Fatal(err)
	}
	v := knowledge.NewVar[int64](kb, "handle")
	for _, take := range []func(string) bool{kb.Clear, kb.Delete, func(string) bool { kb.Reset(); return true }} {
		e.Evaluate(nil)
		v.Set(4)
		kb.Set("free", karl.Int(9))
		for _, name := range []string{"held", "handle", "free"} {
			if !take(name) {
				t.Errorf("taking %s away: not known", name)
			}
			if _, ok := kb.Lookup(name); ok {
				t.Errorf("%s is still there", name)
			}
		}
		e.Evaluate(nil)
		v.Add(2)
		check(t, kb, map[string]string{"held": "1", "handle": "2", "free": ""})
		kb.Reset()
	}
	if kb.Clear("never") || kb.Delete("never") {
		t.Error("a name nobody used was known")
	}
	if !kb.Delete("held") {
		eval(t, kb, "held") // compiled before: the key is gone since the Reset
	}
	eval(t, kb, "named") // a program that names a variable makes it a key
	cleared := kb.Clear("named")
	if again := kb.Clear("named"); !cleared || !again || !kb.Delete("named") || kb.Delete("named") {
		t.Error("want a named variable to be known until it is deleted")
	}
}

// TestDeleteMany makes and deletes variables that nobody holds, which must not
// keep memory, nor stay on any list.
func TestDeleteMany(t *testing.T) {
	kb := newBase(t, knowledge.WithLimits(knowledge.Limits{Variables: 100}))
	for i := range 10_000 {
		name := fmt.Sprint("v", i)
		if err := kb.Set(name, karl.Int(int64(i))); err != nil {
			t.Fatal(err)
		}
		if !kb.Delete(name) {
			t.Fatalf("%s was not known", name)
		}
	}
	if got := dump(kb); got != "" {
		t.Errorf("left %q", got)
	}
}

func TestVariablesLimit(t *testing.T) {
	kb := newBase(t, knowledge.WithLimits(knowledge.Limits{Variables: 3}))
	for _, name := range []string{"a", "b", "c"} {
		if err := kb.Set(name, karl.Int(1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := kb.Set("d", karl.Int(1)); !isLimit(err) {
		t.Errorf("Set beyond the limit: %v", err)
	}
	if _, err := kb.Compile("x = 1"); !isLimit(err) {
		t.Errorf("Compile beyond the limit: %v", err)
	}
	if _, err := kb.Evaluate("a = 1; #eval('q = 1')", nil); !isLimit(err) {
		t.Errorf("#eval beyond the limit: %v", err)
	}
	kb.Delete("b")
	if err := kb.Set("d", karl.Int(1)); err != nil {
		t.Errorf("Set after a deletion: %v", err)
	}
}

func TestQuality(t *testing.T) {
	kb := newBase(t)
	kb.SetQuality("x", 5)
	kb.Set("x", karl.Int(1))
	kb.SetQuality("x", 2)
	if err := kb.Set("x", karl.Int(2)); !errors.Is(err, knowledge.ErrQuality) {
		t.Errorf("Set with too low a quality: %v", err)
	}
	eval(t, kb, "x = 3; ++x; x += 4")
	check(t, kb, map[string]string{"x": "1"})
	if _, err := kb.Evaluate("x = 3", &knowledge.EvalSettings{Strict: true}); !errors.Is(err, knowledge.ErrQuality) {
		t.Errorf("assignment with too low a quality under Strict: %v", err)
	}
	if _, err := kb.Evaluate("x = 3", &knowledge.EvalSettings{Overwrite: true}); err != nil {
		t.Error(err)
	}
	if r, _ := kb.Lookup("x"); r.Value.Int() != 3 || r.Quality != 2 {
		t.Errorf("x after Overwrite: %+v", r)
	}
}

func TestUninitializedVariables(t *testing.T) {
	kb := newBase(t)
	strict := &knowledge.EvalSettings{Strict: true}
	for _, src := range []string{"x + 1", "x == 0", "y = x", "x += 1", "x++", "x[0]", "x{n}", "#get_clock(x)", "!x", "x && 1", ".i[x->3)(1)", "x{n}++"} {
		if _, err := kb.Evaluate(src, strict); !errors.Is(err, knowledge.ErrMissing) {
			t.Errorf("%s under Strict: %v", src, err)
		}
	}
	kb = newBase(t)
	for _, src := range []string{"++x", "z = 1", "--x{1}"} {
		src = strings.ReplaceAll(src, "{1}", "")
		if _, err := kb.Evaluate(src, strict); err != nil {
			t.Errorf("%s under Strict: %v", src, err)
		}
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	kb := newBase(t, knowledge.WithFiles(root))
	eval(t, kb, "s = 'hello'; a = [1, 2]; #write_file('s.txt', s); #write_file('a.bin', a)")
	eval(t, kb, "t = #read_file('s.txt'); b = #read_file('a.bin'); j = #read_file('a.bin', 'jpeg'); n = #read_file('none')")
	for name, kind := range map[string]karl.Kind{"t": karl.KindText, "b": karl.KindFile, "j": karl.KindJPEG} {
		if got := kb.Get(name).Kind(); got != kind {
			t.Errorf("%s is %s, want %s", name, got, kind)
		}
	}
	if got := string(kb.Get("b").Bytes()); got != "1, 2" {
		t.Errorf("the array's file holds %q", got)
	}
	for _, src := range []string{"#read_file('../secret')", "#read_file('/etc/hostname')", "#read_file('.')", "#read_file('s.txt', 'odd')"} {
		if v, err := kb.Evaluate(src, nil); err == nil {
			t.Errorf("%s = %v, want an error", src, v)
		}
	}
	small := newBase(t, knowledge.WithFiles(root), knowledge.WithLimits(knowledge.Limits{String: 3}))
	if _, err := small.Evaluate("#read_file('s.txt')", nil); !isLimit(err) {
		t.Errorf("reading a file beyond the limit: %v", err)
	}
	closed := newBase(t)
	for _, src := range []string{"#read_file('s.txt')", "#write_file('s.txt', 1)", "#expand_env('x')", "#sleep(1)"} {
		if _, err := closed.Evaluate(src, nil); !errors.Is(err, os.ErrPermission) {
			t.Errorf("%s in a base that does not allow it: %v", src, err)
		}
	}
}

func TestClosed(t *testing.T) {
	kb := knowledge.New()
	e, _ := kb.Compile("++x")
	v := knowledge.NewVar[int64](kb, "v")
	kb.Close()
	if err := kb.Close(); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{
		"Set":              kb.Set("x", karl.Int(1)),
		"SetIndex":         kb.SetIndex("x", 1, karl.Int(1)),
		"SetQuality":       kb.SetQuality("x", 1),
		"Evaluate":         second(kb.Evaluate("1", nil)),
		"Expression":       second(e.Evaluate(nil)),
		"Expression.With":  second(e.Evaluate(&knowledge.EvalSettings{Delay: true})),
		"Wait":             second(e.Wait(t.Context(), nil)),
		"Await":            kb.Await(t.Context(), func(knowledge.Guard) (bool, error) { return true, nil }),
		"Update":           kb.Update(func(knowledge.Guard) error { return nil }),
		"Define":           kb.Define("f", nil),
		"DefineExpression": kb.DefineExpression("f", "1"),
		"Send":             kb.Send(t.Context()),
		"Var.Set":          v.Set(1),
		"Var.Add":          v.Add(1),
	} {
		if !errors.Is(err, knowledge.ErrClosed) {
			t.Errorf("%s on a closed base: %v", what, err)
		}
	}
}

func second(_ karl.Value, err error) error { return err }

// TestPipes: a pipe in the place of a file is refused, not waited for.
func TestPipes(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("mkfifo", dir+"/pipe").CombinedOutput(); err != nil {
		t.Skipf("no pipes here: %v %s", err, out)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	kb := newBase(t, knowledge.WithFiles(root))
	if v, err := kb.Evaluate("#read_file('pipe')", nil); err == nil {
		t.Errorf("reading a pipe gave %v", v)
	}
	if v := eval(t, kb, "#write_file('pipe', 'x')"); v.Int() != -1 {
		t.Errorf("writing a pipe gave %v", v)
	}
}
