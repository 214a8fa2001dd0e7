// Package transport is how bytes travel between programs: [Event] publishes
// messages to whoever subscribes and may drop some, [Control] asks one program a
// question and gets an answer in time or an error. The packages below it are the
// links: transport/inproc within a process, transport/unix between processes of a
// host, transport/tcp and transport/udp between hosts; udp has no Control. A
// knowledge base is attached to an Event with knowledge.Base.Attach.
//
//	link, err := udp.Multicast("239.255.0.1:4150", nil)
//	…
//	defer link.Close()
//	attachment, err := kb.Attach(link, nil)
//
// Nothing here knows about variables or the language.
package transport

import (
	"context"
	"net/netip"
	"time"
)

// Event is publish and subscribe over one link. Messages may be lost, doubled
// and overtaken, as the link has it; what is dropped on this side is counted.
// All methods may be called by many goroutines.
type Event interface {
	// Publish copies payload, hands it to the link and returns; it never waits
	// for a subscriber or a full buffer: that is a counted drop. The sequence
	// counts the messages published here from 1, dropped ones too; 0 where the
	// link carries none. The errors are local: ErrClosed, ErrTooLarge, ErrTopic,
	// *net.OpError.
	Publish(topic string, payload []byte) (sequence uint64, err error)

	// Subscribe runs handle for each message of a topic, one after the other, fed
	// by a ring of o.Depth messages: a slow handler loses only its own. While it
	// is quick and the topic's only one, it runs on the goroutine that reads from
	// the link; should it not return, the others wait for a tenth of a second at
	// most, once, and from then on it has a goroutine of its own.
	// Where the link tells topics apart, each * in topic stands for any text, and
	// messages are not published to topics with one. Over connections a process
	// subscribes to 4,096 topics at most, patterns save many. A panic of handle is
	// not recovered. o may be nil. The errors are ErrClosed, ErrTopic and
	// ErrSettings.
	Subscribe(topic string, o *SubscribeOptions, handle func(*Message)) (Subscription, error)

	// Ready waits until the topic has so many subscribers, and returns nil at
	// once where the link cannot know.
	Ready(ctx context.Context, topic string, subscribers int) error

	// Topics reports whether the link tells topics apart. Where it does not, the
	// only topic is "".
	Topics() bool

	// MaxPayload is the longest payload in bytes, without what the Sealer adds.
	MaxPayload() int

	// Stats returns what was counted since the link was opened.
	Stats() Stats

	// Close closes the subscriptions, waits for handlers that run, and frees the
	// port. It may be called again. A handler must not call it: that panics.
	Close() error
}

// Message is one message that arrived. Everything in it may be read until the
// handler returns; copy what must live longer.
type Message struct {
	Topic    string        // "" where the link has no topics
	Payload  []byte        // not to be written to
	Source   string        // "ip:port", "unix:pid/uid", "inproc:n"; a claim unless Sealed
	Session  uint64        // of the publisher, 0 where the link has none
	Sequence uint64        // within the session, 0 where the link has none
	Arrived  time.Duration // by the host's monotonic clock, taken at the socket
	Sealed   bool          // opened by a Sealer
}

// Subscription is one handler of an Event.
type Subscription interface {
	Stats() SubscriptionStats

	// Close ends it: after Close no handler runs. It may be called again. The
	// handler itself must not call it: that panics.
	Close() error
}

// SubscribeOptions is how a subscription keeps messages that its handler has not
// come to. The zero value is the default.
type SubscribeOptions struct {
	Depth  int    // messages; 0 is 256, at most 65,536
	Policy Policy // what happens when there are more

	// Refused, unless nil, is told of each datagram that the Sealer does not open,
	// whatever its topic, by the goroutine that reads, which waits for it. It must
	// not use the Event, and does not run any more once Close has returned.
	Refused func(source string, err error)
}

// The depths of a subscription's ring.
const (
	DefaultDepth = 256
	MaxDepth     = 65_536
)

// Policy is what a full ring does with another message.
type Policy uint8

// The policies.
const (
	DropOldest Policy = iota // the oldest message makes room
	DropNewest               // the new one is dropped
	KeepLast                 // only the newest message is kept at all
)

// SubscriptionStats is what a subscription counted.
type SubscriptionStats struct {
	Delivered uint64 // messages that the handler returned from
	Dropped   uint64 // pushed out of the ring, or not let in
	Waiting   int    // in the ring now
}

// Peers is implemented by links to a list of peers.
type Peers interface {
	// SetPeers replaces the peers that messages are sent to.
	SetPeers([]netip.AddrPort) error
}
