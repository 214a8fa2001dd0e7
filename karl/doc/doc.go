// Package doc holds the description of the language by topics, for programs that
// show it.
package doc

import (
	"embed"
	"slices"
	"strings"

	"github.com/madara-go/madara/karl"
)

//go:embed spec.md testing.md check.md grammar.ebnf
var files embed.FS

// Topic is a part of the description.
type Topic struct {
	Name  string // in lower case with - between words: "system-calls"
	Title string
	Text  string // Markdown, without the title
}

// Topics returns the topics in the order of the pages: those of the language, and
// the pages about tests, findings and the grammar.
func Topics() []Topic {
	var topics []Topic
	intro, sections, _ := strings.Cut(read("spec.md"), "\n## ")
	topics = append(topics, page("karl", intro))
	for _, section := range strings.Split(sections, "\n## ") {
		title, text, _ := strings.Cut(section, "\n")
		if title == "Grammar" {
			text = "\n```ebnf\n" + read("grammar.ebnf") + "```\n" // the full one
		}
		topics = append(topics, Topic{topicName(title), title, strings.TrimSpace(text) + "\n"})
	}
	return append(topics, page("testing", read("testing.md")), page("check", read("check.md")))
}

func read(file string) string {
	text, err := files.ReadFile(file)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

func page(name, text string) Topic {
	title, text, _ := strings.Cut(text, "\n")
	return Topic{name, strings.TrimPrefix(title, "# "), strings.TrimSpace(text) + "\n"}
}

func topicName(title string) string {
	return strings.ReplaceAll(strings.ToLower(title), " ", "-")
}

// Find returns the topic of a name, written in any case, or of which the name is
// the only beginning; a system call is a topic too. If there is none, near are
// names that are like it.
func Find(name string) (topic Topic, near []string, ok bool) {
	name = topicName(strings.TrimSpace(name))
	call := strings.TrimSuffix(strings.TrimPrefix(name, "#"), "()")
	topics := Topics()
	var names []string
	var begin []Topic
	for _, t := range topics {
		if t.Name == name {
			return t, nil, true
		}
		if name != "" && strings.HasPrefix(t.Name, name) {
			begin = append(begin, t)
		}
		names = append(names, t.Name)
	}
	all := karl.SystemCallHelp("")
	if help := karl.SystemCallHelp(call); help != all {
		return Topic{"#" + call, "#" + call, help}, nil, true
	}
	if len(begin) == 1 {
		return begin[0], nil, true
	}
	for line := range strings.Lines(all) {
		f, _, _ := strings.Cut(line, "(")
		names = append(names, f)
	}
	for _, n := range names {
		bare := strings.TrimPrefix(n, "#")
		if call != "" && (strings.Contains(bare, call) || distance(bare, call) <= min(3, len(bare)/2)) {
			near = append(near, n)
		}
	}
	slices.SortStableFunc(near, func(a, b string) int {
		return distance(strings.TrimPrefix(a, "#"), call) - distance(strings.TrimPrefix(b, "#"), call)
	})
	return Topic{}, near[:min(len(near), 5)], false
}

// distance is how many letters must be put in, left out or replaced to make b of a.
func distance(a, b string) int {
	if len(b) > 64 {
		return len(b)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}
