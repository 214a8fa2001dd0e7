package karl_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/karl/karltest"
)

var (
	passesLine = regexp.MustCompile(`(?m)^// passes (.*)$`)
	namesLine  = regexp.MustCompile(`(?m)^// (functions|variables) (.*)$`)
	docRow     = regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (error|warning) \\|")
)

// TestCheck checks that the programs of testdata/check have the findings their
// files say, and no others, and that the documentation has each code, with a
// program that has it and one that is right.
func TestCheck(t *testing.T) {
	doc, err := os.ReadFile("doc/check.md")
	if err != nil {
		t.Fatal(err)
	}
	documented, fails, passes := map[string]string{}, map[string]bool{}, map[string]bool{}
	for _, row := range docRow.FindAllStringSubmatch(string(doc), -1) {
		documented[row[1]] = row[2]
	}
	for _, c := range karltest.Read(t, "testdata/check/*.karl") {
		p, err := karl.Parse("", c.Source)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		var options karl.CheckOptions
		for _, m := range namesLine.FindAllStringSubmatch(c.Source, -1) {
			if names := strings.Split(m[2], ", "); m[1] == "functions" {
				options.Functions = names
			} else {
				options.Variables = names
			}
		}
		if m := passesLine.FindStringSubmatch(c.Source); m != nil {
			passes[m[1]] = true
		}
		want := c.Faults
	findings:
		for _, d := range karl.Check(p, &options) {
			if d.Fix == "" || d.Class.String() != documented[d.Code] {
				t.Errorf("%s: %v: fix %q, class in the documentation %q", c.Name, d, d.Fix, documented[d.Code])
			}
			checkEdit(t, p, d)
			for i, f := range want {
				if f.Line == d.Pos.Line && f.Column == d.Pos.Column && f.Message.MatchString(d.Code+": "+d.Msg) {
					fails[d.Code] = true
					want = append(want[:i:i], want[i+1:]...)
					continue findings
				}
			}
			t.Errorf("%s: unexpected finding in\n%s\n%v", c.Name, c.Source, d)
		}
		for _, f := range want {
			t.Errorf("%s: in\n%s\nno finding at %d:%d, want one like %s", c.Name, c.Source, f.Line, f.Column, f.Message)
		}
	}
	for code, class := range karl.CheckCodes {
		if documented[code] != class.String() || !fails[code] || !passes[code] {
			t.Errorf("%s: documented as %q, has a failing sample %t, a passing one %t", code, documented[code], fails[code], passes[code])
		}
		delete(documented, code)
	}
	for code := range documented {
		t.Errorf("%s is documented, but there is no such finding", code)
	}
}

// checkEdit makes the change of a finding, after which it must be gone.
func checkEdit(t *testing.T, p *karl.Program, d karl.Diagnostic) {
	t.Helper()
	if d.Edit == nil {
		return
	}
	src := p.Source[:d.Edit.From] + d.Edit.Text + p.Source[d.Edit.To:]
	mended, err := karl.Parse("", src)
	if err != nil {
		t.Errorf("%v: mended to %q: %v", d, src, err)
		return
	}
	for _, again := range karl.Check(mended, nil) {
		if again.Code == d.Code && again.Pos == d.Pos {
			t.Errorf("mended to %q, but still %v", src, again)
		}
	}
}

// TestCheckNoFalseAlarms checks that nothing in the examples is an error, and in
// the measured programs only those two that never end.
func TestCheckNoFalseAlarms(t *testing.T) {
	endless := map[string]bool{"K1733": true, "K1734": true}
	for _, v := range karl.ReadVectors(t) {
		for _, text := range v.Texts {
			p, err := karl.Parse(v.ID, text)
			if err != nil {
				continue
			}
			for _, d := range karl.Check(p, nil) {
				checkEdit(t, p, d)
				if d.Class == karl.ClassError && !endless[v.ID] {
					t.Errorf("%q: %v", text, d)
				}
			}
		}
	}
	files, err := filepath.Glob("../examples/*/*.karl")
	if err != nil || len(files) == 0 {
		t.Fatal("no example programs", err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := karl.Parse(file, string(src))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range karl.Check(p, nil) {
			if d.Class == karl.ClassError {
				t.Error(d)
			}
			t.Log(d)
		}
	}
}

// TestCheckAll checks that programs are looked at together.
func TestCheckAll(t *testing.T) {
	var programs []*karl.Program
	for i, src := range []string{"x = .a", ".a = 1; .b = 2;\n\n .c => y = 1", ".c = .d"} {
		p, err := karl.Parse(fmt.Sprintf("%d.karl", i), src)
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, p)
	}
	var got []string
	for _, d := range karl.CheckAll(programs, nil) {
		got = append(got, d.String())
	}
	want := "1.karl:1:9: warning: .b is written, but never read; names that begin with a dot never leave the base (never-read)\n" +
		"2.karl:1:6: warning: .d is read, but never written (never-written)"
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("got\n%s\nwant\n%s", s, want)
	}
	if list := karl.CheckAll(nil, nil); list != nil {
		t.Error(list)
	}
}

// TestCheckHostile checks texts made to cost time or memory.
func TestCheckHostile(t *testing.T) {
	for _, src := range []string{
		"a" + strings.Repeat("<a", 49_000), "a" + strings.Repeat("||a&&a", 20_000), strings.Repeat("a=1=>b;", 50_000),
		"a" + strings.Repeat("/0", 49_000), strings.Repeat("1/(", 900) + "0" + strings.Repeat(")", 900),
		strings.Repeat(".i[0 -0> 1) (", 450) + "a" + strings.Repeat(")", 450), strings.Repeat("(a;", 900) + "b" + strings.Repeat(")", 900),
	} {
		p, err := karl.Parse("", src)
		if err != nil {
			t.Fatalf("%.100v", err)
		}
		karl.Check(p, nil)
	}
}

// BenchmarkCheck reports bytes of source a second, of a program of 10,000
// statements with and without findings.
func BenchmarkCheck(b *testing.B) {
	clean := strings.Repeat("a = b + 3 * c - d / 2;\n.x > 10 => ++count;\nv[.i] = #sqrt(w) + 1.5; // c\n(a || b) => .x = .i + 1;\n.i[0->10) (s += load[.i]);\n", 2000)
	for _, bench := range []struct{ name, src string }{
		{"clean", clean}, {"findings", strings.ReplaceAll(clean, "(a || b)", "a || b && c")},
	} {
		b.Run(bench.name, func(b *testing.B) {
			p, err := karl.Parse("", bench.src)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(bench.src)))
			b.ReportAllocs()
			for b.Loop() {
				karl.Check(p, nil)
			}
		})
	}
}
