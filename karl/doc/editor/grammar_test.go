package editor_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/madara-go/madara/karl"
)

type pattern struct {
	Name, Match, Begin, End string
	Patterns                []pattern
	Captures                map[string]struct{ Name string }

	match, end *regexp.Regexp
}

// read reads the grammar.
func read(t *testing.T) []pattern {
	t.Helper()
	text, err := os.ReadFile("karl.tmLanguage.json")
	if err != nil {
		t.Fatal(err)
	}
	var grammar struct {
		ScopeName string
		Patterns  []pattern
	}
	if err := json.Unmarshal(text, &grammar); err != nil || grammar.ScopeName != "source.karl" {
		t.Fatal(grammar.ScopeName, err)
	}
	compile(grammar.Patterns)
	return grammar.Patterns
}

func compile(list []pattern) {
	for i := range list {
		p := &list[i]
		p.match = regexp.MustCompile("(?m)" + p.Match + p.Begin)
		if p.End != "" {
			p.end = regexp.MustCompile("(?m)" + p.End)
		}
		compile(p.Patterns)
	}
}

// scope is a part of a text and the name that the grammar gives it.
type scope struct {
	from, to int
	name     string
}

// first returns the pattern that matches next from a place, of those at the same
// place the first, as editors do.
func first(list []pattern, text string, at int) (best *pattern, loc []int) {
	for i := range list {
		// The whole text is looked at, so that ^ means what it does in an editor.
		for _, m := range list[i].match.FindAllStringSubmatchIndex(text[at:], 1) {
			if strings.HasPrefix(list[i].Match, "^") && at > 0 && text[at-1] != '\n' && m[0] == 0 {
				continue
			}
			if best == nil || m[0] < loc[0] {
				best, loc = &list[i], m
			}
		}
	}
	for i := range loc {
		loc[i] += at
	}
	return best, loc
}

// apply returns the scopes of a text.
func apply(list []pattern, text string) []scope {
	var scopes []scope
	for at := 0; at < len(text); {
		p, loc := first(list, text, at)
		if p == nil {
			break
		}
		from, to := loc[0], loc[1]
		for i := 1; i < len(loc)/2; i++ { // in order, beside each other
			if c, ok := p.Captures[fmt.Sprint(i)]; ok {
				scopes = append(scopes, scope{loc[2*i], loc[2*i+1], c.Name})
			}
		}
		if p.Captures != nil {
			at = to
			continue
		}
		if p.end == nil {
			scopes = append(scopes, scope{from, to, p.Name})
			at = max(to, from+1)
			continue
		}
		// Within, what ends it competes with what is inside.
		for {
			end := p.end.FindStringIndex(text[to:])
			if end == nil {
				to = len(text)
				break
			}
			inner, loc := first(p.Patterns, text, to)
			if inner == nil || loc[0] >= to+end[0] {
				to += end[1]
				break
			}
			to = loc[1]
		}
		scopes = append(scopes, scope{from, to, p.Name})
		at = to
	}
	return scopes
}

// TestScopes checks the sample, whose lines are followed by their scopes.
func TestScopes(t *testing.T) {
	grammar := read(t)
	sample, err := os.ReadFile("testdata/scopes.txt")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for block := range strings.SplitSeq(strings.TrimSpace(string(sample)), "\n\n") {
		src, want, _ := strings.Cut(block, "\n")
		var got strings.Builder
		for _, s := range apply(grammar, src) {
			fmt.Fprintf(&got, "  %s  %s\n", src[s.from:s.to], strings.TrimSuffix(s.name, ".karl"))
		}
		if strings.TrimSpace(got.String()) != strings.TrimSpace(want) {
			t.Errorf("%s\n%s", src, got.String())
		}
		checked++
	}
	if checked < 8 {
		t.Errorf("%d samples", checked)
	}
}

// TestPrograms checks with the rules of the examples that the grammar sees the
// literals, names and calls that the parser sees, in full.
func TestPrograms(t *testing.T) {
	grammar := read(t)
	for _, file := range []string{"../../../examples/patrol/rules.karl"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := karl.Parse(file, string(text))
		if err != nil {
			t.Fatal(err)
		}
		scopes := map[[2]int]string{}
		for _, s := range apply(grammar, p.Source) {
			scopes[[2]int{s.from, s.to}] = s.name
		}
		karl.Walk(p.Body, func(n karl.Node) bool {
			from, to, want := n.Pos(), n.End(), ""
			switch n := n.(type) {
			case *karl.Literal:
				want = "constant."
				if n.Value.Kind() == karl.KindString {
					want = "string."
				}
			case *karl.Name:
				want = "variable."
			case *karl.Call:
				to, want = from+len(n.Name), "entity.name.function"
			case *karl.SystemCall:
				to, want = from+1+len(n.Name), "support.function"
			}
			if got := scopes[[2]int{from, to}]; !strings.HasPrefix(got, want) {
				t.Errorf("%s:%v: %s is %q, want %s…", file, p.Position(from), p.Source[from:to], got, want)
			}
			return true
		})
	}
}
