package karl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"
)

// fatal is what testing.T and rapid.T have in common here.
type fatal interface{ Fatalf(string, ...any) }

// checkLayout fails the test if a text that parses is laid out as another
// program, without one of its comments, or differently the second time.
func checkLayout(t fatal, src string) string {
	text, err := Format(src)
	if err != nil {
		t.Fatalf("%q: %v", src, err)
	}
	tree := func(src string) string {
		p, err := Parse("", src)
		if err != nil {
			t.Fatalf("%q is laid out as %q: %v", src, text, err)
		}
		return dumpTree(p.Body)
	}
	if got, want := tree(text), tree(src); got != want {
		t.Fatalf("%q is laid out as %q, which is %s, want %s", src, text, got, want)
	}
	if again, err := Format(text); err != nil || again != text {
		t.Fatalf("%q is laid out as %q first and then as %q, %v", src, text, again, err)
	}
	if got, want := commentsOf(text), commentsOf(src); got != want {
		t.Fatalf("%q is laid out as %q: comments %q, want %q", src, text, got, want)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		t.Fatalf("%q is laid out as %q, without a line end", src, text)
	}
	return text
}

// commentsOf returns the comments of a text, without the blanks in them.
func commentsOf(src string) string {
	var b strings.Builder
	for s := newScanner(src, Parser{}.limits()); ; {
		from := s.pos
		s.blanks()
		b.WriteString(strings.Join(strings.Fields(src[from:s.pos]), ""))
		if s.Next(); s.done {
			return b.String()
		}
	}
}

// TestLayout lays out the files "NAME in" of the archives, which must give
// "NAME out". Where there is no "NAME out" the text must stay as it is.
func TestLayout(t *testing.T) {
	archives, err := filepath.Glob("testdata/layout/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no archives", err)
	}
	for _, archive := range archives {
		a, err := txtar.ParseFile(archive)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(a.Files); i++ {
			f := a.Files[i]
			name, ok := strings.CutSuffix(f.Name, " in")
			if !ok {
				t.Fatalf("%s: file %q", archive, f.Name)
			}
			want := f.Data
			if i+1 < len(a.Files) && a.Files[i+1].Name == name+" out" {
				i++
				want = a.Files[i].Data
			}
			t.Run(name, func(t *testing.T) {
				if got := checkLayout(t, string(f.Data)); got != string(want) {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			})
		}
	}
}

func TestLayoutBytes(t *testing.T) {
	for _, test := range []struct{ src, want string }{
		{"", ""}, {" \n\n", ""}, {";;\n;", ""}, {"// c", "// c\n"}, {"a", "a\n"}, {"\ufeffa=1", "a = 1\n"},
		{"a=1;\r\n\r\n\r\nb='x\r\ny'; // c\r\n", "a = 1;\n\nb = 'x\r\ny'; // c\n"},
		{"/* a\r\n  b \r\n*/ c", "/* a\n  b\n*/ c\n"}, {"a;\t\tb // c", "a;\nb // c\n"}, {"a /* open ", "a /* open\n"},
		{"#!/usr/bin/env -S karl run\r\n\r\n\r\na=1", "#!/usr/bin/env -S karl run\n\na = 1\n"}, {"#!x", "#!x\n"}, {"#!x\n// c\na", "#!x\n// c\na\n"},
	} {
		got, err := Format(test.src)
		if err != nil || got != test.want {
			t.Errorf("%q is laid out as %q, %v, want %q", test.src, got, err, test.want)
		}
		if again, err := Format(got); again != got {
			t.Errorf("%q is laid out as %q first and then as %q, %v", test.src, got, again, err)
		}
	}
	for src, want := range map[string]string{"a b": "1:3: ", "\ufeffa b": "1:3: ", "#!x\na b": "2:3: ", "#!x": ""} {
		if _, err := Format(src); err == nil != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", src, err, want)
		}
	}
}

func TestVectorsLayout(t *testing.T) {
	for _, v := range readParseVectors(t) {
		for _, text := range v.texts() {
			if _, err := Parse("", text); err == nil {
				checkLayout(t, text)
				commented := strings.ReplaceAll(text, "; ", "; // c\n")
				if _, err := Parse("", commented); err == nil {
					checkLayout(t, commented)
				}
			} else if _, again := Format(text); again == nil || again.Error() != err.Error() {
				t.Errorf("%q: error %v, want %v", text, again, err)
			}
		}
	}
}

// TestLayoutAnyTree lays out texts of trees with blanks, line ends and comments
// between their tokens.
func TestLayoutAnyTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := Print(drawTree(t, rapid.IntRange(0, 5).Draw(t, "depth")))
		checkLayout(t, text)
		var b strings.Builder
		from := 0
		gaps := rapid.SampledFrom([]string{"", "", " ", "\n", "\n\n\n", " // c\n", "\n// c\n\n", " /* c */", "\n/* c\n d */", " /* c */ // d\n"})
		for s := newScanner(text, Parser{}.limits()); ; {
			token, _ := s.Next()
			// A - keeps to a number behind it, or keeps away from it.
			if at := token.Pos.Offset; at == 0 || text[at-1] != '-' {
				b.WriteString(gaps.Draw(t, "gap"))
			}
			b.WriteString(text[from:s.pos])
			if from = s.pos; s.done {
				break
			}
		}
		src := b.String()
		if _, err := Parse("", src); err != nil {
			t.Fatalf("%q: %v", src, err)
		}
		checkLayout(t, src)
	})
}

// FuzzFormat checks that any text that parses stays the same program with the
// same comments, and is laid out alike the second time.
func FuzzFormat(f *testing.F) {
	for _, v := range readParseVectors(f) {
		for _, text := range v.texts() {
			f.Add(text)
		}
	}
	f.Add("/* a */ (b // c\n;\n\n// d\n;> [1,\n-2]) // e")
	f.Add("f(\na,// b\n\nc)=>.i[- 2 - 1--.j>3](;;a // b\n)")
	f.Fuzz(func(t *testing.T, src string) {
		if _, err := Parse("", src); err == nil {
			checkLayout(t, src)
		}
	})
}

// BenchmarkFormat reports bytes of source a second.
func BenchmarkFormat(b *testing.B) {
	src := strings.Repeat("// Where to go.\n.left < 0.1 && !home => (\n  .corner+=1; x = f(.a, [1,2]) // next\n);\n.i[0->10)(s+=load[.i]);\n", 2000)
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Format(src); err != nil {
			b.Fatal(err)
		}
	}
}

// TestExamplesLayout checks that the example programs have the layout.
func TestExamplesLayout(t *testing.T) {
	files, err := filepath.Glob("../examples/*/*.karl")
	if err != nil || len(files) == 0 {
		t.Fatal("no example programs", err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if text := checkLayout(t, string(src)); text != string(src) {
			t.Errorf("%s is laid out as\n%s", file, text)
		}
	}
}
