package knowledge_test

import (
	"bytes"
	"errors"
	"strconv"
	"testing"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

// TestNothingAfterFault has programs whose first part fails: what stands to the
// right of it, or would run next, must have no effect.
func TestNothingAfterFault(t *testing.T) {
	for _, src := range []string{
		"none() + (a = 1)", "none() - ++a", "none() * a++", "none() / (a += 1)", "none() % (a -= x)",
		"none() + (x = 'text')", "none() + (a[0] = 1)", "none() + ++a[1]", "none() + (w{i} = 1)", "none() + w{i}++",
		"none() + set()", "none() + f()", "none() + #print('x')", "none() + #eval('a = 1')", "none() + #set_clock(9)",
		"none() + #clear_var('kept')", "none() + #set_clock(kept, 5)", "none() + #log_level(5)",
		"none() < (a = 1)", "none() == set()", "1 + none() >= ++a", "none() != .i[0->2)", "none() + .i[0->2) (a = 1)",
		"none() && (a = 1)", "none() || (a = 1)", "!none() && (a = 1)", "none() => a = 1", "!none() => a = 1",
		"(none() == 0) => a = 1", "1 => none() + ++a", "none(); a = 1", "none(), a = 1", "none() ;> a = 1",
		"none(); ++a", "none() ;> 5; a = 1", "(none(); 1) + (a = 1)", "[none(), a = 1]", "[1, none(), ++a]",
		"f(none(), a = 1)", "set(none())", "#fragment(none(), a = 1, 2)", "#eval(none() + (a = 1))",
		"a = none()", "a += none()", "a[0] = none()", "a[none()] = 1", "a[none()] += 1", "a[0] *= none() + (b = 1)",
		"w{i} = none()", "w{i} += none()", "++a[none() + 1]", "a[none()]++", "++(none() + ++a)", "-(none() + ++a)",
		"kept = none() + 1", "kept += none() + 1", "kept -= none() + 1", "kept *= none() + 2", "kept[none() + 0] = 1", "++kept[none() + 1]",
		".i[none()->3) (a = 1)", ".i[0->none()] (a = 1)", ".i[-1->none()) (a = 1)", ".i[-1->none() - 1] ()", ".i[0->none() + 3)",
		".i[0->3) (none(); a = 1)", ".i[0-none()>3) (a)", ".i{i}[-1->none()) (a = 1)", ".i[0->3) (none() + ++a)",
	} {
		var out bytes.Buffer
		kb := newBase(t, knowledge.WithOutput(&out))
		kb.Define("set", func(c *knowledge.Call) (karl.Value, error) { return karl.Int(1), c.Guard.Set("a", karl.Int(1)) })
		kb.DefineExpression("f", "a = 1")
		for range 2 {
			kb.Set("kept", karl.Int(1))
			if _, err := kb.Evaluate(src, nil); !errors.Is(err, knowledge.ErrUndefined) {
				t.Errorf("%s: error %v, want an undefined function", src, err)
			}
			left := map[string]bool{"kept": true, ".i": true, ".0": true}
			for name, r := range kb.All("") {
				if !left[name] {
					t.Errorf("%s: set %s to %v", src, name, r.Value)
				}
			}
			if r, ok := kb.Lookup("kept"); !ok || r.Clock != 0 || !r.Value.Equal(karl.Int(1)) {
				t.Errorf("%s: kept is %v", src, r)
			}
			if v, _ := kb.Evaluate("#get_clock() + #log_level()", nil); out.Len() > 0 || v.Int() != 1 {
				t.Errorf("%s: printed %q, or set clock or level: %v", src, out.String(), v)
			}
		}
	}
}

// TestRefusedWrites writes in every form over a value of higher quality.
func TestRefusedWrites(t *testing.T) {
	for _, c := range []struct{ src, value, written string }{
		{"q = 7", "7", "7"}, {"q = a", "2", "2"}, {"q = 'text'", "text", "text"}, {"q = 0.5", "0.500000", "0.500000"},
		{"q += 1", "6", "6"}, {"q -= a", "3", "3"}, {"++q", "6", "6"}, {"q--", "5", "4"}, {"{n} = 7", "7", "7"}, {"++{n}", "6", "6"},
		{"q[1] = 3", "3", "0, 3"}, {"q[0] += 1", "", "1"}, {"++q[1]", "", "0, 1"}, {"{n}[1] = 3", "3", "0, 3"},
		{"q; q = 7; 1 => ++q", "7", "8"}, {"1 => q = 7", "1", "7"}, {"q[0->3)", "3", "3"}, {"q[5->6) (a = 3)", "1", "6"},
	} {
		kb := newBase(t)
		run := func(s *knowledge.EvalSettings) (karl.Value, error) {
			kb.Reset()
			eval(t, kb, "a = 2; n = 'q'")
			kb.SetQuality("q", 5)
			kb.Set("q", karl.Int(5))
			kb.SetQuality("q", 4)
			return kb.Evaluate(c.src, s)
		}
		if c.src != "q[5->6) (a = 3)" { // refused, it never ends
			if v, err := run(nil); err != nil || kb.Get("q").Int() != 5 || v.String() != c.value {
				t.Errorf("%s: %q, %v, q = %v; want %q and q as it was", c.src, v, err, kb.Get("q"), c.value)
			}
		}
		if _, err := run(&knowledge.EvalSettings{Strict: true}); !errors.Is(err, knowledge.ErrQuality) || kb.Get("q").Int() != 5 {
			t.Errorf("%s under Strict: %v, q = %v", c.src, err, kb.Get("q"))
		}
		if _, err := run(&knowledge.EvalSettings{Overwrite: true}); err != nil || kb.Get("q").String() != c.written {
			t.Errorf("%s with Overwrite: %v, q = %v, want %s", c.src, err, kb.Get("q"), c.written)
		}
		if r, _ := kb.Lookup("q"); r.Quality != 4 {
			t.Errorf("%s with Overwrite: quality %d", c.src, r.Quality)
		}
	}
}

// TestEvalTexts runs more texts through #eval than it remembers, so that some are
// compiled again and none is mistaken for another.
func TestEvalTexts(t *testing.T) {
	kb := newBase(t)
	eval(t, kb, ".j[0->3) (.i[0->200) (#eval('v' + .i + ' += ' + .i)))")
	for i := range 200 {
		if got, want := kb.Get("v"+strconv.Itoa(i)).Int(), int64(3*i); got != want {
			t.Errorf("v%d = %d, want %d", i, got, want)
		}
	}
}
