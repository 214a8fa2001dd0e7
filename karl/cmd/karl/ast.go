package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/madara-go/madara/karl"
)

type astCmd struct {
	File string `arg:"" help:"Program file; - is standard input."`
	JSON bool   `name:"json" xor:"form" help:"Print the tree as JSON."`
	Dot  bool   `xor:"form" help:"Print the tree as a graph for Graphviz: karl ast --dot FILE | dot -Tsvg"`
}

// Help is shown by kong below the usage.
func (c *astCmd) Help() string {
	return `A line for each node has what it is to the one above it, its type, its operator, name or value, and its place from the first to behind the last column. How a program is understood can be seen without running it: what binds how strongly, which - begins the arrow of a loop.`
}

// Run is called by kong.
func (c *astCmd) Run(p *process) error {
	texts, err := p.load([]string{c.File})
	if err != nil {
		return err
	}
	programs, err := parse(texts)
	if err != nil {
		return err
	}
	program := programs[0]
	root := treeOf(program)
	w := bufio.NewWriter(p.out)
	switch {
	case c.JSON:
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(root); err != nil {
			return err
		}
	case c.Dot:
		fmt.Fprintf(w, "digraph program {\n\tnode [shape=box, fontname=monospace];\n")
		root.dot(w, new(int))
		fmt.Fprintln(w, "}")
	default:
		root.text(w, 0)
	}
	return w.Flush()
}

// tree is a node of a program as it is printed.
type tree struct {
	Role     string   `json:"role,omitempty"` // what it is to the node above
	Type     string   `json:"type"`
	Op       string   `json:"op,omitempty"`
	Ops      []string `json:"ops,omitempty"` // between the children of a Sequence
	Name     string   `json:"name,omitempty"`
	Kind     string   `json:"kind,omitempty"` // of a Literal
	Text     string   `json:"text,omitempty"`
	Postfix  bool     `json:"postfix,omitempty"`
	Through  bool     `json:"through,omitempty"` // a Loop that includes its end
	From     treePos  `json:"from"`
	To       treePos  `json:"to"`
	Children []*tree  `json:"children,omitempty"`
}

type treePos struct {
	Offset int `json:"offset"`
	Line   int `json:"line"`
	Column int `json:"column"`
}

func treeOf(program *karl.Program) *tree {
	if program.Body == nil {
		return &tree{Type: "Empty"}
	}
	return (&treeBuilder{program.Positions()}).tree("", program.Body)
}

type treeBuilder struct{ position func(int) karl.Pos }

func (b *treeBuilder) tree(role string, n karl.Node) *tree {
	t := &tree{Role: role, Type: strings.TrimPrefix(fmt.Sprintf("%T", n), "*karl.")}
	t.From, t.To = treePos(b.position(n.Pos())), treePos(b.position(n.End()))
	add := func(role string, n karl.Node) {
		if n != nil {
			t.Children = append(t.Children, b.tree(role, n))
		}
	}
	all := func(role string, nodes []karl.Node) {
		for i, n := range nodes {
			add(role+strconv.Itoa(i), n)
		}
	}
	switch n := n.(type) {
	case *karl.Literal:
		t.Kind, t.Text = n.Value.Kind().String(), n.Text
	case *karl.Name:
		t.Name = n.Text
	case *karl.Index:
		add("array", n.X)
		add("index", n.At)
	case *karl.Paren:
		add("", n.X)
	case *karl.Unary:
		t.Op = n.Op.String()
		add("", n.X)
	case *karl.IncDec:
		t.Op, t.Postfix = n.Op.String(), n.Postfix
		add("", n.X)
	case *karl.Binary:
		t.Op = n.Op.String()
		add("left", n.X)
		add("right", n.Y)
	case *karl.Assign:
		t.Op = n.Op.String()
		add("target", n.X)
		add("value", n.Y)
	case *karl.Sequence:
		for _, op := range n.Ops {
			t.Ops = append(t.Ops, op.String())
		}
		all("", n.Stmts)
	case *karl.Array:
		all("", n.Elems)
	case *karl.Call:
		t.Name = n.Name
		all("", n.Args)
	case *karl.SystemCall:
		t.Name = "#" + n.Func
		all("", n.Args)
	case *karl.Loop:
		t.Through = n.Through
		add("variable", n.Var)
		add("start", n.Start)
		add("step", n.Step)
		add("end", n.Stop)
		if n.Body != nil {
			add("body", n.Body)
		}
	}
	return t
}

// label is the node in words, without its role and place.
func (t *tree) label() string {
	words := []string{t.Type}
	if t.Postfix {
		words = append(words, "postfix")
	}
	if t.Through {
		words = append(words, "through")
	}
	for _, word := range append([]string{t.Op, t.Name, t.Kind, line(t.Text)}, runs(t.Ops)...) {
		if word != "" {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

// line returns the text of a literal on one line.
func line(text string) string {
	quoted := strconv.Quote(text)
	if strings.ContainsAny(text, "\n\r\t") {
		return quoted
	}
	return text
}

// runs returns separators with numbers where they repeat.
func runs(ops []string) (words []string) {
	for i := 0; i < len(ops); {
		n := i
		for n < len(ops) && ops[n] == ops[i] {
			n++
		}
		word := ops[i]
		if n-i > 1 {
			word += "×" + strconv.Itoa(n-i)
		}
		words = append(words, word)
		i = n
	}
	return words
}

func (t *tree) text(w *bufio.Writer, depth int) {
	for range depth {
		w.WriteString("  ")
	}
	if t.Role != "" {
		w.WriteString(t.Role + ": ")
	}
	w.WriteString(t.label())
	if t.From.Line > 0 {
		fmt.Fprintf(w, "  [%d:%d-%d:%d]", t.From.Line, t.From.Column, t.To.Line, t.To.Column)
	}
	w.WriteByte('\n')
	for _, child := range t.Children {
		child.text(w, depth+1)
	}
}

// dot writes the node and those below it, and returns its number.
func (t *tree) dot(w *bufio.Writer, count *int) int {
	n := *count
	*count++
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace
	fmt.Fprintf(w, "\tn%d [label=\"%s\\n%d:%d\"];\n", n, escape(strings.ToValidUTF8(t.label(), "?")), t.From.Line, t.From.Column)
	for _, child := range t.Children {
		fmt.Fprintf(w, "\tn%d -> n%d [label=\"%s\"];\n", n, child.dot(w, count), child.Role)
	}
	return n
}
