package stream

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/madara-go/madara/transport"
)

// announce begins a request of so many bytes and sends none of them.
func announce(id uint64, size uint32) []byte {
	b := beginFrame(nil, kindRequest, requestHead+1)
	b = binary.BigEndian.AppendUint64(b, id)
	b = binary.BigEndian.AppendUint64(b, 0)
	b = binary.BigEndian.AppendUint32(b, size)
	return append(b, 1, 'e')
}

// TestAnnouncedRequests lets strangers announce much and send nothing.
func TestAnnouncedRequests(t *testing.T) {
	c := NewControl(anybody, nil, (*transport.Settings)(nil).WithDefaults())
	c.stalled = 300 * time.Millisecond
	c.Serve("e", nil, func(_ context.Context, r *transport.Request) ([]byte, error) { return r.Payload[:1], nil })
	defer c.Close()
	var ended []chan struct{}
	for range 3 {
		ours, theirs := net.Pipe()
		defer ours.Close()
		done := make(chan struct{})
		ended = append(ended, done)
		go func() {
			c.serve(theirs)
			close(done)
		}()
		go io.Copy(io.Discard, ours)
		ours.Write(hello{session: 7}.append(nil, magicControl))
		for id := range uint64(10) {
			ours.Write(announce(id, transport.DefaultPayload))
		}
		ours.Write(announce(10, transport.DefaultPayload)[:7]) // all before it was taken
	}
	if held := c.held.Load(); held != 0 {
		t.Errorf("%d bytes are held for what did not come", held)
	}

	// A long request gets its room while it comes.
	ours, theirs := net.Pipe()
	defer ours.Close()
	go c.serve(theirs)
	const size = 20 << 20
	answers := make(chan byte)
	go func() {
		readHello(ours, magicControl)
		head := make([]byte, frameHead+responseHead)
		io.ReadFull(ours, head)
		answers <- head[frameHead+idSize]
	}()
	ours.Write(hello{session: 8}.append(nil, magicControl))
	ours.Write(announce(1, size))
	part := make([]byte, chunk)
	for sent := 0; sent < size; sent += chunk {
		ours.Write(append(appendContinue(nil, 1, part), part...))
		if held := c.held.Load(); held > int64(max(stage, 8*(sent+2*chunk))) {
			t.Fatalf("%d bytes are held when %d came", held, sent)
		}
	}
	if status := <-answers; status != statusOK {
		t.Errorf("status %d", status)
	}
	for _, done := range ended {
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Fatal("a connection that announces and sends nothing is kept")
		}
	}
	if n := c.Stats().Drops[transport.DropFrame]; n != 3 {
		t.Errorf("%d connections are counted as malformed, want 3", n)
	}
}

// TestFullOfRequests holds as much as may be and refuses what is more.
func TestFullOfRequests(t *testing.T) {
	c := NewControl(anybody, nil, (*transport.Settings)(nil).WithDefaults())
	defer c.Close()
	c.held.Store(maxHeld - stage)
	s := &requests{server: &server{control: c}}
	a, b := &job{size: transport.DefaultPayload}, &job{size: 100}
	if !s.hold(a, 10) || a.held != stage {
		t.Fatalf("%d bytes are held", a.held)
	}
	if s.hold(b, 100) || b.held != 0 || c.held.Load() != maxHeld {
		t.Errorf("%d bytes are held, and %d of all", b.held, c.held.Load())
	}
	if s.hold(a, stage+1) || a.held != stage {
		t.Errorf("%d bytes are held", a.held)
	}
	c.held.Store(0)
}
