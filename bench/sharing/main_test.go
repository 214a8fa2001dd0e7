package main

import (
	"testing"
	"time"
)

// TestRows takes one short round of all rows; their own checks of counts and
// sums are the test.
func TestRows(t *testing.T) {
	rows, err := run(1, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if !(r.Figure > 0) {
			t.Errorf("%s: %v", r.Name, r.Figure)
		}
	}
}
