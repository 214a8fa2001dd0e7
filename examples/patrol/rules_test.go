package main

import (
	"testing"

	"github.com/madara-go/madara/karl/karltest"
)

func TestRules(t *testing.T) { karltest.Run(t, "testdata/rules.karl") }
