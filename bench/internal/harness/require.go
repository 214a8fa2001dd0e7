package harness

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/madara-go/madara/knowledge"
)

// judge is a requirement in KaRL over the figures of a case.
type judge struct {
	text  string
	reads []figure
}

// maxSteps bounds how long a requirement may take.
const maxSteps = 100_000

// helpRequire is a flag that lists the figures instead of a run.
type helpRequire bool

// BeforeReset is called by kong where the flag is given.
func (helpRequire) BeforeReset(k *kong.Kong) error {
	if _, err := fmt.Fprint(k.Stdout, figureHelp()); err != nil {
		return err
	}
	k.Exit(exitOK)
	return nil
}

// judges compiles the requirements, and refuses what no case of the run can be
// judged by.
func (t *Track) judges() ([]*judge, error) {
	var list []*judge
	known := map[string]figure{}
	for _, f := range figureList {
		known[f.name] = f
	}
	for _, text := range t.Common.Require {
		kb := knowledge.New()
		e, err := kb.Compile(text)
		kb.Close()
		if err != nil {
			return nil, usageError{fmt.Errorf("--require: %w", err)}
		}
		switch names := e.Reads(); {
		case len(e.Writes()) > 0:
			return nil, Usage("--require", text, "without assignments")
		case !e.Pure():
			return nil, Usage("--require", text, "without calls of the system: figures alone decide")
		case len(names) == 0:
			return nil, Usage("--require", fmt.Sprintf("%q, which reads no figure", text), "what --help-require lists")
		default:
			j := &judge{text: text}
			for _, name := range names {
				f, ok := known[name]
				if !ok {
					return nil, Usage("--require", fmt.Sprintf("%s, which reads %s", text, name), "what --help-require lists")
				}
				if !f.when.run(t) {
					return nil, Usage("--require", fmt.Sprintf("%s, which reads %s", text, name), name+" "+f.when.text)
				}
				j.reads = append(j.reads, f)
			}
			list = append(list, j)
		}
	}
	return list, nil
}

// concerns reports whether a case can have the figures.
func (j *judge) concerns(c *Cell) bool {
	for _, f := range j.reads {
		if f.when.in != nil && !f.when.in(c) {
			return false
		}
	}
	return true
}

// holds evaluates the requirement over a case, and says what it read. It does not
// hold where a figure was not measured.
func (j *judge) holds(c *Cell) (bool, string) {
	kb := knowledge.New()
	defer kb.Close()
	var evidence, unknown []string
	for _, f := range j.reads {
		v, ok := f.of(c)
		if !ok {
			unknown = append(unknown, f.name)
			continue
		}
		evidence = append(evidence, fmt.Sprintf("%s = %v", f.name, v))
		if err := kb.Set(f.name, v); err != nil {
			return false, err.Error()
		}
	}
	if len(unknown) > 0 {
		return false, strings.Join(unknown, ", ") + " not measured"
	}
	v, err := kb.Evaluate(j.text, &knowledge.EvalSettings{Strict: true, MaxSteps: maxSteps})
	if err != nil {
		return false, err.Error()
	}
	return v.IsTrue(), strings.Join(evidence, ", ")
}
