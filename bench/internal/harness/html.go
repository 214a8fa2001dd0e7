package harness

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
)

//go:embed report.html
var pageText string

var page = template.Must(template.New("report").Parse(pageText))

// html returns the report as one page with plots, which refers to nothing else.
func (r *Report) html(changes []string) ([]byte, error) {
	type drawn struct {
		Case  string
		Plots []*plot
	}
	type fact struct{ Name, Value string }
	data := struct {
		*Report
		Columns   []string
		Rows      [][]string
		Drawn     []drawn
		Facts     []fact
		Changes   []string
		Remark    string
		Severe    string
		Unopposed bool // no warnings
		Lacks     string
	}{Lacks: r.partial(), Report: r, Columns: columns, Changes: changes, Remark: referenceRemark, Severe: severityWarning, Unopposed: len(r.Warnings) == 0}
	for _, c := range r.Results {
		data.Rows = append(data.Rows, c.row())
		d := drawn{Case: c.Case}
		for _, p := range []*plot{c.plotShares(), c.plotRun(), c.plotEach()} {
			if p != nil {
				d.Plots = append(d.Plots, p)
			}
		}
		if d.Plots != nil {
			data.Drawn = append(data.Drawn, d)
		}
	}
	for _, f := range []struct {
		name string
		of   any
	}{
		{"workload", r.Workload}, {"transport", r.Transport}, {"clock", r.Clock}, {"time_sync", r.TimeSync}, {"host", r.Host},
		{"release", r.Release}, {"resources", r.Resources}, {"samples_file", r.SamplesFile},
	} {
		text, err := json.MarshalIndent(f.of, "", " ")
		if err != nil {
			return nil, err
		}
		if s := string(text); s != "null" && s != `""` {
			data.Facts = append(data.Facts, fact{f.name, s})
		}
	}
	var b bytes.Buffer
	err := page.Execute(&b, data)
	return b.Bytes(), err
}
