package knowledge

import (
	"errors"
	"fmt"
	"github.com/madara-go/madara/knowledge/internal/store"
	"math"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/wire"
)

// Sharing is how a base shares over one transport: everything that needs a
// message's header or a value. The zero value, and a nil pointer, is the default.
// [Base.Attach] copies it. The names in parentheses are MADARA's.
type Sharing struct {
	// Domain names the group of agents that messages are for; "" is "KaRL". At
	// most 31 bytes (write_domain).
	Domain string
	// ReadDomains are the domains that are listened to; none means Domain.
	ReadDomains []string

	// TTL lets peers send our messages on, TTL - 1 times (rebroadcast_ttl).
	TTL uint8
	// ParticipantTTL lets this base send the messages of others on: of those
	// whose TTL is not greater. 0 sends none on (enable_participant_ttl).
	ParticipantTTL uint8

	// Trusted peers, unless empty, are the only ones that are heard; Banned ones
	// are not, where Trusted is empty. A peer is an endpoint "ip:port" or an
	// originator, and a message is heard if both of its are. Names are claims
	// unless the transport has a Sealer. Where there are any, reduced headers, which
	// name no originator, are refused unless Reduced or Compat: then the endpoint
	// alone counts.
	Trusted, Banned []string

	// Deadline drops messages older than this, by the monotonic clock of the
	// host, so only between processes of one host. 0 is none (deadline, there in
	// nanoseconds though it says seconds).
	Deadline time.Duration

	// SendLimit and TotalLimit bound bytes per second, over ten seconds, that
	// this attachment sends, and sends and receives; what is above is dropped and
	// counted. 0 is no limit.
	SendLimit, TotalLimit int

	// MaxClockJump bounds how far messages raise the base's clock above its own, all
	// together within ten seconds; a message that would raise it further is dropped,
	// counted and logged. Otherwise one message could end all later ones of others.
	// 0 is 2^40, more than an agent sends in its life; with Compat there is no bound.
	MaxClockJump uint64

	// Qualities are the highest qualities that originators may claim, "" for those
	// that are not named; higher claims count as these. nil bounds nothing.
	Qualities map[string]uint32

	// MaxVariables bounds how many names messages may make; 0 is half of
	// Limits.Variables.
	MaxVariables int

	// DropRate drops this part of what is sent and sent on, 0 to 1, for tests on a
	// link that is too good, DropBurst so many in a row, 0 means 1: at random, or
	// with DropEvenly as regularly as the rate allows, the same each time. A round
	// of changes is dropped whole (packet_drop_rate, packet_drop_burst and
	// packet_drop_type, there with other rates than asked for where there are
	// bursts).
	DropRate   float64
	DropBurst  int
	DropEvenly bool

	// Reduced sends the short header, without domain, originator and quality.
	// Peers in C++ hear such messages from 141 bytes on only.
	Reduced bool

	// FragmentSize is how much of a message one fragment carries, in bytes: 0 is
	// 62,000, at least 256; less if the link cannot (max_fragment_size).
	FragmentSize int
	// MaxMessage bounds messages both ways, in bytes: 0 is 500,000, at most 64 MiB
	// (queue_length). What is to be sent is split into several; a single variable
	// that is larger is an error.
	MaxMessage int
	// MaxFragments bounds the memory of fragments that wait for the rest of their
	// message, in bytes: 0 is 16 MiB, or four times MaxMessage if that is more. One
	// source may fill a quarter of it, or what a message of the greatest length
	// needs. They wait for two seconds.
	MaxFragments int

	// SendHistory sends all values that a variable with history had since the
	// last message, instead of the newest only.
	SendHistory bool

	// Tie says which of two values with the same clock and quality wins.
	Tie TieRule

	// Filters change whole messages, first to last when sending.
	Filters []transport.Filter

	// Record filters are asked about each variable of a message, aggregate
	// filters then about all that are left of it.
	SendFilters, ReceiveFilters, RebroadcastFilters                            []RecordFilter
	SendAggregateFilters, ReceiveAggregateFilters, RebroadcastAggregateFilters []AggregateFilter

	// OnData is a program that is evaluated after each message that was applied,
	// under the same hold of the lock (on_data_received_logic).
	OnData string

	// Depth and Policy are those of the subscription. A message of more fragments
	// than Depth is likely lost where they arrive faster than they are applied.
	Depth  int
	Policy transport.Policy

	NoSending, NoReceiving bool

	// Compat takes what MADARA takes where the default is stricter: names that
	// start with a dot, and headers that claim more bytes than there are.
	Compat bool
}

// TieRule decides between two values with the same clock and quality.
type TieRule uint8

// The rules.
const (
	TieNewcomer TieRule = iota // the one that arrives later, as in MADARA
	TieValue                   // the one whose encoded form is greater, the same everywhere
)

