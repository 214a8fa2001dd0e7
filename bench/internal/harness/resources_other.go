//go:build !unix

package harness

func (r *Resources) usage() {}
