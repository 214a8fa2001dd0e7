package knowledge_test

import (
	"testing"

	"github.com/madara-go/madara/karl/karltest"
)

// TestChunks runs the programs of testdata, each on a base of its own, and checks
// the values and faults that their files say.
func TestChunks(t *testing.T) { karltest.Run(t, "testdata/*.karl") }
