package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/madara-go/madara/karl"
)

const replHelp = `:vars [PREFIX]    the variables, or those whose names begin so
:watch [PATTERN]  show the variables of a pattern (* is any text) when they have changed; without one, none
:time PROGRAM     evaluate, and say how long it took
:ast PROGRAM      show how a program is understood
:def NAME PROGRAM make a function
:load FILE        evaluate a file
:save FILE        write the variables as a program, for :load
:net              what went over the network
:help [TOPIC]     this, or a topic of the language; "karl doc" lists them
:quit             leave, as Ctrl-D does
`

// replCommands are the names of the commands.
var replCommands = []string{"ast", "def", "help", "load", "net", "quit", "save", "time", "vars", "watch"}

// command runs a command of the prompt.
func (r *repl) command(name, argument string) {
	needs := map[string]string{"time": "a program", "ast": "a program", "def": "a name and a program", "load": "a file", "save": "a file"}
	if what, ok := needs[name]; ok && argument == "" {
		r.report(fmt.Errorf(":%s wants %s", name, what))
		return
	}
	var err error
	switch name {
	case "vars":
		for name, record := range r.kb.All(argument) {
			fmt.Fprintf(r.out, "%s = %s\n", plain(name), show(record.Value))
		}
	case "watch":
		r.watch(argument)
	case "time":
		r.timed(argument)
	case "ast":
		var program *karl.Program
		if program, err = karl.Parse("<input>", argument); err == nil {
			w := bufio.NewWriter(r.out)
			treeOf(program).text(w, 0)
			w.Flush()
		}
	case "def":
		name, body, _ := strings.Cut(argument, " ")
		if err = r.kb.DefineExpression(name, body); err == nil {
			r.functions[name] = true
		}
	case "load":
		var texts []text
		if texts, err = r.p.load([]string{argument}); err == nil {
			r.evaluateAs(texts[0].name, texts[0].src)
		}
	case "save":
		err = r.save(argument)
	case "net":
		if r.net == nil {
			err = fmt.Errorf("there is no network; start with --multicast, --udp or --peer")
			break
		}
		total := r.net.stats()
		fmt.Fprintf(r.out, "received %d (%d bytes), sent %d (%d bytes)\n", total.Received, total.ReceivedBytes, total.Sent, total.SentBytes)
		for _, d := range dropsOf(total) {
			fmt.Fprintf(r.out, "dropped, %v: %d\n", d, total.Drops[d])
		}
	case "help":
		if argument == "" {
			io.WriteString(r.out, replHelp)
			break
		}
		var text string
		if text, err = topicText(argument); err == nil {
			io.WriteString(r.out, text)
		}
	default:
		err = fmt.Errorf("there is no command :%s; :help lists them", name)
	}
	if err != nil {
		r.report(err)
	}
}

// watch adds a pattern to those whose variables are shown; "" takes all away.
func (r *repl) watch(pattern string) {
	if pattern == "" {
		r.watched = nil
		clear(r.shown)
		return
	}
	quoted := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`)
	r.watched = append(r.watched, regexp.MustCompile("^(?s:"+quoted+")$"))
}

// save writes the variables as a program. What no program can write is left out.
func (r *repl) save(file string) error {
	var b strings.Builder
	var left []string
	for name, record := range r.kb.All("") {
		if !record.Value.Exists() {
			continue
		}
		text := karl.Print(&karl.Literal{Value: record.Value})
		p, err := karl.Parse("", text)
		if err == nil && karl.IsName(name) {
			l, ok := karl.Unparen(karl.Fold(p.Body)).(*karl.Literal)
			if ok && l.Value.Kind() == record.Value.Kind() && l.Value.String() == record.Value.String() {
				fmt.Fprintf(&b, "%s = %s;\n", name, text)
				continue
			}
		}
		left = append(left, plain(name))
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o666); err != nil {
		return err
	}
	if left != nil {
		return fmt.Errorf("left out, because no program can write them: %s", strings.Join(left, ", "))
	}
	return nil
}

// maxCompletions bounds what a tab shows.
const maxCompletions = 200

// complete returns how the word before a place of the line, counted in runes, may go on.
func (r *repl) complete(line string, pos int) (head string, completions []string, tail string) {
	runes := []rune(line)
	head, tail = string(runes[:pos]), string(runes[pos:])
	start := len(head)
	for start > 0 && isWordByte(head[start-1]) {
		start--
	}
	if start > 0 && (head[start-1] == '#' || head[start-1] == ':' && strings.TrimSpace(head[:start-1]) == "") {
		start--
	}
	word := head[start:]
	switch {
	case strings.HasPrefix(word, ":"):
		for _, name := range replCommands {
			completions = appendIfBegins(completions, ":"+name+" ", word)
		}
	case strings.HasPrefix(word, "#"):
		for line := range strings.Lines(karl.SystemCallHelp("")) {
			name, _, _ := strings.Cut(line, "(")
			completions = appendIfBegins(completions, name+"(", word)
		}
	default:
		for name := range r.functions {
			completions = appendIfBegins(completions, name+"(", word)
		}
		for name := range r.kb.All(word) {
			if karl.IsName(name) && len(completions) < maxCompletions {
				completions = append(completions, name)
			}
		}
	}
	slices.Sort(completions)
	return head[:start], completions, tail
}

func isWordByte(c byte) bool {
	return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func appendIfBegins(list []string, text, prefix string) []string {
	if strings.HasPrefix(text, prefix) {
		return append(list, text)
	}
	return list
}
