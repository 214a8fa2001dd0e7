package main

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMain is an agent if the test started it as one.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-agent") {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestSwarm(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*limit)
	defer cancel()
	var out strings.Builder
	if err := run(ctx, "", &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if n := strings.Count(out.String(), "All know the same."); n != 2 {
		t.Errorf("%d swarms agree\n%s", n, out.String())
	}
	if n := strings.Count(out.String(), "agent.4.vote=2"); n != 2*agents {
		t.Errorf("%d agents vote for the second\n%s", n, out.String())
	}
}

// TestAlone lets an agent wait for others that do not come.
func TestAlone(t *testing.T) {
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*patrol)
	defer cancel()
	start := time.Now()
	err = process(ctx, 3, groupOn(port), strings.NewReader(""), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "agent 3 waits for agent.1.ready") {
		t.Errorf("error %v", err)
	}
	if took := time.Since(start); took > limit {
		t.Errorf("took %v", took)
	}
}

func TestDisagree(t *testing.T) {
	err := compare([]report{{ID: "a", View: "x=1"}, {ID: "b", View: "x=2"}}, io.Discard)
	if err == nil {
		t.Error("no error")
	}
}
