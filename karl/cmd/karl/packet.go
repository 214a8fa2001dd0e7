package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/wire"
)

type packetCmd struct {
	File []string `arg:"" help:"Files with one datagram each; - is standard input."`
	JSON bool     `name:"json" help:"Print a JSON object a line, for each file and each message put together from fragments."`
	secrets
}

// Validate is called by kong.
func (c *packetCmd) Validate() error { return c.check() }

// Help is shown by kong below the usage.
func (c *packetCmd) Help() string {
	return `A file holds the payload of one UDP datagram: a message, a fragment of one, or what a filter made of one. Fragments are put together across files, in any order. What filters made (ssl, lz4) is decoded with --lz4, --aes-password and --aes-key-file, and sealed datagrams (aead1) are opened with --aead-key-file; without them their headers are shown.

What is wrong is shown with its offset in the file, the value there, and what a knowledge base does about it. A note is about something unusual that is not wrong. The exit code is 1 if a message is bad or a fragment missing, and 5 if a file cannot be read.`
}

// Run is called by kong.
func (c *packetCmd) Run(p *process) error {
	filters, err := c.filters()
	if err != nil {
		return err
	}
	sealer, err := c.sealer()
	if err != nil {
		return err
	}
	var unread []error
	a := assembly{sets: map[setKey]*fragmentSet{}}
	bad, all := 0, 0
	print := func(m *packet) {
		all++
		if len(m.faults) > 0 {
			bad++
		}
		if c.JSON {
			p.out.Write(m.json())
		} else {
			p.out.Write(m.text())
		}
	}
	for _, file := range c.File {
		b, err := p.read(file, maxPacket+1)
		if err == nil && len(b) > maxPacket {
			err = fmt.Errorf("%s: more than %d bytes, which no message has", file, maxPacket)
		}
		if errors.Is(err, errTwice) {
			return fail(exitUsage, err)
		}
		if err != nil {
			unread = append(unread, err)
			continue
		}
		if sealer != nil {
			if b, err = c.open(sealer, file, b, print); err != nil {
				continue
			}
		}
		m := decodePacket([]string{file}, b)
		whole := a.add(m, b)
		c.show(m, b, filters, print)
		if whole != nil {
			c.show(whole, whole.message, filters, print)
		}
	}
	for _, m := range a.incomplete() {
		print(m)
	}
	switch {
	case unread != nil:
		return fail(exitIO, unread...)
	case bad > 0:
		return failf(exitUnreached, "%d of %d messages are bad", bad, all)
	}
	return nil
}

// open opens a sealed datagram, and prints one that cannot be.
func (c *packetCmd) open(sealer transport.Sealer, file string, b []byte, print func(*packet)) ([]byte, error) {
	opened, err := sealer.Open(nil, b)
	if err != nil {
		m := &packet{files: []string{file}, bytes: len(b)}
		m.fault(b, 0, "%v; it is dropped", err)
		print(m)
	}
	return opened, err
}

// show prints a message, and the one that filters made it of.
func (c *packetCmd) show(m *packet, b []byte, filters wire.Chain, print func(*packet)) {
	if m.filter == nil || len(filters) == 0 {
		print(m)
		return
	}
	inner, err := filters.Decode(b, maxPacket)
	if err != nil {
		m.fault(b, atSize, "%v; it is dropped", err)
	}
	print(m)
	if err == nil {
		print(decodePacket(m.files, inner))
	}
}

// maxPacket is the longest message that a knowledge base can be set to, in bytes.
const maxPacket = 64 << 20

// packet is a decoded datagram, or message put together from several.
type packet struct {
	files   []string
	bytes   int
	header  *wire.Header
	filter  *filterHeader
	records []packetRecord
	notes   []string
	faults  []packetFault
	message []byte // what was put together
}

type filterHeader struct {
	id      string
	version string
}

type packetRecord struct {
	offset, bytes int
	wire.Record
}

// packetFault is what is wrong with a message.
type packetFault struct {
	offset  int
	message string
	there   []byte // the bytes at the offset, some of them
}

func (m *packet) note(format string, args ...any) {
	m.notes = append(m.notes, fmt.Sprintf(format, args...))
}

func (m *packet) fault(b []byte, offset int, format string, args ...any) {
	offset = min(offset, len(b))
	there := b[offset:min(len(b), offset+16)]
	m.faults = append(m.faults, packetFault{offset, fmt.Sprintf(format, args...), there})
}

// The offsets of fields in a header, in bytes.
const (
	atSize            = 0
	atID              = 8
	atUpdates         = 116
	atClock           = 124
	atIndex           = 141
	atTotal           = 145
	atReducedUpdates  = 16
	atReducedClock    = 20
	reducedDamage     = 116 // where reference senders write the updates of all messages
	reducedHeard      = 141 // bytes of reduced messages that reference receivers want
	defaultMaxMessage = 500_000
)

