//go:build !unix

package harness

import "os"

// endings are the signals that end a run with a partial report.
func endings() []os.Signal { return []os.Signal{os.Interrupt} }

// alive cannot tell: systems without signals have no network namespaces.
func alive(int) bool { return true }
