//go:build !unix

// Package unix is links over unix sockets, which this system does not have.
package unix
