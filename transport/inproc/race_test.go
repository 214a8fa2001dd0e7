//go:build race

package inproc_test

const raceEnabled = true
