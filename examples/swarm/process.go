package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/udp"
)

// inProcesses runs a swarm of processes, each this program as one agent.
func inProcesses(ctx context.Context, group string) ([]report, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	reports := make([]report, agents)
	everybody, ctx := errgroup.WithContext(ctx)
	release := make(chan struct{}) // closed when all have reported
	var reported sync.WaitGroup
	for i := range agents {
		c := exec.CommandContext(ctx, program, "-agent", fmt.Sprint(i+1), "-group", group)
		c.Stderr = os.Stderr
		in, err := c.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := c.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := c.Start(); err != nil {
			return nil, err
		}
		reported.Add(1)
		everybody.Go(func() error {
			err := json.NewDecoder(out).Decode(&reports[i])
			reported.Done()
			<-release
			in.Close() // it leaves then
			if failed := c.Wait(); failed != nil {
				return fmt.Errorf("agent %d: %w", i+1, failed)
			}
			return err
		})
	}
	reported.Wait()
	close(release)
	return reports, everybody.Wait()
}

// process is one agent of a swarm of processes. It stays until its input ends,
// because others may need what it knows.
func process(ctx context.Context, id int, group string, in io.Reader, out io.Writer) error {
	link, err := udp.Multicast(group, &transport.Settings{Interface: loopback()})
	if err != nil {
		return err
	}
	defer link.Close()
	a, err := join(id, link)
	if err != nil {
		return err
	}
	defer a.kb.Close()
	r, err := a.agree(ctx)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(r); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// loopback returns the name of the loopback interface, "" if there is none: then
// the system chooses.
func loopback() string {
	faces, err := net.Interfaces()
	if err != nil {
		return ""
	}
	for _, face := range faces {
		if face.Flags&net.FlagLoopback != 0 && face.Flags&net.FlagUp != 0 {
			return face.Name
		}
	}
	return ""
}

// groupOn returns a multicast group for a port.
func groupOn(port int) string { return fmt.Sprint("239.255.0.1:", port) }

// freePort returns a port that nobody uses.
func freePort() (int, error) {
	conn, err := net.ListenUDP("udp4", nil)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).Port, nil
}
