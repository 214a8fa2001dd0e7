package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/madara-go/madara/transport/wire"
)

// assembly puts fragments together that are in several files.
type assembly struct {
	sets  map[setKey]*fragmentSet
	order []*fragmentSet
}

type setKey struct {
	domain, originator string
	clock              uint64
}

// fragmentSet is the fragments of a message.
type fragmentSet struct {
	files []string
	first wire.Header // of one of them
	parts map[uint32][]byte
	bytes int
	done  bool
}

// checkFragment looks at what a fragment says of itself.
func (m *packet) checkFragment(b []byte) {
	h, length := m.header, len(b)-wire.FragmentSize
	switch {
	case h.Updates == 0 || h.Index >= h.Updates:
		m.fault(b, atIndex, "fragment %d (from 0) of %d; it is dropped", h.Index, h.Updates)
	case h.Total > maxPacket:
		m.fault(b, atTotal, "of a message of %d bytes, at most %d are possible; it is dropped", h.Total, maxPacket)
	case length == 0 || uint64(length) > h.Total:
		m.fault(b, atTotal, "%d bytes of a message of %d; it is dropped", length, h.Total)
	case h.Updates == 1 && uint64(length) != h.Total:
		m.fault(b, atTotal, "the only fragment has %d bytes of a message of %d; it is dropped", length, h.Total)
	case uint64(h.Updates) > h.Total:
		m.fault(b, atUpdates, "%d fragments of a message of %d bytes; it is dropped", h.Updates, h.Total)
	case h.Total > defaultMaxMessage:
		m.note("a message of %d bytes is dropped unless Sharing.MaxMessage, %d by default, is raised", h.Total, defaultMaxMessage)
	}
}

// add takes a datagram and returns the message that is whole with it, or nil.
func (a *assembly) add(m *packet, b []byte) *packet {
	h := m.header
	if h == nil || h.Kind != wire.Fragment || len(m.faults) > 0 {
		return nil
	}
	key := setKey{string(h.Domain), string(h.Originator), h.Clock}
	set, data := a.sets[key], b[wire.FragmentSize:]
	if set == nil || set.done && !bytes.Equal(set.parts[h.Index], data) {
		set = &fragmentSet{first: *h, parts: map[uint32][]byte{}}
		a.sets[key] = set
		a.order = append(a.order, set)
	}
	switch {
	case h.Total != set.first.Total:
		m.fault(b, atTotal, "of a message of %d bytes, where others of clock %d say %d; it is dropped", h.Total, h.Clock, set.first.Total)
		return nil
	case h.Updates != set.first.Updates:
		m.fault(b, atUpdates, "one of %d fragments, where others of clock %d say %d; it is dropped", h.Updates, h.Clock, set.first.Updates)
		return nil
	case set.parts[h.Index] != nil:
		m.note("fragment %d of clock %d was there already", h.Index, h.Clock)
		return nil
	}
	set.parts[h.Index] = data
	set.files = append(set.files, m.files...)
	set.bytes += len(data)
	if len(set.parts) < int(h.Updates) {
		return nil
	}
	set.done = true
	if uint64(set.bytes) != h.Total {
		whole := &packet{files: set.files, bytes: set.bytes}
		whole.fault(b, atTotal, "%d bytes in the fragments of a message of %d; they are dropped", set.bytes, h.Total)
		return whole
	}
	message := make([]byte, 0, set.bytes)
	for i := range h.Updates {
		message = append(message, set.parts[i]...)
	}
	whole := decodePacket(set.files, message)
	whole.message = message
	if whole.header != nil && whole.header.Kind == wire.Fragment {
		whole.fault(message, atID, "a fragment inside of fragments; it is dropped")
	}
	return whole
}

// incomplete returns the messages of which fragments are missing.
func (a *assembly) incomplete() []*packet {
	var list []*packet
	for _, set := range a.order {
		if set.done {
			continue
		}
		missing := int(set.first.Updates) - len(set.parts)
		var names []string
		for i := uint32(0); i < set.first.Updates && len(names) < 10; i++ {
			if set.parts[i] == nil {
				names = append(names, fmt.Sprint(i))
			}
		}
		if more := missing - len(names); more > 0 {
			names = append(names, fmt.Sprintf("and %d more", more))
		}
		m := &packet{files: set.files, bytes: set.bytes}
		m.fault(nil, 0, "%d of %d fragments of the message with clock %d from %q are missing: %s; nothing is applied",
			missing, set.first.Updates, set.first.Clock, set.first.Originator, strings.Join(names, ", "))
		list = append(list, m)
	}
	return list
}
