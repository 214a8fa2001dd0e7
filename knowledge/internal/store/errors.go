package store

import "fmt"

// detailed is an error whose text says all there is to say, and that is one of
// the sentinels for errors.Is.
type detailed struct {
	text string
	is   error
}

func (e *detailed) Error() string { return e.text }
func (e *detailed) Unwrap() error { return e.is }

// Errorf returns an error that is the sentinel and has a text of its own.
func Errorf(is error, format string, args ...any) error {
	return &detailed{text: fmt.Sprintf(format, args...), is: is}
}