// decodePacket decodes what is in a file, or was put together from several.
func decodePacket(files []string, b []byte) *packet {
	m := &packet{files: files, bytes: len(b)}
	h, err := wire.ParseHeader(b)
	if err != nil {
		m.decodeFilter(b, err)
		return m
	}
	m.header = &h
	switch {
	case h.Size < uint64(len(b)):
		m.fault(b, atSize, "size %d, but there are %d bytes; the message is dropped", h.Size, len(b))
	case h.Size > uint64(len(b)):
		m.fault(b, atSize, "size %d, but there are %d bytes; the message is dropped unless Sharing.Compat is set", h.Size, len(b))
	}
	switch {
	case h.Kind == wire.Fragment:
		m.checkFragment(b)
		return m
	case h.Kind == wire.Normal && typeName(h.Type) == "":
		m.note("type %d has no name; the message is applied like type 2", h.Type)
	case h.Kind == wire.Reduced && len(b) < reducedHeard:
		m.note("MADARA's own receivers drop reduced messages of less than %d bytes", reducedHeard)
	case h.Kind == wire.Reduced && binary.LittleEndian.Uint32(b[reducedDamage:]) == h.Updates:
		m.note("bytes %d to %d are the number of updates: MADARA's own senders damage reduced messages there", reducedDamage, reducedDamage+3)
	}
	if h.Clock == math.MaxUint64 {
		at := atClock
		if h.Kind == wire.Reduced {
			at = atReducedClock
		}
		m.fault(b, at, "clock %d, the highest possible is %d; the message is dropped", h.Clock, uint64(math.MaxUint64-1))
	}
	m.decodeRecords(b)
	return m
}

// decodeFilter decodes what does not begin with a message's header.
func (m *packet) decodeFilter(b []byte, err error) {
	id, _, filterErr := wire.ParseFilterHeader(b)
	named := len(id) > 0 && strings.IndexFunc(string(id), func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsPrint(r) }) < 0
	switch {
	case filterErr == nil && named:
		m.filter = &filterHeader{string(id), fmt.Sprintf("%d.%d.%d", b[17], b[18], b[19])}
	case errors.Is(filterErr, wire.ErrSize) && named && b[16] == 0 && b[17] == 1:
		m.fault(b, atSize, "a header of filter %q with %v", id, filterErr)
	case errors.Is(err, wire.ErrForeign):
		m.fault(b, atID, "%v; it is dropped", err)
	default:
		m.fault(b, len(b), "%v; it is dropped", err)
	}
}

// decodeRecords decodes what is behind a normal or reduced header.
func (m *packet) decodeRecords(b []byte) {
	h := m.header
	updates := wire.ReadUpdates(b[h.Len():], h.Updates)
	var r wire.Record
	for offset := h.Len(); updates.Next(&r); offset = len(b) - len(updates.Rest()) {
		m.records = append(m.records, packetRecord{offset, len(b) - len(updates.Rest()) - offset, r})
		switch {
		case len(r.Name) == 0:
			m.note("update %d at offset %d has no name and is ignored", len(m.records), offset)
		case r.Name[0] == '.':
			m.note("%s is dropped unless Sharing.Compat is set, because names that start with . belong to one knowledge base", plain(string(r.Name)))
		}
	}
	rest, err := updates.Rest(), updates.Err()
	offset := len(b) - len(rest)
	switch {
	case err == nil && len(rest) > 0 && h.Size == uint64(len(b)):
		m.note("%d bytes at offset %d, behind the last update, are ignored", len(rest), offset)
	case err == nil:
	case len(rest) == 0:
		at := atUpdates
		if h.Kind == wire.Reduced {
			at = atReducedUpdates
		}
		m.fault(b, at, "updates %d, but there are %d, which are applied", h.Updates, len(m.records))
	case errors.Is(err, wire.ErrCount):
		m.fault(b, offset+faultyField(rest), "update %d: %v; nothing of the message is applied", len(m.records)+1, err)
	default:
		m.fault(b, offset+faultyField(rest), "update %d: %v; those before it are applied", len(m.records)+1, err)
	}
}

// faultyField returns the offset in a malformed record of the first field that
// cannot be right.
func faultyField(record []byte) int {
	if len(record) < 4 {
		return 0
	}
	size := uint64(binary.LittleEndian.Uint32(record))
	if size == 0 || size > uint64(len(record)-4) {
		return 0
	}
	end := 4 + int(size)
	if record[end-1] != 0 {
		return end - 1
	}
	if len(record) < end+16 {
		return end
	}
	switch code := binary.LittleEndian.Uint32(record[end:]); code {
	case 1, 2, 4, 8, 16, 32, 64, 128, 256:
		return end + 4 // the count
	}
	return end // the type
}

