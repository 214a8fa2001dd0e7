package knowledge

import "math/rand/v2"

// dropper is drop simulation: it says which messages are not sent. MADARA knows it
// as PacketScheduler.
type dropper struct {
	rate   float64 // of the messages that begin a burst, of those outside one
	burst  int     // messages that are dropped in a row
	evenly bool
	left   int // of the burst

	// Evenly, dropping and sending take turns by their strides: whose next turn is
	// due first has it, dropping where both are.
	drop, send turns
}

type turns struct{ next, stride int64 }

func newTurns(rate float64) turns {
	stride := 150_000_000 / max(1, int64(1e6*rate))
	return turns{stride, stride}
}

func newDropper(s *Sharing) dropper {
	b := float64(s.DropBurst)
	// Where a burst begins with the chance r, b of every b + (1-r)/r messages go.
	r := s.DropRate / (b - s.DropRate*(b-1))
	return dropper{rate: r, burst: s.DropBurst, evenly: s.DropEvenly, drop: newTurns(r), send: newTurns(1 - r)}
}

// drops reports whether the next message is dropped.
func (d *dropper) drops() bool {
	switch {
	case d.left > 0:
		d.left--
		return true
	case d.begins():
		d.left = d.burst - 1
		return true
	}
	return false
}

func (d *dropper) begins() bool {
	switch {
	case d.rate <= 0, d.rate >= 1:
		return d.rate > 0
	case !d.evenly:
		return rand.Float64() < d.rate
	case d.drop.next <= d.send.next:
		d.drop.next += d.drop.stride
		return true
	}
	d.send.next += d.send.stride
	return false
}
