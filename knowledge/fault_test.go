package knowledge_test

import (
	"bytes"
	"errors"
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
		".i[none()->3) (a = 1)", ".i[0->none()] (a = 1)", ".i[-1->none()) (a = 1)", ".i[-1->none() - 1] ()", ".i[0->none() + 3)",
		".i[0->3) (none(); a = 1)", ".i[0-none()>3) (a)", ".i{i}[-1->none()) (a = 1)", ".i[0->3) (none() + ++a)",
	} {
		var out bytes.Buffer
		kb := newBase(t, knowledge.WithOutput(&out))
		kb.Set("kept", karl.Int(1))
		kb.Define("set", func(c *knowledge.Call) (karl.Value, error) { return karl.Int(1), c.Guard.Set("a", karl.Int(1)) })
		kb.DefineExpression("f", "a = 1")
		for range 2 {
			if _, err := kb.Evaluate(src, nil); !errors.Is(err, knowledge.ErrUndefined) {
				t.Errorf("%s: error %v, want an undefined function", src, err)
			}
			left := map[string]bool{"kept": true, ".i": true, ".0": true}
			for name, r := range kb.All("") {
				if !left[name] {
					t.Errorf("%s: set %s to %v", src, name, r.Value)
				}
			}
			if r, ok := kb.Lookup("kept"); !ok || r.Clock != 0 {
				t.Errorf("%s: kept is %v", src, r)
			}
			if v, _ := kb.Evaluate("#get_clock() + #log_level()", nil); out.Len() > 0 || v.Int() != 1 {
				t.Errorf("%s: printed %q, or set clock or level: %v", src, out.String(), v)
			}
		}
	}
}
