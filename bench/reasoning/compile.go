package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/madara-go/madara/knowledge"
)

// textStatements is the number of statements of a large text to compile.
const textStatements = 10_000

// compileRows parse and bind texts that were never seen before, so that no cache
// answers: each has its number in it.
func compileRows() []row {
	increments := strings.Repeat("++x;", textStatements)
	mixed := mixedStatements()
	numbered := func(src string) func(int) string {
		return func(n int) string { return src + "//" + strconv.Itoa(n) }
	}
	short := func(n int) string { return "battery < 20 && mode != 'dock' => goal = " + strconv.Itoa(n) }
	cold := func(n int) string {
		s := strconv.Itoa(n)
		return "battery" + s + " < 20 && mode" + s + " != 'dock' => goal" + s + " = 1"
	}
	return []row{
		{name: "KaRL compile: Increment of 10,000", unit: unitMicros, per: textStatements, allocates: true, longer: 4, open: compileTexts(textStatements, 1, numbered(increments))},
		{name: "KaRL compile: Mixed Statement of 10,000", unit: unitMicros, per: textStatements, allocates: true, longer: 4, open: compileTexts(textStatements, 1, numbered(mixed))},
		{name: "KaRL compile: Short Text", unit: unitMicros, per: 1, allocates: true, longer: 4, open: compileTexts(1, 0, short)},
		// Cold: its names are new too, and variables are made for them.
		{name: "KaRL compile: Short Text, new Names", unit: unitMicros, per: 1, allocates: true, longer: 4, open: compileTexts(1, 10_000, cold)},
	}
}

// mixedStatements is what programs are made of: expressions, guarded
// increments, arrays, strings, names with braces; 26 bytes each.
func mixedStatements() string {
	kinds := []string{
		"c%d = a%d * 3 + b%d - 2;", "c%d > 5 => ++alarms%d;", "pose%d[1] = a%d / 2.5;", "dist%d < 10 && a%d => goal = %d;",
		"mode%d = 'survey';", "total%d += c%d;", "(a%d || b%d) => done%d = 1;", "++agent{.id}.step%d;",
	}
	var b strings.Builder
	for i := range textStatements {
		kind := kinds[i%len(kinds)]
		n := make([]any, strings.Count(kind, "%d"))
		for j := range n {
			n[j] = i / len(kinds) % 100
		}
		fmt.Fprintf(&b, kind, n...)
	}
	return b.String()
}

// compileTexts compiles a new text for each unit. Texts of many statements are
// not remembered, or the cache would hold hundreds of megabytes of programs.
// After so many texts comes a new base, unless that is 0.
func compileTexts(per, renew int, text func(n int) string) func(...knowledge.Option) (*work, error) {
	return func(opts ...knowledge.Option) (*work, error) {
		if per > 1 {
			opts = append(opts, knowledge.WithLimits(knowledge.Limits{TextBytes: 1 << 10}))
			renew = 0
		}
		kb := knowledge.New(opts...)
		var last *knowledge.Expression
		n := 0
		return &work{
			run: func(units int) error {
				for range units {
					if n++; renew > 0 && n%renew == 0 {
						kb = knowledge.New(opts...)
					}
					var err error
					if last, err = kb.Compile(text(n)); err != nil {
						return err
					}
				}
				return nil
			},
			check: func(operations int64) error {
				if _, err := last.Evaluate(nil); err != nil {
					return err
				}
				if per == 1 {
					return want("the number of texts", int64(n), operations)
				}
				count := strings.Count(last.String(), ";") + 1
				return want("the number of statements", int64(n)*int64(count), operations)
			},
		}, nil
	}
}
