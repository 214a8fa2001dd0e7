//go:build !unix

package eval

// nonblock has no meaning where files are not pipes.
const nonblock = 0
