package knowledge_test

import (
	"strings"
	"testing"
)

// TestWhatExpressionsUse checks which variables an expression says it reads and
// writes, in every place a name can stand, and whether it is pure.
func TestWhatExpressionsUse(t *testing.T) {
	for _, c := range []struct {
		src, reads, writes string
		pure               bool
	}{
		{"1 + 2", "", "", true},
		{"a", "a", "", true},
		{"a + 1", "a", "", true}, {"a - 1", "a", "", true}, {"a * 2", "a", "", true}, {"a / 2", "a", "", true}, {"1 + a", "a", "", true},
		{"a + b", "a b", "", true}, {"a * 2 - b", "a b", "", true}, {"(a + 1) * 2.5", "a", "", true},
		{"a < 3", "a", "", true}, {"a == b", "a b", "", true}, {"'x' != a", "a", "", true},
		{"a && b || !c", "a b c", "", true}, {"a > 1 => b", "a b", "", true}, {"1 => a", "a", "", true}, {"0 => a", "a", "", true},
		{"a; b, c ;> d", "a b c d", "", true}, {"[a, b[c]]", "a b c", "", true}, {"-a + +b", "a b", "", true}, {"++(a + 1)", "a", "", true},
		{"#size(a) + #pow(b, c)", "a b c", "", true}, {"#to_string(a)", "a", "", true}, {"#to_doubles(a)", "a", "", true},
		{"#expand('{a}')", "", "", true}, {"a{b}", "", "", true},
		{"a = 1", "", "a", false}, {"a = b", "b", "a", false}, {"a = a + 1", "a", "a", false}, {"a += 1", "a", "a", false},
		{"++a", "a", "a", false}, {"a--", "a", "a", false}, {"++a; b = 1; 1 => ++c", "a c", "a b c", false},
		{"a[b] = c", "a b c", "a", false}, {"a[0] += 1", "a", "a", false}, {"++a[b]", "a b", "a", false}, {"a{b} = c", "c", "", false},
		{".i[a-b>c) (d)", ".i a b c d", ".i", false}, {".i[0->a)", "a", ".i", false},
		{"f(a)", "a", "", false}, {"#eval(a)", "a", "", false}, {"#print(a)", "a", "", false}, {"#get_time()", "", "", false},
		{"#get_clock(a)", "a", "", false}, {"#set_clock(a, b)", "b", "a", false}, {"#clear_var('a')", "", "", false},
		{"#rand_int()", "", "", false}, {"#set_precision(2)", "", "", false}, {"#log_level()", "", "", false},
	} {
		e, err := newBase(t).Compile(c.src)
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		reads, writes := strings.Join(e.Reads(), " "), strings.Join(e.Writes(), " ")
		if reads != c.reads || writes != c.writes || e.Pure() != c.pure {
			t.Errorf("%s reads %q, writes %q, pure %v; want %q, %q, %v", c.src, reads, writes, e.Pure(), c.reads, c.writes, c.pure)
		}
	}
}
