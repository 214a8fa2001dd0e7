package main

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/madara-go/madara/karl"
)

type checkCmd struct {
	File      []string `arg:"" help:"Program files, checked together; - is standard input."`
	Functions *string  `placeholder:"NAMES" help:"The functions that the host program defines, as f,g: calls of others are errors. '' is none."`
	Variables *string  `placeholder:"NAMES" help:"The variables that the host program or other agents write, as a,.b: others that are read and never written are reported."`
	Strict    bool     `help:"Fail on warnings too."`
	JSON      bool     `name:"json" help:"Print one JSON object a line for each finding."`
}

// Help is shown by kong below the usage.
func (c *checkCmd) Help() string {
	return `Findings are printed with their place, the line and what to write instead; behind each stands its code in parentheses. A comment with check:ignore and the code, on the line or alone on the line before, suppresses it: // check:ignore never-read

The exit code is 1 if something is surely wrong (an error), with --strict also if something is likely wrong (a warning).`
}

// Run is called by kong.
func (c *checkCmd) Run(p *process) error {
	texts, err := p.load(c.File)
	if err != nil {
		return err
	}
	programs, err := parse(texts)
	if err != nil {
		return err
	}
	findings := karl.CheckAll(programs, &karl.CheckOptions{Functions: names(c.Functions), Variables: names(c.Variables)})
	sources := map[string]*karl.Program{}
	for _, program := range programs {
		sources[program.Name] = program
	}
	failed := false
	for _, d := range findings {
		failed = failed || c.Strict || d.Class == karl.ClassError
		if c.JSON {
			p.out.Write(findingJSON(d))
			continue
		}
		var b strings.Builder
		b.WriteString(d.String() + "\n")
		quote(&b, sources[d.Name].Snippet(d.Pos, d.End))
		b.WriteString("  " + d.Fix + "\n")
		p.out.Write([]byte(b.String()))
	}
	if failed {
		return fail(exitUnreached)
	}
	return nil
}

// names splits a list of names, of which nil is none known.
func names(list *string) []string {
	if list == nil {
		return nil
	}
	return strings.FieldsFunc(*list, func(r rune) bool { return r == ',' || r == ' ' })
}

// findingJSON returns a finding as a line of JSON. Offsets and edits count bytes
// from the beginning of the file.
func findingJSON(d karl.Diagnostic) []byte {
	type edit struct {
		From int    `json:"from"`
		To   int    `json:"to"`
		Text string `json:"text"`
	}
	line := struct {
		File      string `json:"file"`
		Line      int    `json:"line"`
		Column    int    `json:"column"`
		EndLine   int    `json:"end_line"`
		EndColumn int    `json:"end_column"`
		From      int    `json:"from"`
		To        int    `json:"to"`
		Class     string `json:"class"`
		Code      string `json:"code"`
		Message   string `json:"message"`
		Fix       string `json:"fix"`
		Edit      *edit  `json:"edit,omitempty"`
	}{
		d.Name, d.Pos.Line, d.Pos.Column, d.End.Line, d.End.Column, d.Pos.Offset, d.End.Offset,
		d.Class.String(), d.Code, d.Msg, d.Fix, (*edit)(d.Edit),
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(line); err != nil {
		panic(err) // texts and numbers only
	}
	return b.Bytes()
}
