package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

type watchCmd struct {
	Pattern []string       `arg:"" optional:"" help:"Names of variables, in which * stands for any text. The default is all."`
	JSON    bool           `name:"json" help:"Print JSON objects, one a line."`
	Stats   bool           `help:"Print how often each peer sends each variable, and what was dropped, instead of the values."`
	Every   *time.Duration `placeholder:"TIME" help:"How often --stats prints; the default is 1s."`
	For     *time.Duration `placeholder:"TIME" help:"Stop after TIME, as 5s."`
	Silent  bool           `help:"Send nothing at all. Otherwise peers that are there already are asked for what they know."`
	network
}

// Help is shown by kong below the usage.
func (c *watchCmd) Help() string {
	return `A line has the time, the clock of the message (and /quality unless that is 0), the variable, its value and the peer. Values that were refused, because a newer one is known, are not shown; --stats counts them. Of a variable that changes faster than lines can be written, intermediate values may be left out.

The watch ends with an interrupt, or after --for, with exit code 0.`
}

// Validate is called by kong.
func (c *watchCmd) Validate() error {
	if c.Every != nil && !c.Stats {
		return fmt.Errorf("--every goes with --stats only")
	}
	if err := positive(map[string]*time.Duration{"--every": c.Every, "--for": c.For}); err != nil {
		return err
	}
	return c.network.check(true)
}

// Run is called by kong.
func (c *watchCmd) Run(p *process) error {
	s := newSession(p, &flags{}, c.options(p)...)
	defer s.close()
	ctx, stop := s.interruptible()
	defer stop()
	ctx, cancel := endsAfter(ctx, c.For)
	defer cancel()
	heard := newListener(c.Pattern)
	share := knowledge.Sharing{Depth: depth, NoSending: true, ReceiveFilters: []knowledge.RecordFilter{heard.hear}}
	if err := s.connect(&c.network, share); err != nil {
		return err
	}
	if !c.Silent {
		s.announce(&c.network)
	}
	if c.Stats {
		c.stats(ctx, s, heard)
		return nil
	}
	return c.changes(ctx, s, heard)
}

// changes prints what changes until ctx ends.
func (c *watchCmd) changes(ctx context.Context, s *session, heard *listener) error {
	shown := map[string]knowledge.Record{}
	t := table{clock: 5, name: 16, value: 16}
	if !c.JSON {
		t.line(s.p, "TIME", "CLOCK", "NAME", "VALUE", "PEER")
	}
	for change := range s.kb.Watch(ctx, c.Pattern...) {
		if change.Err != nil {
			return fail(exitIO, change.Err)
		}
		if change.Dropped > 0 {
			fmt.Fprintf(s.p.err, "karl: changes come faster than they can be shown, %d left out\n", change.Dropped)
		}
		r := change.Record
		last, before := shown[change.Name]
		if change.Kind != knowledge.Set || before && last.Clock == r.Clock && last.Quality == r.Quality && last.Value.Equal(r.Value) {
			continue // sent again
		}
		shown[change.Name] = r
		now, sender := time.Now(), heard.sender(change.Name, r.Clock)
		if c.JSON {
			b := now.AppendFormat([]byte(`{"time":"`), time.RFC3339Nano)
			b = appendName(append(b, `","name":`...), change.Name)
			b = appendValue(append(b, `,"value":`...), r.Value)
			b = fmt.Appendf(b, `,"clock":%d,"quality":%d,"originator":`, r.Clock, r.Quality)
			s.p.out.Write(append(appendName(b, sender), "}\n"...))
			continue
		}
		clock := strconv.FormatUint(r.Clock, 10)
		if r.Quality > 0 {
			clock += "/" + strconv.FormatUint(uint64(r.Quality), 10)
		}
		t.line(s.p, now.Format("15:04:05.000"), clock, plain(change.Name), show(r.Value), plain(sender))
	}
	return nil
}

