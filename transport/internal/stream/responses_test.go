package stream

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/madara-go/madara/transport"
)

// TestResponseInPieces lets a response come in pieces with pauses, longer and
// shorter than a caller reads himself, so that who reads changes anywhere.
func TestResponseInPieces(t *testing.T) {
	ours, theirs := net.Pipe()
	network := *anybody
	network.Dial = func(context.Context, string) (net.Conn, error) { return theirs, nil }
	c := NewControl(&network, nil, (*transport.Settings)(nil).WithDefaults())
	defer c.Close()
	defer ours.Close()
	want := make([]byte, 3*chunk+17)
	for i := range want {
		want[i] = byte(i * i >> 3)
	}
	pieces := func(b []byte, n int, pause time.Duration) {
		for len(b) > 0 {
			size := min(1+rand.IntN(n), len(b))
			ours.Write(b[:size])
			b = b[size:]
			if pause > 0 {
				time.Sleep(rand.N(pause))
			}
		}
	}
	go func() {
		if _, err := readHello(ours, magicControl); err != nil {
			t.Error(err)
		}
		ours.Write(hello{window: 10, session: 9}.append(nil, magicControl))
		head := make([]byte, 100)
		for i := 0; ; i++ {
			slow := func(part int) time.Duration { // one of the parts
				if i%3 == part {
					return leadFor
				}
				return 0
			}
			_, body, err := readHead(ours, head, 100)
			if err != nil {
				return
			}
			if _, err := io.ReadFull(ours, head[:body]); err != nil {
				return
			}
			id := binary.BigEndian.Uint64(head)
			first := beginFrame(nil, kindResponse, responseHead+10)
			first = binary.BigEndian.AppendUint64(first, id)
			first = append(first, statusOK)
			first = binary.BigEndian.AppendUint32(first, uint32(len(want)))
			pieces(append(first, want[:10]...), 3, slow(0))
			other := append(appendContinue(nil, id+1000, make([]byte, 20)), make([]byte, 20)...) // of nobody
			pieces(other, 5, slow(1))
			for rest := want[10:]; len(rest) > 0; {
				part := rest[:min(len(rest), chunk)]
				rest = rest[len(part):]
				frame := append(appendContinue(nil, id, part), part...)
				pieces(frame[:20], 4, slow(2))
				pieces(frame[20:], chunk, slow(2))
			}
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for range 9 {
		got, err := c.Call(ctx, "x", "m", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("another response of %d bytes", len(got))
		}
	}
}
