package wire_test

import (
	"fmt"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/transport/wire"
)

func ExampleHeader() {
	h := wire.Header{Domain: []byte("KaRL"), Originator: []byte("agent:1"), Type: wire.MultiAssign, Updates: 1, Clock: 3}
	message := h.Append(nil)
	message = wire.AppendRecord(message, "x", karl.Int(7), 0)
	h.Size = uint64(len(message))
	h.Append(message[:0])

	got, err := wire.ParseHeader(message)
	fmt.Println(got.Kind, got.Size, string(got.Originator), err)
	updates := wire.ReadUpdates(message[got.Len():], got.Updates)
	var r wire.Record
	for updates.Next(&r) {
		fmt.Println(string(r.Name), r.Value)
	}
	fmt.Println(updates.Err())
	// Output:
	// normal 171 agent:1 <nil>
	// x 7
	// <nil>
}
