package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/madara-go/madara/karl"
)

type lspCmd struct {
	Stdio bool `hidden:"" help:"What editors say; there is no other way."`
}

// Help is shown by kong below the usage.
func (c *lspCmd) Help() string {
	return `Editors start this and speak the Language Server Protocol over standard input and output: findings while you type, layout, what a call or a variable is, where a variable is written, and completion. karl/doc/editor has colours for editors.`
}

// Run is called by kong.
func (c *lspCmd) Run(p *process) error {
	s := &languageServer{conn: &rpcConn{bufio.NewReader(p.in), p.out}, documents: map[string]*document{}}
	if err := s.serve(); err != nil {
		return fail(exitIO, err)
	}
	if !s.shutdown {
		return failf(exitUnreached, "the editor left without shutdown")
	}
	return nil
}

// maxDocuments bounds the open texts.
const maxDocuments = 1000

// languageServer answers an editor, one message after the other.
type languageServer struct {
	conn        *rpcConn
	initialized bool
	shutdown    bool
	documents   map[string]*document
}

// serve returns when the editor says exit, or the input ends. An error is one of
// the stream, after which nothing can be understood.
func (s *languageServer) serve() error {
	for {
		body, err := s.conn.read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var m rpcMessage
		if err := json.Unmarshal(body, &m); err != nil {
			err = s.conn.answer(json.RawMessage("null"), nil, &rpcError{rpcParse, "not a JSON-RPC message"})
			if err != nil {
				return err
			}
			continue
		}
		if m.Method == "exit" {
			return nil
		}
		if m.Method == "" {
			continue // an answer to something that was never asked
		}
		result, err := s.handle(&m)
		if m.ID != nil {
			err = s.conn.answer(m.ID, result, err)
		} else if _, ok := errors.AsType[*rpcError](err); ok {
			err = nil // a notification has no answer
		}
		if err != nil {
			return err
		}
	}
}

// lspParams are the parameters of all methods that are known.
type lspParams struct {
	TextDocument struct {
		URI  string `json:"uri"`
		Text string `json:"text"`
	} `json:"textDocument"`
	Position       lspPosition `json:"position"`
	ContentChanges []struct {
		Range *lspRange `json:"range"`
		Text  string    `json:"text"`
	} `json:"contentChanges"`
}

func (s *languageServer) handle(m *rpcMessage) (any, error) {
	switch {
	case m.Method == "initialize":
		s.initialized = true
		return map[string]any{
			"serverInfo": map[string]any{"name": "karl"},
			"capabilities": map[string]any{
				"textDocumentSync":           map[string]any{"openClose": true, "change": 2},
				"documentFormattingProvider": true,
				"hoverProvider":              true,
				"definitionProvider":         true,
				"completionProvider":         map[string]any{"triggerCharacters": []string{"#", "."}},
			},
		}, nil
	case !s.initialized:
		return nil, &rpcError{rpcNotInitialized, "initialize comes first"}
	case s.shutdown:
		return nil, &rpcError{rpcInvalidRequest, "after shutdown"}
	case m.Method == "shutdown":
		s.shutdown = true
		return nil, nil
	case !strings.HasPrefix(m.Method, "textDocument/"):
		return nil, &rpcError{rpcUnknownMethod, fmt.Sprintf("no method %.80q", m.Method)}
	}
	var p lspParams
	if err := json.Unmarshal(m.Params, &p); err != nil {
		return nil, &rpcError{rpcInvalidParams, "parameters of another form"}
	}
	if m.Method == "textDocument/didOpen" {
		return nil, s.open(&p)
	}
	d := s.documents[p.TextDocument.URI]
	if d == nil {
		return nil, &rpcError{rpcInvalidParams, "a document that is not open"}
	}
	at := d.offset(p.Position)
	switch m.Method {
	case "textDocument/didChange":
		return nil, s.change(d, &p)
	case "textDocument/didClose":
		delete(s.documents, d.uri)
		return nil, s.publish(d.uri, []lspDiagnostic{})
	case "textDocument/formatting":
		return d.format()
	case "textDocument/hover":
		text, from, to := d.hover(at)
		if text == "" {
			return nil, nil
		}
		return map[string]any{"contents": map[string]any{"kind": "markdown", "value": text}, "range": d.span(from, to)}, nil
	case "textDocument/definition":
		return s.definition(d, at), nil
	case "textDocument/completion":
		return s.completion(d, at), nil
	}
	return nil, &rpcError{rpcUnknownMethod, fmt.Sprintf("no method %.80q", m.Method)}
}

