package tcp_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/tcp"
)

// A gateway answers what a controller asks, in time or with an error.
func ExampleNewControl() {
	gateway, err := tcp.NewControl("127.0.0.1:0", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gateway.Close()
	gateway.Serve("stop", nil, func(ctx context.Context, r *transport.Request) ([]byte, error) {
		if string(r.Payload) == "tail" {
			return nil, errors.New("it has no tail")
		}
		return []byte(string(r.Payload) + " stopped"), nil
	})

	controller, err := tcp.NewControl("", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer controller.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	target := gateway.LocalAddr().String()
	answer, err := controller.Call(ctx, target, "stop", []byte("arm"), &transport.CallOptions{Priority: transport.Urgent})
	fmt.Println(string(answer), err)
	_, err = controller.Call(ctx, target, "stop", []byte("tail"), nil)
	var remote *transport.RemoteError
	fmt.Println(errors.As(err, &remote), remote.Message)
	_, err = controller.Call(ctx, target, "dance", nil, nil)
	fmt.Println(errors.Is(err, transport.ErrMethod))
	// Output:
	// arm stopped <nil>
	// true it has no tail
	// true
}

// Peers connect to a listening Event, and hear what it publishes on the topics
// that they subscribe to.
func ExampleNewEvent() {
	arm, err := tcp.NewEvent("127.0.0.1:0", nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer arm.Close()
	display, err := tcp.NewEvent("", []string{arm.LocalAddr().String()}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer display.Close()
	heard := make(chan string)
	display.Subscribe("arm/*", nil, func(m *transport.Message) { heard <- fmt.Sprintf("%s: %s", m.Topic, m.Payload) })

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := arm.Ready(ctx, "arm/angle", 1); err != nil {
		fmt.Println(err)
		return
	}
	arm.Publish("arm/angle", []byte("0.5"))
	fmt.Println(<-heard)
	// Output: arm/angle: 0.5
}
