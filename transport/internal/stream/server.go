package stream

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/internal/hub"
	"github.com/madara-go/madara/transport/internal/service"
)

// server is a connection that requests come over.
type server struct {
	*writer
	control  *Control
	source   string
	priority transport.Priority

	mu   sync.Mutex
	open map[uint64]*job
}

// job is a request that is received or handled.
type job struct {
	service.Job
	s         *server
	id        uint64
	size      int  // announced
	held      int  // bytes that count for Control.held
	partial   bool // not all of it was there at once
	submitted bool
}

var jobs = sync.Pool{New: func() any { return &job{} }}

// keep is the longest payload whose memory a job keeps for the next request.
const keep = 1 << 20

// serve is the life of a connection that was accepted.
func (c *Control) serve(conn net.Conn) {
	source, theirs, err := open(conn, c.network, hello{window: maxOpen, session: c.session}, magicControl)
	if err == nil && theirs.class >= service.Classes {
		err = malformed("priority class %d", theirs.class)
	}
	if err == nil {
		shrink(conn)
		s := &server{
			writer: newWriter(conn, queued, piece), control: c, source: source,
			priority: transport.Background + transport.Priority(theirs.class), open: map[uint64]*job{},
		}
		s.stalled = c.stalled
		c.counters.Peers.Add(1)
		var writing sync.WaitGroup
		writing.Go(s.run)
		if err = s.read(); errors.Is(err, os.ErrDeadlineExceeded) {
			err = malformed("nothing more of a request for %v", s.stalled)
		}
		s.close()
		s.leave()
		writing.Wait()
		c.counters.Peers.Add(-1)
	}
	if d, ok := dropOf(err); ok {
		c.counters.Drop(d, 1)
	}
}

// leave tells the handlers that the caller is gone, and drops what was not
// complete.
func (s *server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, j := range s.open {
		if j.submitted {
			j.Leave()
			continue
		}
		delete(s.open, id)
		s.release(j)
	}
}

// release gives back what a job holds. The job is not used after it.
func (s *server) release(j *job) {
	s.control.held.Add(-int64(j.held))
	payload := j.Payload[:0]
	if cap(payload) > keep {
		payload = nil
	}
	*j = job{}
	j.Payload = payload
	jobs.Put(j)
}

// requests is a connection that requests are read from.
type requests struct {
	*server
	r        *bufio.Reader
	head     []byte
	expected int       // requests of which more is to come
	until    time.Time // the connection's read deadline, zero for none
}

// read takes requests until the connection ends.
func (s *server) read() error {
	c := &requests{server: s, r: bufio.NewReaderSize(s.conn, ahead), head: make([]byte, requestHead+transport.MaxMethod)}
	return hub.Read(c.frame)
}

// frame takes one frame.
func (c *requests) frame(reader *hub.Reader) error {
	kind, body, err := readHead(c.r, c.head, requestHead+transport.MaxMethod+chunk)
	if err != nil {
		return err
	}
	switch kind {
	case kindRequest:
		return c.begin(reader, body)
	case kindContinue:
		return c.part(reader, body)
	case kindCancel:
		return c.cancelled(body)
	}
	return malformed("a frame of kind %d", kind)
}

func (s *requests) begin(reader *hub.Reader, body int) error {
	r, head := s.r, s.head
	if body < requestHead {
		return malformed("a request of %d bytes, at least %d are needed", body, requestHead)
	}
	if _, err := io.ReadFull(r, head[:requestHead]); err != nil {
		return err
	}
	id, left := binary.BigEndian.Uint64(head), binary.BigEndian.Uint64(head[8:])
	size, n := int(binary.BigEndian.Uint32(head[16:])), int(head[20])
	part := body - requestHead - n
	if part < 0 || part > size || n == 0 {
		return malformed("a method of %d bytes in a request of %d, which announces %d", n, body, size)
	}
	if _, err := io.ReadFull(r, head[:n]); err != nil {
		return err
	}
	refuse := byte(statusOK)
	method := s.control.services.Method(head[:n])
	s.mu.Lock()
	twice, full := s.open[id] != nil, len(s.open) >= maxOpen
	s.mu.Unlock()
	switch {
	case twice:
		return malformed("request %d came twice", id)
	case size > s.control.max:
		refuse = statusTooLarge
	case method == "":
		refuse = statusMethod
	case full:
		refuse = statusBusy
	}
	if refuse != statusOK {
		return s.refuse(id, refuse, part)
	}
	j := jobs.Get().(*job)
	j.s, j.id, j.size = s.server, id, size
	j.Method, j.Source, j.Priority = method, s.source, s.priority
	j.Reply, j.Owner = reply, j
	if left > 0 {
		j.Deadline = time.Now().Add(time.Duration(min(left, uint64(maxTime.Microseconds()))) * time.Microsecond)
	}
	s.mu.Lock()
	s.open[id] = j
	s.mu.Unlock()
	return s.more(reader, j, part)
}

// refuse answers a request without its payload, of which so many bytes follow in
// this frame.
func (s *requests) refuse(id uint64, status byte, part int) error {
	if status == statusBusy {
		s.control.counters.Drop(transport.DropBusy, 1)
	}
	if _, err := s.r.Discard(part); err != nil {
		return err
	}
	s.respond(id, status, nil)
	return nil
}