func (s *languageServer) open(p *lspParams) error {
	if len(s.documents) >= maxDocuments {
		return &rpcError{rpcInvalidRequest, fmt.Sprintf("%d documents are open", maxDocuments)}
	}
	d := newDocument(p.TextDocument.URI, p.TextDocument.Text)
	s.documents[d.uri] = d
	d.parse()
	return s.publish(d.uri, d.diagnostics())
}

// change applies changes, each to what the one before left.
func (s *languageServer) change(d *document, p *lspParams) error {
	for _, c := range p.ContentChanges {
		if c.Range == nil {
			d.set(c.Text)
			continue
		}
		from := d.offset(c.Range.Start)
		to := max(d.offset(c.Range.End), from)
		if len(d.text)-(to-from)+len(c.Text) > maxMessage {
			return &rpcError{rpcInvalidParams, fmt.Sprintf("a text of more than %d bytes", maxMessage)}
		}
		d.set(d.text[:from] + c.Text + d.text[to:])
	}
	d.parse()
	return s.publish(d.uri, d.diagnostics())
}

func (s *languageServer) publish(uri string, list []lspDiagnostic) error {
	return s.conn.notify("textDocument/publishDiagnostics", map[string]any{"uri": uri, "diagnostics": list})
}

// format returns the edit that lays the text out, none if it does not parse.
func (d *document) format() ([]lspEdit, error) {
	text, err := karl.Format(d.text)
	if err != nil || text == d.text {
		return []lspEdit{}, nil // what is wrong has been published
	}
	return []lspEdit{{d.span(0, len(d.text)), text}}, nil
}

// definition returns where the variable at a place is written, in all open texts.
func (s *languageServer) definition(d *document, at int) []lspLocation {
	list := []lspLocation{}
	name, ok := d.nodeAt(at).(*karl.Name)
	if !ok {
		return list
	}
	for _, d := range s.inOrder(d) {
		for _, u := range d.writes(name.Text) {
			if len(list) < maxDiagnostics {
				list = append(list, lspLocation{d.uri, d.span(u.name.Pos(), u.name.End())})
			}
		}
	}
	return list
}

// inOrder returns the open texts, the given one first.
func (s *languageServer) inOrder(first *document) []*document {
	list := []*document{first}
	for _, d := range s.documents {
		if d != first {
			list = append(list, d)
		}
	}
	slices.SortFunc(list[1:], func(a, b *document) int { return strings.Compare(a.uri, b.uri) })
	return list
}

// completion returns how the word before a place may go on.
func (s *languageServer) completion(d *document, at int) []lspCompletion {
	const variable, function = 6, 3 // the protocol's numbers
	from := at
	for from > 0 && isWordByte(d.text[from-1]) {
		from--
	}
	word := d.text[from:at]
	list := []lspCompletion{}
	if from > 0 && d.text[from-1] == '#' {
		for line := range strings.Lines(karl.SystemCallHelp("")) {
			name, _, _ := strings.Cut(strings.TrimPrefix(line, "#"), "(")
			if strings.HasPrefix(name, word) {
				list = append(list, lspCompletion{name, function, strings.TrimSpace(line)})
			}
		}
		return list
	}
	seen := map[string]bool{}
	for _, other := range s.inOrder(d) {
		other.words(func(w string, where int) {
			here := other == d && where == from
			system := where > 0 && other.text[where-1] == '#'
			if !here && !system && len(w) > len(word) && len(list) < maxCompletions && !seen[w] && strings.HasPrefix(w, word) && karl.IsName(w) {
				seen[w] = true
				list = append(list, lspCompletion{Label: w, Kind: variable})
			}
		})
	}
	slices.SortFunc(list, func(a, b lspCompletion) int { return strings.Compare(a.Label, b.Label) })
	return list
}
