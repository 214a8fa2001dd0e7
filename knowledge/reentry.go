package knowledge

import (
	"bytes"
	"fmt"
	"runtime"
	"strconv"

	"github.com/petermattis/goid"

	"github.com/madara-go/madara/knowledge/internal/eval"
)

// goroutine returns the number of the calling goroutine, 0 if it cannot be told:
// then calls from within deadlock instead of panicking.
func goroutine() int64 {
	if !goidWorks {
		return 0
	}
	return goid.Get()
}

// goidWorks compares the number read from the runtime's own structure, which may
// change with a Go release, with the one the runtime prints.
var goidWorks = func() bool {
	ok := make(chan bool)
	go func() {
		var buf [64]byte
		text := buf[:runtime.Stack(buf[:], false)]
		text = bytes.TrimPrefix(text, []byte("goroutine "))
		number, _, _ := bytes.Cut(text, []byte(" "))
		n, err := strconv.ParseInt(string(number), 10, 64)
		ok <- err == nil && n == goid.Get()
	}()
	return <-ok
}()

func misuse(format string, args ...any) {
	panic(eval.Misuse("knowledge: " + fmt.Sprintf(format, args...)))
}