// expect notes that more or fewer requests are to be continued. If there are any,
// something must come in time.
func (s *requests) expect(more int) {
	s.expected += more
	if s.expected == 0 {
		if !s.until.IsZero() {
			s.until = time.Time{}
			s.conn.SetReadDeadline(s.until)
		}
		return
	}
	if end := time.Now().Add(s.stalled); end.Sub(s.until) > s.stalled/10 { // not for each part
		s.until = end
		s.conn.SetReadDeadline(end)
	}
}

// hold makes room for so many bytes of a request, and for some more of what was
// announced. It returns false if there is none.
func (s *requests) hold(j *job, bytes int) bool {
	if bytes <= j.held {
		return true
	}
	size := min(j.size, max(stage, 8*bytes))
	if s.control.held.Add(int64(size-j.held)) > s.control.room {
		s.control.held.Add(int64(j.held - size))
		return false
	}
	j.held = size
	if cap(j.Payload) < size {
		j.Payload = append(make([]byte, 0, size), j.Payload...)
	}
	return true
}

// maxTime is the longest time a caller can leave.
const maxTime = 365 * 24 * time.Hour

func (s *requests) part(reader *hub.Reader, body int) error {
	r, head := s.r, s.head
	if body < idSize || body > idSize+chunk {
		return malformed("a part of %d bytes", body)
	}
	if _, err := io.ReadFull(r, head[:idSize]); err != nil {
		return err
	}
	id := binary.BigEndian.Uint64(head)
	s.mu.Lock()
	j := s.open[id]
	s.mu.Unlock()
	if j == nil || j.submitted { // of a request that was refused or cancelled
		_, err := r.Discard(body - idSize)
		return err
	}
	return s.more(reader, j, body-idSize)
}

// more reads a part of a request, and submits it when it is complete.
func (s *requests) more(reader *hub.Reader, j *job, part int) (err error) {
	if len(j.Payload)+part > j.size {
		return malformed("%d bytes more than announced", len(j.Payload)+part-j.size)
	}
	if !s.hold(j, len(j.Payload)+part) {
		s.mu.Lock()
		delete(s.open, j.id)
		s.mu.Unlock()
		id := j.id
		if j.partial {
			s.expect(-1)
		}
		s.release(j)
		return s.refuse(id, statusBusy, part)
	}
	if j.Payload, err = receive(s.r, j.Payload, part, j.size); err != nil {
		return err
	}
	if len(j.Payload) < j.size {
		if j.partial {
			s.expect(0)
		} else {
			j.partial = true
			s.expect(1)
		}
		return nil
	}
	if j.partial {
		s.expect(-1)
	}
	s.mu.Lock()
	j.submitted = true
	s.mu.Unlock()
	s.control.counters.Received(j.size)
	s.control.services.Submit(&j.Job, reader)
	return nil
}

func (s *requests) cancelled(body int) error {
	r, head := s.r, s.head
	if body != idSize {
		return malformed("a cancellation of %d bytes, not %d", body, idSize)
	}
	if _, err := io.ReadFull(r, head[:idSize]); err != nil {
		return err
	}
	id := binary.BigEndian.Uint64(head)
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.open[id]; j != nil {
		if j.submitted {
			j.Leave()
		} else {
			s.expect(-1)
			delete(s.open, id)
			s.release(j)
		}
	}
	return nil
}

// reply is Job.Reply.
func reply(sj *service.Job, response []byte, err error) {
	j := sj.Owner.(*job)
	s := j.s
	status := byte(statusOK)
	switch {
	case err == nil && len(response) > s.control.max:
		status, response = statusTooLarge, nil
	case err == nil:
	case errors.Is(err, transport.ErrBusy):
		status, response = statusBusy, nil
	case errors.Is(err, transport.ErrMethod):
		status, response = statusMethod, nil
	case errors.Is(err, transport.ErrClosed):
		status, response = statusClosed, nil
	case errors.Is(err, context.DeadlineExceeded):
		status, response = statusExpired, nil
	default:
		text := err.Error()
		status, response = statusError, []byte(text[:min(len(text), chunk)])
	}
	s.respond(j.id, status, response)
	s.mu.Lock()
	delete(s.open, j.id)
	s.release(j)
	s.mu.Unlock()
}

// respond sends a response, part after part.
func (s *server) respond(id uint64, status byte, response []byte) {
	buf := heads.Get().(*[]byte)
	defer heads.Put(buf)
	part := response[:min(len(response), chunk)]
	f := beginFrame((*buf)[:0], kindResponse, responseHead+len(part))
	f = binary.BigEndian.AppendUint64(f, id)
	f = append(f, status)
	f = binary.BigEndian.AppendUint32(f, uint32(len(response)))
	if !s.sendWait(f, part, nil) {
		return
	}
	s.control.counters.Sent(len(response))
	for response = response[len(part):]; len(response) > 0; response = response[len(part):] {
		part = response[:min(len(response), chunk)]
		if !s.sendWait(appendContinue((*buf)[:0], id, part), part, nil) {
			return
		}
	}
}
