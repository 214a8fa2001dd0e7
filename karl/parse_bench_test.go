package karl

import (
	"strings"
	"testing"
)

// BenchmarkParse reports the time for a statement of programs of 10,000, and
// for one short text.
func BenchmarkParse(b *testing.B) {
	mixed := []string{
		"a = b + 3 * c - d / 2;\n", ".x > 10 => ++count;\n", "v[.i] = #sqrt(w) + 1.5;\n", "(a || b) => c = 'text';\n",
	}
	for _, bench := range []struct {
		name, src string
	}{
		{"inc", strings.Repeat("++var1;", 10_000)},
		{"mixed", strings.Repeat(strings.Join(mixed, ""), 2500)},
		{"short", "++var1"},
		{"loop", strings.Repeat(".i[0->10) (x += .i);", 10_000)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			statements := max(strings.Count(bench.src, ";"), 1)
			for b.Loop() {
				if _, err := Parse("", bench.src); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*statements), "ns/statement")
		})
	}
}