// stats prints counts until ctx ends, and then once more.
func (c *watchCmd) stats(ctx context.Context, s *session, heard *listener) {
	every := time.Second
	if c.Every != nil {
		every = *c.Every
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for last := time.Now(); ; {
		ended := false
		select {
		case <-tick.C:
		case <-ctx.Done():
			ended = true
		}
		now := time.Now()
		if period := now.Sub(last); !ended || period > every/10 {
			c.report(s, heard, now, period)
		}
		last = now
		if ended {
			return
		}
	}
}

// report prints the counts at a time, after a period.
func (c *watchCmd) report(s *session, heard *listener, now time.Time, period time.Duration) {
	rates, ignored := heard.report()
	total := s.net.stats()
	perSecond := func(r rate) float64 { return float64(r.total-r.shown) / period.Seconds() }
	if c.JSON {
		b := now.AppendFormat([]byte(`{"time":"`), time.RFC3339Nano)
		b = fmt.Appendf(b, `","received":%d,"bytes":%d,"drops":{`, total.Received, total.ReceivedBytes)
		for i, d := range dropsOf(total) {
			if i > 0 {
				b = append(b, ',')
			}
			b = fmt.Appendf(b, `%q:%d`, d.String(), total.Drops[d])
		}
		b = append(b, `},"rates":[`...)
		for i, r := range rates {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendName(append(b, `{"originator":`...), r.sender)
			b = appendName(append(b, `,"name":`...), r.name)
			b = fmt.Appendf(b, `,"updates":%d,"rate":%.2f}`, r.total, perSecond(r))
		}
		s.p.out.Write(append(b, "]}\n"...))
		return
	}
	b := fmt.Appendf(nil, "%s  received %d (%d bytes)", now.Format("15:04:05.000"), total.Received, total.ReceivedBytes)
	for _, d := range dropsOf(total) {
		b = fmt.Appendf(b, "  %v %d", d, total.Drops[d])
	}
	b = append(b, '\n')
	for _, r := range rates {
		b = fmt.Appendf(b, "  %10.1f/s %10d  %-16s  %s\n", perSecond(r), r.total, plain(r.name), plain(r.sender))
	}
	if ignored > 0 {
		b = fmt.Appendf(b, "  and %d updates of more than %d variables\n", ignored, maxHeard)
	}
	s.p.out.Write(b)
}

// table writes lines whose columns grow with what is in them.
type table struct{ clock, name, value int }

func (t *table) line(p *process, time, clock, name, value, peer string) {
	grow := func(width *int, text string) { *width = max(*width, min(utf8.RuneCountInString(text), 40)) }
	grow(&t.clock, clock)
	grow(&t.name, name)
	grow(&t.value, value)
	line := fmt.Sprintf("%-12s  %*s  %-*s  %-*s  %s", time, t.clock, clock, t.name, name, t.value, value, peer)
	fmt.Fprintln(p.out, strings.TrimRight(line, " "))
}

// maxShown bounds the characters of a value in a line for people.
const maxShown = 200

// show returns a value as KaRL writes it, on one line.
func show(v karl.Value) string {
	var text string
	switch k := v.Kind(); {
	case k.IsFile():
		return fmt.Sprintf("%s of %d bytes", k, v.Len())
	case k.IsString():
		text = strconv.Quote(v.String())
	case k.IsArray():
		var b strings.Builder
		for i := range min(v.Len(), maxShown) {
			if i > 0 {
				b.WriteString(", ")
			}
			x, _ := v.At(i)
			b.WriteString(show(x))
		}
		text = "[" + b.String() + "]"
	case k == karl.KindDouble:
		return strings.Trim(string(appendFloat(nil, v.Float())), `"`)
	default:
		return v.String()
	}
	if runes := []rune(text); len(runes) > maxShown {
		return fmt.Sprintf("%s… (%d in all)", string(runes[:maxShown]), v.Len())
	}
	return text
}

// plain returns a name from the network, in quotes if it has characters that
// could do something to a terminal.
func plain(name string) string {
	odd := func(r rune) bool { return !unicode.IsGraphic(r) || r == utf8.RuneError || r == ' ' }
	if name == "" || strings.ContainsFunc(name, odd) {
		return strconv.Quote(name)
	}
	return name
}
