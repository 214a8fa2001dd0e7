package stream

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/madara-go/madara/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// anybody is a network whose connections the tests make.
var anybody = &Network{
	Name:  "test",
	Dial:  func(context.Context, string) (net.Conn, error) { return nil, io.ErrClosedPipe },
	Admit: func(net.Conn) (string, error) { return "test", nil },
}

// talkTo writes bytes to what serves a connection, and waits until it ends.
func talkTo(t *testing.T, bytes []byte, serve func(net.Conn)) {
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		serve(theirs)
		theirs.Close()
	}()
	go io.Copy(io.Discard, ours)
	ours.SetWriteDeadline(time.Now().Add(10 * time.Second))
	ours.Write(bytes) // it may be cut off
	ours.Close()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("the connection did not end")
	}
}

func seeds(magic string, kinds ...byte) [][]byte {
	good := hello{class: 1, window: 10, session: 7}.append(nil, magic)
	list := [][]byte{nil, []byte("GET / HTTP/1.1\r\n\r\n"), good}
	for _, kind := range kinds {
		body := append(make([]byte, 7), 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3, 1, 'e', 'x', 'y', 'z')
		f := append(beginFrame(append([]byte{}, good...), kind, len(body)), body...)
		list = append(list, f, append(f, f[len(good):]...), f[:len(f)-2])
	}
	return list
}

func FuzzEvent(f *testing.F) {
	for _, s := range seeds(magicEvent, kindSubscribe, kindUnsubscribe, kindMessage) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e := NewEvent(anybody, nil, nil, transport.Settings{})
		e.Subscribe("*", nil, func(m *transport.Message) {
			if len(m.Payload)+len(m.Topic) > len(b) {
				t.Error("more came out than in")
			}
		})
		talkTo(t, b, e.serve)
		e.Close()
	})
}

func FuzzControl(f *testing.F) {
	for _, s := range seeds(magicControl, kindRequest, kindContinue, kindCancel) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c := NewControl(anybody, nil, (*transport.Settings)(nil).WithDefaults())
		c.Serve("e", nil, func(_ context.Context, r *transport.Request) ([]byte, error) {
			if len(r.Payload) > len(b) {
				t.Error("more came out than in")
			}
			return r.Payload[:len(r.Payload)/2], nil
		})
		talkTo(t, b, c.serve)
		c.Close()
		if n := c.held.Load(); n != 0 {
			t.Errorf("%d bytes are held", n)
		}
	})
}

// FuzzResponse is a server that answers a call with anything.
func FuzzResponse(f *testing.F) {
	for _, s := range seeds(magicControl, kindResponse, kindContinue) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		ours, theirs := net.Pipe()
		network := *anybody
		network.Dial = func(context.Context, string) (net.Conn, error) { return theirs, nil }
		c := NewControl(&network, nil, (*transport.Settings)(nil).WithDefaults())
		go io.Copy(io.Discard, ours)
		go func() {
			ours.SetWriteDeadline(time.Now().Add(10 * time.Second))
			ours.Write(b)
			ours.Close()
		}()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		response, err := c.Call(ctx, "x", "e", []byte("request"), nil)
		if err == nil && len(response) > len(b) {
			t.Error("more came out than in")
		}
		c.Close()
	})
}
