package doc_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/madara-go/madara/karl/doc"
	"github.com/madara-go/madara/karl/karltest"
)

// TestExamples runs every program of the pages: what stands in a block marked
// karl. No block may be without a mark, so that none is forgotten. Files that they
// name are those of the patrol.
func TestExamples(t *testing.T) {
	programs := 0
	for _, file := range []string{"spec.md", "testing.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		for i := 0; i < len(lines); i++ {
			mark, ok := strings.CutPrefix(lines[i], "```")
			if !ok {
				continue
			}
			first := i + 1
			for i++; lines[i] != "```"; i++ {
			}
			switch mark {
			case "karl":
				block := strings.Join(lines[first:i], "\n")
				chunks, err := karltest.Parse("../../examples/patrol/"+file, block)
				if err != nil {
					t.Errorf("block at line %d: %v", first, err)
				}
				for _, c := range chunks {
					c.Line += first
					programs++
					if c.Result == nil && c.Vars == nil && c.Faults == nil && c.Prints == nil {
						t.Errorf("%s:%d: the example says nothing about what it does", file, c.Line)
					}
					for _, f := range c.Run() {
						t.Error(f)
					}
				}
			case "text", "ebnf":
			default:
				t.Errorf("%s:%d: block with mark %q; want karl, text or ebnf", file, first, mark)
			}
		}
	}
	if programs < 60 {
		t.Errorf("%d examples ran, the pages have more", programs)
	}
}

func TestTopics(t *testing.T) {
	var names []string
	for _, topic := range doc.Topics() {
		names = append(names, topic.Name)
		found, _, ok := doc.Find(topic.Name)
		if !ok || found.Text != topic.Text || len(topic.Text) < 100 {
			t.Errorf("topic %s: found %v, %d bytes", topic.Name, ok, len(topic.Text))
		}
	}
	for _, want := range []string{"karl", "text", "operators", "rules", "values", "loops", "system-calls", "errors", "limits", "grammar", "testing", "check"} {
		if !slices.Contains(names, want) {
			t.Errorf("no topic %s among %v", want, names)
		}
	}
}

func TestFind(t *testing.T) {
	for name, want := range map[string]string{
		"Loops": "loops", "loo": "loops", "System Calls": "system-calls", "#size": "#size", "to_string": "#to_string", "sqrt()": "#sqrt",
	} {
		if topic, _, ok := doc.Find(name); !ok || topic.Name != want {
			t.Errorf("%s: found %q, %v", name, topic.Name, ok)
		}
	}
	for name, want := range map[string]string{"lops": "loops", "#siez": "#size", "operater": "operators", "rand": "#rand_int", "v": "", "": "", "zzzzzz": ""} {
		_, near, ok := doc.Find(name)
		if ok || want != "" && !slices.Contains(near, want) || name == "zzzzzz" && near != nil {
			t.Errorf("%s: ok %v, near %v", name, ok, near)
		}
	}
}
