package transport

import (
	"fmt"
	"strings"
)

// Stats is what a link, or a base's attachment to one, counted since it was
// opened. It is a copy.
type Stats struct {
	Sent          uint64 // messages handed to the link, by attachments; datagrams, by links
	SentBytes     uint64
	Received      uint64 // datagrams
	ReceivedBytes uint64
	Drops         [Drops]uint64 // by [Drop]

	// Where messages carry sequences: how many are missing between those that
	// came, came late, and came twice.
	Gaps, Reordered, Duplicates uint64

	Peers   int    // connected now, on links that connect
	Calls   uint64 // made by Control.Call
	Served  uint64 // requests that a handler answered
	Pending int    // calls that wait for their response now
}

// Dropped returns the sum of all drops.
func (s *Stats) Dropped() uint64 {
	var n uint64
	for _, d := range s.Drops {
		n += d
	}
	return n
}

// String returns the counters on one line, drops only where there are any.
func (s Stats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "sent %d (%d bytes) received %d (%d bytes)", s.Sent, s.SentBytes, s.Received, s.ReceivedBytes)
	for d, n := range s.Drops {
		if n > 0 {
			fmt.Fprintf(&b, " %v %d", Drop(d), n)
		}
	}
	for _, c := range []struct {
		name string
		n    uint64
	}{
		{"gaps", s.Gaps}, {"reordered", s.Reordered}, {"duplicates", s.Duplicates}, {"peers", uint64(s.Peers)},
		{"calls", s.Calls}, {"served", s.Served}, {"pending", uint64(s.Pending)},
	} {
		if c.n > 0 {
			fmt.Fprintf(&b, " %s %d", c.name, c.n)
		}
	}
	return b.String()
}

// Drop is a reason why a message, or part of one, went no further.
type Drop uint8

// The reasons, in the order of a message's life.
const (
	DropNoSending    Drop = iota // send: Settings.NoSending, or Sharing says so
	DropSendLimit                // send: a limit of rate or bandwidth
	DropSimulated                // send: drop simulation
	DropSendBuffer               // send: the socket's buffer was full
	DropSendError                // send: the system refused it
	DropSeal                     // send: the Sealer failed
	DropEncode                   // send: a filter failed, or the message is too large
	DropKernel                   // socket: the system's queue overflowed
	DropRead                     // socket: reading failed
	DropOpen                     // open: the Sealer refused it
	DropUnknownKey               // open: not sealed, or with a key that is not known
	DropForged                   // open: forged, or changed on the way
	DropReplayed                 // open: came before
	DropInbox                    // inbox: the subscription's ring was full
	DropNotKaRL                  // header: too short, or not one of ours
	DropSize                     // header: the size is not the datagram's
	DropEcho                     // header: our own
	DropUntrusted                // header: the endpoint or originator is not trusted
	DropDomain                   // header: of a domain that is not read
	DropDeadline                 // header: too old
	DropReduced                  // header: reduced, where identities are checked
	DropClock                    // header: the clock is too far ahead
	DropFragment                 // fragment: contradicts itself or others
	DropFragmentOld              // fragment: the rest did not come in time
	DropFragmentFull             // fragment: no room to keep it
	DropDecode                   // filter: could not be decoded
	DropRecord                   // record: malformed; those before it were applied
	DropName                     // record: a name that the network may not write
	DropFiltered                 // record: a filter took it away
	DropQuality                  // record: of less quality than what is there
	DropStale                    // record: older than what is there
	DropLimit                    // record: no room for another variable
	DropRebroadcast              // rebroadcast: refused or seen before
	DropFrame                    // stream: what came is not this protocol, the connection was closed
	DropPeer                     // stream: no room for another peer, or it may not connect
	DropBusy                     // call: refused for lack of room
	DropExpired                  // call: its time was over before a handler ran
	DropLate                     // call: the response came after the caller had left
	DropPanic                    // call: the handler panicked

	Drops = iota // the number of reasons
)

var drops = [Drops]struct{ stage, reason string }{
	DropNoSending:    {"send", "off"},
	DropSendLimit:    {"send", "limit"},
	DropSimulated:    {"send", "simulated"},
	DropSendBuffer:   {"send", "buffer"},
	DropSendError:    {"send", "error"},
	DropSeal:         {"send", "seal"},
	DropEncode:       {"send", "encode"},
	DropKernel:       {"socket", "overflow"},
	DropRead:         {"socket", "error"},
	DropOpen:         {"open", "refused"},
	DropUnknownKey:   {"open", "key"},
	DropForged:       {"open", "forged"},
	DropReplayed:     {"open", "replayed"},
	DropInbox:        {"inbox", "full"},
	DropNotKaRL:      {"header", "foreign"},
	DropSize:         {"header", "size"},
	DropEcho:         {"header", "echo"},
	DropUntrusted:    {"header", "untrusted"},
	DropDomain:       {"header", "domain"},
	DropDeadline:     {"header", "deadline"},
	DropReduced:      {"header", "reduced"},
	DropClock:        {"header", "clock"},
	DropFragment:     {"fragment", "malformed"},
	DropFragmentOld:  {"fragment", "expired"},
	DropFragmentFull: {"fragment", "full"},
	DropDecode:       {"filter", "decode"},
	DropRecord:       {"record", "malformed"},
	DropName:         {"record", "name"},
	DropFiltered:     {"record", "filtered"},
	DropQuality:      {"record", "quality"},
	DropStale:        {"record", "stale"},
	DropLimit:        {"record", "limit"},
	DropRebroadcast:  {"rebroadcast", "refused"},
	DropFrame:        {"stream", "malformed"},
	DropPeer:         {"stream", "refused"},
	DropBusy:         {"call", "busy"},
	DropExpired:      {"call", "expired"},
	DropLate:         {"call", "late"},
	DropPanic:        {"call", "panic"},
}

// Stage returns where a message was dropped: send, socket, open, inbox, header,
// fragment, filter, record, rebroadcast, stream or call.
func (d Drop) Stage() string {
	if int(d) < len(drops) {
		return drops[d].stage
	}
	return "unknown"
}

// String returns stage and reason, "header.echo".
func (d Drop) String() string {
	if int(d) < len(drops) {
		return drops[d].stage + "." + drops[d].reason
	}
	return fmt.Sprintf("Drop(%d)", uint8(d))
}
