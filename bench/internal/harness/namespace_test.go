package harness

import (
	"slices"
	"testing"
)

// TestStaleNames takes the namespaces of runners that are gone, and no others.
func TestStaleNames(t *testing.T) {
	list := "madara-bench-b12 (id: 1)\nmadara-bench-a12\nmadara-bench-a7\nmadara-bench-c12\nmadara-bench-a\nmadara-bench-a-12\nmadara-bench-ax\nother-a12\n\n"
	got := staleNames(list, func(process int) bool { return process == 7 })
	if want := []string{"madara-bench-b12", "madara-bench-a12"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
