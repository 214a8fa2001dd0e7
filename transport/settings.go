package transport

import (
	"fmt"
	"time"
)

// Settings is how a link works; what concerns variables is knowledge.Sharing.
// The zero value, and a nil pointer, is the default. Links copy it when they
// are opened. The names in parentheses are MADARA's.
type Settings struct {
	// Interface is the network interface for multicast, by name; "" lets the
	// system choose.
	Interface string

	// TTL is how many routers a multicast message may pass: 0 means 1, the local
	// network. At most 255.
	TTL int

	// ReadBuffer and WriteBuffer are the socket's buffers in bytes, raised only if
	// smaller; 0 is 500,000 (queue_length). At most 256 MiB.
	ReadBuffer, WriteBuffer int

	// MaxDatagram is the longest datagram that is sent, in bytes; 0 is 65,507 and
	// that is the most. Received ones may always have that.
	MaxDatagram int

	// MaxPayload is the longest request or response of a Control, in bytes; 0 is
	// 64 MiB. At most 256 MiB.
	MaxPayload int

	// MaxSendRate bounds the datagrams sent per second; those above it are
	// dropped and counted. 0 is no limit (max_send_hertz, which waits).
	MaxSendRate float64

	// Pacing is the least time between two datagrams, at most a second; Publish
	// waits for it (slack_time, which is for fragments only).
	Pacing time.Duration

	Sealer Sealer // unless nil, seals what is sent and opens what arrives

	NoSending   bool // Publish drops everything, counted (no_sending)
	NoReceiving bool // nothing is read (no_receiving)
}

// The bounds of Settings.
const (
	DefaultBuffer   = 500_000
	MaxBuffer       = 256 << 20
	MaxDatagramSize = 65_507
	DefaultPayload  = 64 << 20
	MaxPayloadSize  = 256 << 20
	minDatagramSize = 512
)

// Validate returns an error that names a field out of its range. A nil s is valid.
func (s *Settings) Validate() error {
	if s == nil {
		return nil
	}
	bad := func(field string, value any, allowed string) error {
		return fmt.Errorf("transport.Settings.%s is %v, allowed is %s: %w", field, value, allowed, ErrSettings)
	}
	overhead := 0
	if s.Sealer != nil {
		overhead = s.Sealer.Overhead()
	}
	switch {
	case s.TTL < 0 || s.TTL > 255:
		return bad("TTL", s.TTL, "0 to 255")
	case s.ReadBuffer < 0 || s.ReadBuffer > MaxBuffer:
		return bad("ReadBuffer", s.ReadBuffer, fmt.Sprint("0 to ", MaxBuffer))
	case s.WriteBuffer < 0 || s.WriteBuffer > MaxBuffer:
		return bad("WriteBuffer", s.WriteBuffer, fmt.Sprint("0 to ", MaxBuffer))
	case s.MaxDatagram != 0 && (s.MaxDatagram < minDatagramSize+overhead || s.MaxDatagram > MaxDatagramSize):
		return bad("MaxDatagram", s.MaxDatagram, fmt.Sprintf("0, or %d to %d", minDatagramSize+overhead, MaxDatagramSize))
	case s.MaxPayload < 0 || s.MaxPayload > MaxPayloadSize:
		return bad("MaxPayload", s.MaxPayload, fmt.Sprint("0 to ", MaxPayloadSize))
	case !(s.MaxSendRate >= 0):
		return bad("MaxSendRate", s.MaxSendRate, "0 and above")
	case s.Pacing < 0 || s.Pacing > time.Second:
		return bad("Pacing", s.Pacing, "0 to 1s")
	}
	return nil
}

// WithDefaults returns a copy of s, which may be nil, with the defaults filled in.
func (s *Settings) WithDefaults() Settings {
	var d Settings
	if s != nil {
		d = *s
	}
	if d.TTL == 0 {
		d.TTL = 1
	}
	if d.ReadBuffer == 0 {
		d.ReadBuffer = DefaultBuffer
	}
	if d.WriteBuffer == 0 {
		d.WriteBuffer = DefaultBuffer
	}
	if d.MaxDatagram == 0 {
		d.MaxDatagram = MaxDatagramSize
	}
	if d.MaxPayload == 0 {
		d.MaxPayload = DefaultPayload
	}
	return d
}
