package karl_test

import (
	"testing"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/karl/karltest"
)

// TestChunks checks that the programs of testdata have the faults their files
// say, and no others.
func TestChunks(t *testing.T) {
	for _, c := range karltest.Read(t, "testdata/*.karl") {
		t.Run(c.Name, func(t *testing.T) { checkFaults(t, c) })
	}
}

func checkFaults(t *testing.T, c karltest.Chunk) {
	p, err := karl.Parse("", c.Source)
	want := c.Faults
	if err == nil {
		karl.CheckRoundTrip(t, p)
	} else {
	faults:
		for _, e := range err.(karl.ErrorList) {
			for i, f := range want {
				if f.Line == e.Pos.Line && f.Column == e.Pos.Column {
					if !f.Message.MatchString(e.Msg) {
						t.Errorf("in\n%s\n%v, want a message like %s", c.Source, e, f.Message)
					}
					want = append(want[:i:i], want[i+1:]...)
					continue faults
				}
			}
			t.Errorf("unexpected fault in\n%s\n%v", c.Source, e)
		}
	}
	for _, f := range want {
		t.Errorf("in\n%s\nno fault at %d:%d, want one like %s", c.Source, f.Line, f.Column, f.Message)
	}
}
