package stream

import (
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// sockets returns the two ends of a connection.
func sockets(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("unix", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// TestWriterAfterItsDeadline sends more than the system has room for, which has a
// deadline, and something small long after it.
func TestWriterAfterItsDeadline(t *testing.T) {
	a, b := sockets(t)
	defer b.Close()
	w := newWriter(a, 1<<20, 0)
	w.stalled = time.Second
	done := make(chan struct{})
	go func() { w.run(); close(done) }()
	const large = 8 << 20
	if !w.send(make([]byte, large), nil, false) {
		t.Fatal("not sent")
	}
	if _, err := io.CopyN(io.Discard, b, large); err != nil {
		t.Fatal(err)
	}
	time.Sleep(w.stalled + 200*time.Millisecond)
	if !w.send([]byte("small"), nil, false) {
		t.Error("the connection is taken for stalled")
	}
	small := make([]byte, 5)
	if _, err := io.ReadFull(b, small); err != nil || string(small) != "small" {
		t.Errorf("%q, %v", small, err)
	}
	w.close()
	<-done
}

// TestWriterGivesUp sends to an end that reads nothing.
func TestWriterGivesUp(t *testing.T) {
	a, b := sockets(t)
	defer b.Close()
	w := newWriter(a, 1<<10, 0)
	w.stalled = 50 * time.Millisecond
	done := make(chan struct{})
	go func() { w.run(); close(done) }()
	stop := make(chan struct{})
	if !w.send(make([]byte, 8<<20), nil, false) {
		t.Fatal("not sent")
	}
	for w.sendWait(make([]byte, 1<<10), nil, stop) { // until it is given up
	}
	w.close()
	<-done
}
