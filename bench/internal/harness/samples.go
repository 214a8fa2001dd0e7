package harness

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
)

// MaxSamples is how many samples of one run are kept, of all subscribers
// together: 8 bytes of memory each, by their count from the start.
const MaxSamples = 20_000_000

// noTime stands for a time that there was not.
const noTime = math.MinInt64

func newTimes(count int64) []int64 {
	list := make([]int64, count)
	for i := range list {
		list[i] = noTime
	}
	return list
}

// sentTimes is what a sender keeps of each measured message, in nanoseconds since
// the start, by column.
type sentTimes map[string][]int64

// times returns room for the samples of a sender, nil if nobody wants them.
func (p *Plan) times(columns ...string) sentTimes {
	if !p.WantSamples {
		return nil
	}
	t := sentTimes{}
	for _, c := range columns {
		t[c] = newTimes(p.Count)
	}
	return t
}

// keep keeps a number of measured message i, if somebody wants it.
func (t sentTimes) keep(column string, i, v int64) {
	if list := t[column]; list != nil {
		list[i] = v
	}
}

// The numbers that a peer can be asked for.
const (
	columnSend    = "send"
	columnReturn  = "return"
	columnReceive = "receive" // of a subscriber, or of an answer
	columnOutcome = "outcome" // of a call, a position in outcomes
)

// outcomes are how calls end: kindOf's names.
var outcomes = []string{"answered", "timeout", "unreachable", "busy", "closed", "cancelled", "remote", "other"}

// sampleRequest asks a peer for a part of a column.
type sampleRequest struct {
	Column string `json:"column"`
	Seat   int    `json:"seat"` // the subscriber, by its place in the process
	First  int64  `json:"first"`
	Count  int64  `json:"count"`
}

type sampleValues struct {
	Values string `json:"values"` // packed
}

// samples answers what the runner asks for after a run.
func (p *peer) samples(ask sampleRequest) (*sampleValues, error) {
	var list []int64
	if p.assignment.Role == roleSubscribe {
		if ask.Seat < 0 || ask.Seat >= len(p.seats) {
			return nil, fmt.Errorf("subscriber %d, allowed is 0 to %d", ask.Seat, len(p.seats)-1)
		}
		s := p.seats[ask.Seat]
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.tracker != nil && ask.Column == columnReceive {
			list = s.tracker.times
		}
	} else {
		p.mu.Lock()
		list = p.times[ask.Column]
		p.mu.Unlock()
	}
	if n := int64(len(list)); ask.First < 0 || ask.Count < 0 || ask.First > n || ask.Count > n-ask.First {
		return nil, fmt.Errorf("%d samples of %q from %d, there are %d", ask.Count, ask.Column, ask.First, n)
	}
	return &sampleValues{packed(list[ask.First : ask.First+ask.Count])}, nil
}

// sampleFile is the file of --samples. What stands in it depends on the track:
//
//	case,round,subscriber,sequence,intended,send,return,receive
//	case,round,sequence,intended,send,done,outcome
//
// Times are nanoseconds since message 0 of the round was to be sent, on the
// sender's clock. A message that did not come has no time of receiving; one that
// was sent as fast as possible was not intended for any.
type sampleFile struct {
	file *os.File
	w    *bufio.Writer
	line []byte
}

func createSamples(name, track string) (*sampleFile, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("--samples: %w: %w", ErrCannotRun, err)
	}
	names := "case,round,sequence,intended,send,done,outcome\n"
	if track == "event" {
		names = "case,round,subscriber,sequence,intended,send,return,receive\n"
	}
	s := &sampleFile{file: f, w: bufio.NewWriterSize(f, 1<<16)}
	s.w.WriteString(names)
	if err := s.w.Flush(); err != nil {
		f.Close()
		return nil, fmt.Errorf("--samples: %w: %w", ErrCannotRun, err)
	}
	return s, nil
}

func (f *sampleFile) close() error {
	err := f.w.Flush()
	if e := f.file.Close(); err == nil {
		err = e
	}
	return err
}

// sampleSink is where the samples of one round of a case go.
type sampleSink struct {
	file  *sampleFile
	label string
	round int
}

// Sampled returns the workload with its samples going to the file of --samples,
// if there is one, as the next round of a case.
func (s *Session) Sampled(c *Cell, w Workload) Workload {
	if s.samples != nil {
		w.samples = &sampleSink{s.samples, `"` + c.Case + `"`, len(c.Rounds) + 1}
	}
	return w
}

