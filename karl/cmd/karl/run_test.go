package main

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/madara-go/madara/karl"
)

// TestGrid counts the runs of a program, the first of which takes its time.
func TestGrid(t *testing.T) {
	for _, c := range []struct {
		name   string
		first  string // seconds
		period time.Duration
		end    time.Duration
		want   int64
	}{
		{"in time", "0", 10 * time.Millisecond, time.Second, 100},
		{"not at the end", "0", 300 * time.Millisecond, time.Second, 4},
		{"catches up", "0.05", 10 * time.Millisecond, time.Second, 100},
		{"skips what is older than 100 ms", "0.35", 10 * time.Millisecond, time.Second, 1 + 75},
		{"long period", "0.35", 200 * time.Millisecond, time.Second, 5},
		{"cut short", "5", 10 * time.Millisecond, time.Second, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &process{out: &output{w: &bytes.Buffer{}}}
				s := newSession(p, &flags{})
				defer s.close()
				program, err := karl.Parse("", "++n; n == 1 => #sleep("+c.first+")")
				if err != nil {
					t.Fatal(err)
				}
				files, err := s.bind([]*karl.Program{program})
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				ctx, cancel := context.WithDeadlineCause(t.Context(), start.Add(c.end), errOver)
				defer cancel()
				l := loop{s: s, files: files, start: start, period: c.period, end: c.end}
				if err := l.run(ctx); !errors.Is(err, errOver) {
					t.Errorf("error %v, want %v", err, errOver)
				}
				if took := time.Since(start); took != c.end {
					t.Errorf("took %v, want %v", took, c.end)
				}
				if got := s.kb.Get("n").Int(); got != c.want {
					t.Errorf("%d runs, want %d", got, c.want)
				}
			})
		})
	}
}
