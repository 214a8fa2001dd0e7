package udp_test

import (
	"fmt"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/udp"
)

func ExampleUnicast() {
	b, err := udp.Unicast("127.0.0.1:0", nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	a, err := udp.Unicast("127.0.0.1:0", []string{b.LocalAddr().String()}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	got := make(chan string)
	b.Subscribe("", nil, func(m *transport.Message) { got <- string(m.Payload) })
	a.Publish("", []byte("hello"))
	fmt.Println(<-got)
	// Output: hello
}

func ExampleMulticast() {
	link, err := udp.Multicast("239.255.0.1:4150", &transport.Settings{TTL: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer link.Close()
	fmt.Println(link.MaxPayload())
	// Output: 65507
}