// typeName returns MADARA's name of a type of message, "" for others.
func typeName(t uint32) string {
	switch t {
	case 0:
		return "assign"
	case 1:
		return "operation"
	case 2:
		return "multiassign"
	case 3:
		return "register"
	case 10:
		return "latency"
	case 11:
		return "latency aggregate"
	case 12:
		return "latency summation"
	case 20:
		return "vote"
	}
	return ""
}

// text returns the lines for people.
func (m *packet) text() []byte {
	b := fmt.Appendf(nil, "%s: %d bytes", m.label(), m.bytes)
	if f := m.filter; f != nil {
		b = fmt.Appendf(b, ", encoded by filter %q version %s: %d bytes of payload\n", f.id, f.version, m.bytes-wire.FilterHeaderSize)
	} else if h := m.header; h != nil {
		kind := h.Kind.String() + " message"
		if h.Kind == wire.Fragment {
			kind = fmt.Sprintf("fragment %d (from 0) of %d, of a message of %d bytes", h.Index, h.Updates, h.Total)
		}
		b = fmt.Appendf(b, ", %s\n ", kind)
		if h.Kind != wire.Reduced {
			b = fmt.Appendf(b, " domain %q  originator %q  type %s  quality %d ", h.Domain, h.Originator,
				strings.TrimSpace(strconv.FormatUint(uint64(h.Type), 10)+" "+typeName(h.Type)), h.Quality)
		}
		if h.Kind != wire.Fragment {
			b = fmt.Appendf(b, " updates %d ", h.Updates)
		}
		b = fmt.Appendf(b, " clock %d  sent at %d ns  ttl %d\n", h.Clock, h.Timestamp, h.TTL)
	} else {
		b = append(b, '\n')
	}
	for _, r := range m.records {
		b = fmt.Appendf(b, "  %6d  %s = %s  (%s, inserted at %d ns)\n", r.offset, plain(string(r.Name)), show(r.Value), r.Value.Kind(), r.Time)
	}
	for _, n := range m.notes {
		b = fmt.Appendf(b, "  note: %s\n", n)
	}
	for _, f := range m.faults {
		b = fmt.Appendf(b, "  bad, at offset %d: %s\n", f.offset, f.message)
		if len(f.there) > 0 {
			b = fmt.Appendf(b, "  %6d: % x\n", f.offset, f.there)
		}
	}
	return b
}

// label names the files, the first and last of many.
func (m *packet) label() string {
	if n := len(m.files); n > 3 {
		return fmt.Sprintf("%s … %s", m.files[0], m.files[n-1])
	}
	return strings.Join(m.files, " + ")
}

// json returns the line for programs.
func (m *packet) json() []byte {
	b := []byte(`{"files":[`)
	for i, f := range m.files {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendName(b, f)
	}
	b = fmt.Appendf(b, `],"bytes":%d`, m.bytes)
	if f := m.filter; f != nil {
		b = appendName(append(b, `,"filter":{"id":`...), f.id)
		b = fmt.Appendf(b, `,"version":"%s"}`, f.version)
	}
	if h := m.header; h != nil {
		b = fmt.Appendf(b, `,"header":{"kind":"%s","size":%d,`, h.Kind, h.Size)
		if h.Kind != wire.Reduced {
			b = appendName(append(b, `"domain":`...), string(h.Domain))
			b = appendName(append(b, `,"originator":`...), string(h.Originator))
			b = fmt.Appendf(b, `,"type":%d,"quality":%d,`, h.Type, h.Quality)
		}
		b = fmt.Appendf(b, `"updates":%d,"clock":%d,"timestamp":%d,"ttl":%d`, h.Updates, h.Clock, h.Timestamp, h.TTL)
		if h.Kind == wire.Fragment {
			b = fmt.Appendf(b, `,"index":%d,"total":%d`, h.Index, h.Total)
		}
		b = append(b, `},"records":[`...)
		for i, r := range m.records {
			if i > 0 {
				b = append(b, ',')
			}
			b = fmt.Appendf(b, `{"offset":%d,"bytes":%d,"time":%d,"name":`, r.offset, r.bytes, r.Time)
			b = append(appendName(b, string(r.Name)), `,"value":`...)
			b = append(appendValue(b, r.Value), '}')
		}
		b = append(b, ']')
	}
	b = append(b, `,"notes":[`...)
	for i, n := range m.notes {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendName(b, n)
	}
	b = append(b, `],"errors":[`...)
	for i, f := range m.faults {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"offset":%d,"bytes":"%x","message":`, f.offset, f.there)
		b = append(appendName(b, f.message), '}')
	}
	return append(b, "]}\n"...)
}