// row writes the line of measured message i: its subscriber if there are any, and
// times and perhaps a word after what was intended.
func (s *sampleSink) row(subscriber int, plan *Plan, i int64, word string, times ...int64) error {
	b := append(append(s.file.line[:0], s.label...), ',')
	b = strconv.AppendInt(b, int64(s.round), 10)
	if subscriber != nobody {
		b = strconv.AppendInt(append(b, ','), int64(subscriber), 10)
	}
	b = strconv.AppendInt(append(b, ','), plan.Warmup+i, 10)
	b = append(b, ',')
	if plan.Period > 0 {
		b = strconv.AppendInt(b, (plan.Warmup+i)*plan.Period, 10)
	}
	for _, t := range times {
		b = append(b, ',')
		if t != noTime {
			b = strconv.AppendInt(b, t, 10)
		}
	}
	if word != "" {
		b = append(append(b, ','), word...)
	}
	b = append(b, '\n')
	s.file.line = b
	_, err := s.file.w.Write(b)
	return err
}

// nobody is no subscriber.
const nobody = -1

// sampleChunk is how many messages are asked for at once.
const sampleChunk = 8192

// gather asks the peers for the samples of a run, part by part, and writes them.
// seats is how many subscribers each process of theirs has; without subscribers
// the messages came back to the sender. What was written is in the file then,
// however the benchmark ends.
func (s *sampleSink) gather(ctx context.Context, plan *Plan, sender *process, subscribers crew, seats []int) error {
	for first := int64(0); first < plan.Count; first += sampleChunk {
		part := sampleRequest{First: first, Count: min(sampleChunk, plan.Count-first)}
		send, err := sender.column(ctx, part, columnSend)
		if err != nil {
			return err
		}
		returned, err := sender.column(ctx, part, columnReturn)
		if err != nil {
			return err
		}
		write := func(p *process, subscriber int) error {
			receive, err := p.column(ctx, part, columnReceive)
			for i := range receive {
				if err == nil && send[i] != noTime {
					err = s.row(subscriber, plan, first+int64(i), "", send[i], returned[i], receive[i])
				}
			}
			return err
		}
		if len(subscribers) == 0 {
			if err := write(sender, 0); err != nil {
				return err
			}
		}
		number := 0
		for k, p := range subscribers {
			for part.Seat = 0; part.Seat < seats[k]; part.Seat++ {
				if err := write(p, number); err != nil {
					return err
				}
				number++
			}
		}
	}
	return s.file.w.Flush()
}

// gatherCalls asks a caller for the samples of a run, and writes them.
func (s *sampleSink) gatherCalls(ctx context.Context, plan *Plan, sender *process) error {
	for first := int64(0); first < plan.Count; first += sampleChunk {
		part := sampleRequest{First: first, Count: min(sampleChunk, plan.Count-first)}
		var columns [3][]int64
		for k, name := range []string{columnSend, columnReceive, columnOutcome} {
			var err error
			if columns[k], err = sender.column(ctx, part, name); err != nil {
				return err
			}
		}
		for i, send := range columns[0] {
			if send == noTime {
				continue
			}
			outcome := "other"
			if k := columns[2][i]; k >= 0 && k < int64(len(outcomes)) {
				outcome = outcomes[k]
			}
			if err := s.row(nobody, plan, first+int64(i), outcome, send, columns[1][i]); err != nil {
				return err
			}
		}
	}
	return s.file.w.Flush()
}

// column asks a peer for a part of its samples.
func (r *process) column(ctx context.Context, part sampleRequest, name string) ([]int64, error) {
	part.Column = name
	if err := r.say("samples", part); err != nil {
		return nil, err
	}
	var v sampleValues
	if err := r.expect(ctx, "samples", patience, &v); err != nil {
		return nil, err
	}
	list := unpacked(v.Values)
	if int64(len(list)) != part.Count {
		return nil, fmt.Errorf("%s: %d samples of %q, want %d", r.name, len(list), name, part.Count)
	}
	return list, nil
}

// outcomeOf is the position of a call's end.
func outcomeOf(err error) int64 {
	if err == nil {
		return 0
	}
	return int64(max(slices.Index(outcomes, kindOf(err)), 0))
}
