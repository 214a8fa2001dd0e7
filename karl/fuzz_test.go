package karl

import (
	"testing"
	"time"
)

// FuzzParse checks that any text either parses, and then survives being printed
// and parsed again, or has faults at places in it, quickly in both cases.
func FuzzParse(f *testing.F) {
	for _, v := range readParseVectors(f) {
		for _, text := range v.texts() {
			f.Add(text)
		}
	}
	f.Add(".i[-2-1--.j[0-2>3](a)>3) (;) ;> f(1;2,)")
	f.Fuzz(func(t *testing.T, src string) {
		begin := time.Now()
		p, err := Parse("", src)
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("took %v", d)
		}
		if err == nil {
			checkRoundTrip(t, p)
			checkSpans(t, p)
			return
		}
		last := 0
		for _, e := range err.(ErrorList) {
			if e.Pos.Offset < last || e.End.Offset < e.Pos.Offset || e.End.Offset > len(src) || e.Msg == "" {
				t.Errorf("bad fault %+v", e)
			}
			last = e.Pos.Offset
			e.Snippet()
		}
	})
}