// FilterContext is what a filter may know of a message.
type FilterContext struct {
	Operation  FilterOperation
	Domain     string
	Originator string        // "" of a reduced message
	Source     string        // endpoint of a message that arrived, "" of one to be sent
	Clock      uint64        // of the message
	Quality    uint32        // of the message
	Sent       time.Duration // when it was sent, by the sender's monotonic clock
	Now        time.Duration // by this host's
	Type       uint32        // of the message; see package wire
}

// FilterOperation says what becomes of the message.
type FilterOperation uint8

// The operations.
const (
	Sending FilterOperation = iota + 1
	Receiving
	Rebroadcasting
)

// RecordFilter returns what is to stand in place of a value, and whether the
// variable is to stay in the message. It runs without the base's lock, for one
// message at a time, and may use the base, but Send, Resend and Close panic. What
// a filter of what is sent marks leaves with the next send.
type RecordFilter func(c *FilterContext, name string, v karl.Value) (karl.Value, bool)

// AggregateFilter may add, change and delete the variables of a message. It runs
// as record filters do. It is not called with an empty message, but for one of
// type wire.Register.
type AggregateFilter func(c *FilterContext, variables map[string]karl.Value)

// The bounds of Sharing.
const (
	defaultDomain       = "KaRL"
	defaultFragmentSize = 62_000
	minFragmentSize     = 256
	defaultMaxMessage   = 500_000
	maxMaxMessage       = 64 << 20
	minMaxMessage       = 1024
	defaultClockJump    = 1 << 40
)

// ErrSharing says that a field of Sharing is out of its range.
var ErrSharing = errors.New("sharing setting is out of range")

// Validate returns an error that names a field out of its range. A nil s is valid.
func (s *Sharing) Validate() error {
	if s == nil {
		return nil
	}
	bad := func(field string, value any, allowed string) error {
		return store.Errorf(ErrSharing, "knowledge.Sharing.%s is %v, allowed is %s", field, value, allowed)
	}
	domain := fmt.Sprintf("up to %d bytes without NUL", wire.MaxDomain)
	for _, d := range append([]string{s.Domain}, s.ReadDomains...) {
		if len(d) > wire.MaxDomain || containsNUL(d) {
			return bad("Domain", fmt.Sprintf("%q", d), domain)
		}
	}
	switch {
	case s.Deadline < 0:
		return bad("Deadline", s.Deadline, "0 and above")
	case s.SendLimit < 0:
		return bad("SendLimit", s.SendLimit, "0 and above")
	case s.TotalLimit < 0:
		return bad("TotalLimit", s.TotalLimit, "0 and above")
	case !(s.DropRate >= 0 && s.DropRate <= 1):
		return bad("DropRate", s.DropRate, "0 to 1")
	case s.MaxVariables < 0:
		return bad("MaxVariables", s.MaxVariables, "0 and above")
	case s.DropBurst < 0 || s.DropBurst > 1_000_000:
		return bad("DropBurst", s.DropBurst, "0 to 1,000,000")
	case s.FragmentSize != 0 && (s.FragmentSize < minFragmentSize || s.FragmentSize > maxMaxMessage):
		return bad("FragmentSize", s.FragmentSize, fmt.Sprintf("0, or %d to %d", minFragmentSize, maxMaxMessage))
	case s.MaxMessage != 0 && (s.MaxMessage < minMaxMessage || s.MaxMessage > maxMaxMessage):
		return bad("MaxMessage", s.MaxMessage, fmt.Sprintf("0, or %d to %d", minMaxMessage, maxMaxMessage))
	case s.MaxFragments < 0 || s.MaxFragments > math.MaxInt32:
		return bad("MaxFragments", s.MaxFragments, fmt.Sprintf("0 to %d", math.MaxInt32))
	case s.Tie > TieValue:
		return bad("Tie", s.Tie, "TieNewcomer or TieValue")
	}
	for _, f := range s.Filters {
		if f == nil || len(f.ID()) == 0 || len(f.ID()) > 8 {
			return bad("Filters", f, "filters with an ID of 1 to 8 bytes")
		}
	}
	return nil
}

func containsNUL(s string) bool {
	for i := range len(s) {
		if s[i] == 0 {
			return true
		}
	}
	return false
}

func (s *Sharing) withDefaults() Sharing {
	var d Sharing
	if s != nil {
		d = *s
	}
	if d.Domain == "" {
		d.Domain = defaultDomain
	}
	if len(d.ReadDomains) == 0 {
		d.ReadDomains = []string{d.Domain}
	}
	if d.FragmentSize == 0 {
		d.FragmentSize = defaultFragmentSize
	}
	if d.MaxMessage == 0 {
		d.MaxMessage = defaultMaxMessage
	}
	if d.MaxClockJump == 0 {
		d.MaxClockJump = defaultClockJump
	}
	if d.Compat {
		d.MaxClockJump = math.MaxUint64
	}
	if d.DropBurst == 0 {
		d.DropBurst = 1
	}
	return d
}
