package filter_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
	"github.com/madara-go/madara/knowledge/filter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// through returns the names that a record filter lets through.
func through(f knowledge.RecordFilter, now time.Duration, names ...string) string {
	var kept []string
	for _, name := range names {
		if _, ok := f(&knowledge.FilterContext{Now: now}, name, karl.Int(1)); ok {
			kept = append(kept, name)
		}
	}
	return strings.Join(kept, " ")
}

func TestPrefixes(t *testing.T) {
	for _, c := range []struct {
		f    knowledge.RecordFilter
		want string
	}{
		{filter.Prefixes("a.", "b", "a.b.c"), "a. a.b b ba"},
		{filter.Prefixes(), ""},
		{filter.Prefixes(""), "a a. a.b aa b ba c"},
		{filter.Drop("a.", "b"), "a aa c"},
		{filter.Drop(), ""},
	} {
		if got := through(c.f, 0, "a", "a.", "a.b", "aa", "b", "ba", "c"); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[ab.]{0,5}`)
		list, name := rapid.SliceOfN(word, 0, 10).Draw(t, "prefixes"), word.Draw(t, "name")
		want := slices.ContainsFunc(list, func(p string) bool { return strings.HasPrefix(name, p) })
		if _, got := filter.Prefixes(list...)(nil, name, karl.Int(1)); got != want {
			t.Fatalf("%q in %q: %t", name, list, got)
		}
	})
}

func TestKindsAndRate(t *testing.T) {
	f := filter.Kinds(karl.KindInteger, karl.KindString)
	for v, want := range map[*karl.Value]bool{ptr(karl.Int(1)): true, ptr(karl.String("")): true, ptr(karl.Float(1)): false, ptr(karl.Ints(nil)): false} {
		if _, ok := f(nil, "x", *v); ok != want {
			t.Errorf("%v: %t", v.Kind(), ok)
		}
	}
	rate := filter.Rate(10)
	for _, c := range []struct {
		at   time.Duration
		want string
	}{{time.Second, "a b"}, {time.Second, ""}, {1099 * time.Millisecond, ""}, {1100 * time.Millisecond, "a b"}} {
		if got := through(rate, c.at, "a", "b"); got != c.want {
			t.Errorf("at %v: %q, want %q", c.at, got, c.want)
		}
	}
	if got := through(filter.Rate(0), 0, "a"); got != "" {
		t.Errorf("at no rate: %q", got)
	}
	for i := range 200_000 { // of many names
		through(rate, 2*time.Second, fmt.Sprint("n", i))
	}
}

func ptr(v karl.Value) *karl.Value { return &v }

func message(names ...string) map[string]karl.Value {
	m := map[string]karl.Value{}
	for i, name := range names {
		m[name] = karl.Int(int64(i))
	}
	return m
}

func names(m map[string]karl.Value) string {
	var list []string
	for name := range m {
		list = append(list, name)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func TestListsOfTheBase(t *testing.T) {
	kb := knowledge.New()
	defer kb.Close()
	prefixes, exact := filter.Allowed(kb, "allowed"), filter.AllowedNames(kb, "names")
	m := message("a.x", "b.x", "b", "c")
	prefixes(nil, m)
	exact(nil, m)
	if got := names(m); got != "a.x b b.x c" {
		t.Errorf("without lists: %s", got)
	}
	kb.Evaluate("allowed.size = 2; allowed.0 = 'a.'; allowed.1 = 'b'; names.size = 2; names.0 = 'b*'; names.1 = 'c'", nil)
	m = message("a.x", "b.x", "b", "c")
	prefixes(nil, m)
	if got := names(m); got != "a.x b b.x" {
		t.Errorf("prefixes: %s", got)
	}
	m = message("a.x", "b.x", "b", "c", "cc")
	exact(nil, m)
	if got := names(m); got != "b b.x c" {
		t.Errorf("names: %s", got)
	}
	kb.Evaluate("allowed.size = 1000000000000", nil) // of which there are two
	m = message("a.x", "c")
	prefixes(nil, m)
	if got := names(m); got != "a.x" {
		t.Errorf("a long list: %s", got)
	}
	m = message("a", "b")
	filter.Copy(map[string]string{"a": "z", "nothing": "y"})(nil, m)
	if got := names(m); got != "a b z" || !m["z"].Equal(m["a"]) {
		t.Errorf("copied: %s", got)
	}
	var n filter.Counter
	n.Filter(&knowledge.FilterContext{Now: 5}, m)
	n.Filter(&knowledge.FilterContext{Now: 9}, m)
	if got, want := n.Count(), (filter.Count{2, 6, 5, 9}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	filter.Clear(nil, m)
	if len(m) != 0 {
		t.Error("not cleared")
	}
}

func TestDiscovery(t *testing.T) {
	kb := knowledge.New()
	defer kb.Close()
	peers, ends := filter.Peers(kb, ".peers", time.Second), filter.Endpoints(kb, ".ends", 0)
	for _, c := range []struct {
		who  string
		now  time.Duration
		want string
	}{
		{"a", time.Second, ".peers.a"}, {"b", 1900 * time.Millisecond, ".peers.a .peers.b"}, {"", 2 * time.Second, ".peers.a .peers.b"},
		{"b", 2100 * time.Millisecond, ".peers.b"}, {"x{y}", 2100 * time.Millisecond, ".peers.b"},
	} {
		x := &knowledge.FilterContext{Originator: c.who, Source: "1.2.3.4:5", Now: c.now}
		peers(x, nil)
		ends(x, nil)
		var got []string
		for name := range kb.All(".peers.") {
			got = append(got, name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v, want %s", got, c.want)
		}
	}
	if v := kb.Get(".ends.1.2.3.4:5"); v.Int() != int64(2100*time.Millisecond) {
		t.Errorf("the endpoint was heard at %v", v)
	}
	for i := range 5000 {
		ends(&knowledge.FilterContext{Source: fmt.Sprint("10.0.0.1:", i), Now: time.Second}, nil)
	}
	n := 0
	for range kb.All(".ends.") {
		n++
	}
	if n != 4096 {
		t.Errorf("%d endpoints are kept", n)
	}
	kb.Evaluate("e.1 = 1; e.2 = 2; f = 3", nil)
	forget := filter.ForgetEndpoints(kb, "e")
	forget(nil, message("f"))
	if !kb.Get("e.1").Exists() {
		t.Error("forgotten without need")
	}
	forget(nil, message("e.2", "e.3"))
	if kb.Get("e.1").Exists() || !kb.Get("e.2").Exists() || !kb.Get("f").Exists() {
		t.Error("not forgotten as it should")
	}
}

func BenchmarkPrefixes(b *testing.B) {
	var list []string
	for i := range 1000 {
		list = append(list, fmt.Sprintf("agent.%d.", i*7))
	}
	f := filter.Prefixes(list...)
	v := karl.Int(1)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := f(nil, "agent.3500.location", v); !ok {
			b.Fatal("held back")
		}
		if _, ok := f(nil, "agent.3501.location", v); ok {
			b.Fatal("let through")
		}
	}
}
