package karl

import "testing"

// CheckRoundTrip is for tests outside the package.
var CheckRoundTrip = checkRoundTrip

// CheckCodes are the codes of findings with their classes.
var CheckCodes = codes

// Vector is a measured program.
type Vector struct {
	ID    string
	Texts []string
}

// ReadVectors returns the measured programs.
func ReadVectors(t testing.TB) (all []Vector) {
	for _, v := range readParseVectors(t) {
		all = append(all, Vector{v.ID, v.texts()})
	}
	return all
}
