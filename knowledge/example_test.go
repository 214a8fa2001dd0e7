package knowledge_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
	"github.com/madara-go/madara/transport/inproc"
)

func Example() {
	kb := knowledge.New()
	defer kb.Close()
	kb.Set("battery", karl.Float(34.5))
	kb.Define("distance", func(c *knowledge.Call) (karl.Value, error) {
		return karl.Float(math.Hypot(c.Arg(0).Float(), c.Arg(1).Float())), nil
	})
	rules, _ := kb.Compile("far = distance(x, y) > 4; (battery < 40 && far) => goal = 'charger {.n}'")
	kb.Evaluate("x = 3; y = 4; .n = 7", nil)
	rules.Evaluate(nil)
	fmt.Println(kb.Get("goal"), "|", kb.Expand("at {x}, {y}: {far}"))
	// Output: charger {.n} | at 3, 4: 1
}

func ExampleBase_Wait() {
	kb := knowledge.New()
	defer kb.Close()
	go func() {
		time.Sleep(10 * time.Millisecond)
		kb.Evaluate("peer.1.ready = 1; peer.2.ready = 1", nil)
	}()
	v, err := kb.Wait(context.Background(), "peer.1.ready && peer.2.ready", &knowledge.WaitSettings{Timeout: time.Minute})
	fmt.Println(v, err)
	// Output: 1 <nil>
}

func ExampleBase_Await() {
	kb := knowledge.New()
	defer kb.Close()
	go kb.Set("speed", karl.Int(3))
	err := kb.Await(context.Background(), func(g knowledge.Guard) (bool, error) {
		return g.Get("speed").Int() > 2, nil
	})
	fmt.Println(kb.Get("speed"), err)
	// Output: 3 <nil>
}

func ExampleGuard() {
	kb := knowledge.New()
	defer kb.Close()
	// One step of a control loop under one hold of the lock.
	step := func(g knowledge.Guard) error {
		if err := g.Set("pose", karl.Floats([]float64{1, 2})); err != nil {
			return err
		}
		_, err := g.Evaluate("near = pose[0] < 3; near => speed = 0.5", nil)
		return err
	}
	fmt.Println(kb.Update(step), kb.Get("speed"))
	// Output: <nil> 0.500000
}

func ExampleExpression() {
	kb := knowledge.New()
	defer kb.Close()
	e, _ := kb.Compile("++count; total += count * 2")
	for range 3 {
		e.Evaluate(nil)
	}
	fmt.Println(kb.Get("total"), e.Reads(), e.Writes(), e.Pure())
	// Output: 12 [count total] [count total] false
}

func ExampleVar() {
	kb := knowledge.New()
	defer kb.Close()
	battery := knowledge.NewVar[float64](kb, "battery")
	battery.Set(80)
	battery.Add(-0.5)
	fmt.Println(battery.Get(), battery.Peek(), kb.Get("battery"))
	// Output: 79.5 79.5 79.500000
}

func ExampleEvalError() {
	kb := knowledge.New()
	defer kb.Close()
	_, err := kb.Evaluate("x = 1;\ny = averge(x)", nil)
	if failed, ok := err.(*knowledge.EvalError); ok {
		fmt.Println(failed)
		fmt.Println(failed.Snippet())
	}
	// Output:
	// 2:5: function "averge" is not defined
	// y = averge(x)
	//     ^^^^^^^^^
}

func ExampleWithSink() {
	kb := knowledge.New(knowledge.WithSink(func(clock uint64, updates []knowledge.Update) {
		for _, u := range updates {
			fmt.Println(clock, u.Name, u.Value)
		}
	}))
	defer kb.Close()
	kb.Set("a", karl.Int(1))                      // marks
	kb.Evaluate("b = a + 1; .local = 5; b", nil)  // sends
	kb.Evaluate("a", nil)                         // nothing to send
	kb.Evaluate("++b", &knowledge.EvalSettings{}) // sends again, one tick of the clock later
	// Output:
	// 0 a 1
	// 0 b 2
	// 1 b 3
}

func ExampleBase_All() {
	kb := knowledge.New()
	defer kb.Close()
	kb.Evaluate("agent.2.x = 5; agent.1.x = 4; other = 1", nil)
	for name, r := range kb.All("agent.") {
		fmt.Println(name, r.Value, r.Clock)
	}
	// Output:
	// agent.1.x 4 0
	// agent.2.x 5 0
}

func ExampleEvalSettings() {
	kb := knowledge.New(knowledge.WithOutput(os.Stdout))
	defer kb.Close()
	_, err := kb.Evaluate(".i[0->1000000000)(++n)", &knowledge.EvalSettings{
		MaxSteps: 1000,
		After:    "never printed, because the program fails",
	})
	fmt.Println(err)
	// Output: 1:1: stopped after 1000 steps
}

func ExampleBase_Watch() {
	kb := knowledge.New()
	defer kb.Close()
	kb.Set("agent.1.ready", karl.Int(1))
	for c := range kb.Watch(context.Background(), "agent.*") {
		switch c.Kind {
		case knowledge.Current:
			fmt.Println("that is all for now")
			go kb.Set("agent.2.ready", karl.Int(1))
		case knowledge.Set:
			fmt.Println(c.Name, c.Record.Value)
		}
		if c.Name == "agent.2.ready" {
			break
		}
	}
	// Output:
	// agent.1.ready 1
	// that is all for now
	// agent.2.ready 1
}

func ExampleWithHistory() {
	kb := knowledge.New(knowledge.WithHistory("pose", 2))
	defer kb.Close()
	kb.Evaluate(".i[0->5)(pose = .i * 10)", nil)
	for _, r := range kb.History("pose") {
		fmt.Println(r.Value)
	}
	// Output:
	// 30
	// 40
}

// One process serves its base, another reads, writes and waits.
func ExampleBase_Serve() {
	network := inproc.New() // or tcp.NewControl, unix.NewControl
	robot, _ := network.OpenControl("robot", nil)
	panel, _ := network.OpenControl("panel", nil)
	defer robot.Close()
	defer panel.Close()

	kb := knowledge.New()
	defer kb.Close()
	kb.Set("battery", karl.Float(80))
	kb.Serve(robot, &knowledge.Rules{Set: []string{"goal."}})

	ctx := context.Background()
	remote := knowledge.Dial(panel, "robot")
	battery, _ := remote.Get(ctx, "battery")
	fmt.Println(battery.Float(), remote.Set(ctx, "goal.x", karl.Int(3)), kb.Get("goal.x"))
	fmt.Println(errors.Is(remote.Set(ctx, "battery", karl.Int(0)), knowledge.ErrAccess))
	// Output:
	// 80 <nil> 3
	// true
}
