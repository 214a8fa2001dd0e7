// Command swarm is four agents that share what they know: each tells the others
// how much charge it has, and votes for the one with the most. First the agents
// are four knowledge bases in one process, then four processes that talk over
// loopback multicast. Each prints what it knows in the end, and what it took.
//
//	go run ./examples/swarm
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/inproc"
)

const (
	agents = 4
	limit  = 4 * time.Second // for one swarm to agree
	patrol = 100 * time.Millisecond
)

//go:embed vote.karl
var vote string

func main() {
	log.SetFlags(0)
	log.SetPrefix("swarm: ")
	id := flag.Int("agent", 0, "be this agent of a swarm of processes, and nothing else")
	group := flag.String("group", "", "multicast group and port of the swarm of processes; the default is a free port")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 2*limit)
	defer cancel()
	var err error
	if *id > 0 {
		err = process(ctx, *id, *group, os.Stdin, os.Stdout)
	} else {
		err = run(ctx, *group, os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run lets both swarms agree, one after the other.
func run(ctx context.Context, group string, out io.Writer) error {
	fmt.Fprintln(out, "Four agents in one process:")
	reports, err := inOneProcess(ctx)
	if err == nil {
		err = compare(reports, out)
	}
	if err != nil {
		return fmt.Errorf("agents in one process: %w", err)
	}
	if group == "" {
		port, err := freePort()
		if err != nil {
			return err
		}
		group = groupOn(port)
	}
	fmt.Fprintf(out, "\nFour processes on %s:\n", group)
	reports, err = inProcesses(ctx, group)
	if err == nil {
		err = compare(reports, out)
	}
	if err != nil {
		return fmt.Errorf("processes: %w", err)
	}
	return nil
}

// agent is a knowledge base with a place in a swarm.
type agent struct {
	id         int
	kb         *knowledge.Base
	attachment *knowledge.Attachment
}

// join makes an agent that shares its knowledge over a link. Nothing has to be
// set for that; the zero Sharing is the default.
func join(id int, link transport.Event) (*agent, error) {
	kb := knowledge.New(knowledge.WithID(fmt.Sprint("agent", id)))
	attachment, err := kb.Attach(link, nil)
	if err != nil {
		kb.Close()
		return nil, err
	}
	return &agent{id, kb, attachment}, nil
}

// agree returns what the agent knows, once all have voted for the same one.
func (a *agent) agree(ctx context.Context) (report, error) {
	// Names with a dot in front stay here. All others that an evaluation changes
	// are sent when it ends, in one message.
	if err := a.kb.Set(".id", karl.Int(int64(a.id))); err != nil {
		return report{}, err
	}
	if _, err := a.kb.Evaluate("agent.{.id}.charge = 40 + 17 * .id % 50; agent.{.id}.ready = 1", nil); err != nil {
		return report{}, err
	}
	if err := a.until(ctx, "agent.1.ready && agent.2.ready && agent.3.ready && agent.4.ready"); err != nil {
		return report{}, err
	}
	if _, err := a.kb.Evaluate(vote, nil); err != nil {
		return report{}, err
	}
	err := a.until(ctx, "agent.1.vote && agent.1.vote == agent.2.vote && agent.2.vote == agent.3.vote && agent.3.vote == agent.4.vote")
	if err != nil {
		return report{}, err
	}
	var view strings.Builder
	for name, r := range a.kb.All("agent.") {
		fmt.Fprintf(&view, "%s=%v ", name, r.Value)
	}
	return report{a.kb.ID(), strings.TrimSpace(view.String()), a.attachment.Stats().String()}, nil
}

// until waits until a condition is true. A datagram may be lost, so what is
// ours is sent again now and then.
func (a *agent) until(ctx context.Context, condition string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		_, err := a.kb.Wait(ctx, condition, &knowledge.WaitSettings{Timeout: patrol})
		if errors.Is(err, knowledge.ErrTimeout) && ctx.Err() == nil {
			err = a.kb.Resend(ctx, knowledge.Own)
			if err == nil {
				continue
			}
		}
		if err != nil {
			known := a.kb.Expand("charges {agent.1.charge} {agent.2.charge} {agent.3.charge} {agent.4.charge}")
			return fmt.Errorf("agent %d waits for %s, and knows %s: %w (%v)", a.id, condition, known, err, a.attachment.Stats())
		}
		return nil
	}
}

// report is what an agent has to say in the end.
type report struct{ ID, View, Traffic string }

// compare prints what the agents know, and is an error if they differ.
func compare(reports []report, out io.Writer) error {
	for _, r := range reports {
		fmt.Fprintf(out, "  %s knows %s\n         %s\n", r.ID, r.View, r.Traffic)
	}
	for _, r := range reports[1:] {
		if r.View != reports[0].View {
			return fmt.Errorf("%s and %s know different things", reports[0].ID, r.ID)
		}
	}
	fmt.Fprintln(out, "All know the same.")
	return nil
}

// inOneProcess runs a swarm of goroutines.
func inOneProcess(ctx context.Context) ([]report, error) {
	network := inproc.New()
	reports := make([]report, agents)
	everybody, ctx := errgroup.WithContext(ctx)
	for i := range agents {
		link, err := network.Open(nil)
		if err != nil {
			return nil, err
		}
		defer link.Close() // after the base
		a, err := join(i+1, link)
		if err != nil {
			return nil, err
		}
		defer a.kb.Close()
		everybody.Go(func() (err error) {
			reports[i], err = a.agree(ctx)
			return err
		})
	}
	return reports, everybody.Wait()
}
