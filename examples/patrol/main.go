// Command patrol is a robot that walks its rounds: a control loop whose
// decisions are rules in KaRL, over sensors that are simulated in Go.
//
// Each turn the program reads the sensors into the knowledge base, lets the
// rules decide, and drives the motors by what they decided. The rules call two
// Go functions. Before it sets off, the robot waits until its self-test has run
// for a while; in the end it prints all it knows.
//
//	go run ./examples/patrol
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
)

//go:embed rules.karl
var rules string

func main() {
	log.SetFlags(0)
	selfTest := flag.Duration("wait", time.Second, "how long the self-test before the rounds takes")
	turns := flag.Int("turns", 400, "the most turns of the control loop")
	flag.Parse()
	if err := run(*selfTest, *turns); err != nil {
		log.Fatal(err)
	}
}

func run(selfTest time.Duration, turns int) error {
	kb := knowledge.New(knowledge.WithID("patrol"), knowledge.WithOutput(os.Stdout))
	defer kb.Close()

	// Functions that the rules call. They run under the base's lock and use the
	// Guard that comes with the call.
	if err := kb.Define("distance", distance); err != nil {
		return err
	}
	if err := kb.Define("alarm", alarm); err != nil {
		return err
	}

	// The timed wait: an expression that is never true but counts how often it is
	// evaluated, every millisecond until the time is over. Give it ten seconds
	// (-wait 10s), and a machine with nothing else to do makes ten thousand of it.
	_, err := kb.Wait(context.Background(), "++.count && 0", &knowledge.WaitSettings{
		EvalSettings: knowledge.EvalSettings{
			Before: fmt.Sprintf("WAIT STARTED: Waiting for %v seconds.\n", selfTest.Seconds()),
			After:  "WAIT ENDED: Number of executed waits was {.count}.\n",
		},
		Poll:    time.Millisecond,
		Timeout: selfTest,
	})
	if !errors.Is(err, knowledge.ErrTimeout) {
		return err
	}

	rules, err := kb.Compile(rules)
	if err != nil {
		return err
	}
	robot := newRobot(kb)
	for turn := range turns {
		robot.sense(turn)
		if _, err := rules.Evaluate(nil); err != nil {
			return err
		}
		if robot.act() {
			break
		}
	}
	fmt.Println("\nWhat the robot knows:")
	_, err = kb.WriteTo(os.Stdout)
	return err
}

// robot is the hardware, simulated: a position, a battery and an obstacle in
// the way. Its Vars are the knowledge base's variables under Go types.
type robot struct {
	x, y, heading float64

	pose     *knowledge.Var[[]float64]
	battery  *knowledge.Var[float64]
	obstacle *knowledge.Var[bool]
	speed    *knowledge.Var[float64]
	home     *knowledge.Var[bool]
	target   *knowledge.Var[[]float64]
}

func newRobot(kb *knowledge.Base) *robot {
	r := &robot{
		pose:     knowledge.NewVar[[]float64](kb, "pose"),
		battery:  knowledge.NewVar[float64](kb, "battery"),
		obstacle: knowledge.NewVar[bool](kb, ".obstacle"),
		speed:    knowledge.NewVar[float64](kb, "speed"),
		home:     knowledge.NewVar[bool](kb, "home"),
		target:   knowledge.NewVar[[]float64](kb, "target"),
	}
	r.battery.Set(100)
	return r
}

// sense writes what the sensors say.
func (r *robot) sense(turn int) {
	r.pose.Set([]float64{r.x, r.y})
	r.obstacle.Set(turn >= 60 && turn < 70)
}

// act moves the robot as the rules decided, and reports whether it is home again.
func (r *robot) act() bool {
	speed, target := r.speed.Get(), r.target.Get()
	if len(target) == 2 {
		r.heading = math.Atan2(target[1]-r.y, target[0]-r.x)
		step := min(speed, math.Hypot(target[0]-r.x, target[1]-r.y))
		r.x += step * math.Cos(r.heading)
		r.y += step * math.Sin(r.heading)
	}
	r.battery.Set(max(0, r.battery.Get()-0.1-0.4*speed))
	return r.home.Get()
}

// distance(x, y) is how far the robot is from a point.
func distance(c *knowledge.Call) (karl.Value, error) {
	if len(c.Args) != 2 {
		return karl.Value{}, fmt.Errorf("distance takes a point as two numbers, not %d arguments", len(c.Args))
	}
	pose := c.Guard.Get("pose").AsFloats()
	if len(pose) != 2 {
		return karl.Value{}, errors.New("pose is not known")
	}
	return karl.Float(math.Hypot(c.Args[0].Float()-pose[0], c.Args[1].Float()-pose[1])), nil
}

// alarm(text) tells a person.
func alarm(c *knowledge.Call) (karl.Value, error) {
	c.Guard.Print(fmt.Sprintf("turn {.turn}: %s (battery {battery})\n", c.Arg(0)))
	return karl.Int(1), nil
}
