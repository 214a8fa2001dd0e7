package knowledge_test

import (
	"context"
	"fmt"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
	"github.com/madara-go/madara/transport/inproc"
)

func ExampleBase_Attach() {
	network := inproc.New()
	a, b := knowledge.New(), knowledge.New()
	defer a.Close()
	defer b.Close()
	for _, kb := range []*knowledge.Base{a, b} {
		link, err := network.Open(nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer link.Close()
		if _, err := kb.Attach(link, nil); err != nil {
			fmt.Println(err)
			return
		}
	}
	a.Evaluate("agent.1.pose = [3, 4]; .private = 1", nil)
	v, err := b.Wait(context.Background(), "agent.1.pose[1] == 4", nil)
	fmt.Println(v, err, b.Get("agent.1.pose"), b.Get(".private").Exists())
	// Output: 1 <nil> 3, 4 false
}

func ExampleSharing() {
	// Only what is called agent.* leaves, and what arrives is never a file.
	sharing := &knowledge.Sharing{
		Domain: "rescue",
		SendFilters: []knowledge.RecordFilter{
			func(c *knowledge.FilterContext, name string, v karl.Value) (karl.Value, bool) {
				return v, len(name) > 6 && name[:6] == "agent."
			},
		},
		ReceiveFilters: []knowledge.RecordFilter{
			func(c *knowledge.FilterContext, name string, v karl.Value) (karl.Value, bool) {
				return v, !v.Kind().IsFile()
			},
		},
		OnData: "++.messages",
	}
	fmt.Println(sharing.Validate())
	// Output: <nil>
}

func ExampleBase_Resend() {
	network := inproc.New()
	link, _ := network.Open(nil)
	defer link.Close()
	kb := knowledge.New()
	defer kb.Close()
	kb.Attach(link, nil)
	kb.Evaluate("mine = 1", nil)
	fmt.Println(kb.Resend(context.Background(), knowledge.Own))
	// Output: <nil>
}
