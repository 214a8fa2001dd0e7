package wire_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/wire"
)

const fixtures = "../testdata/wire"

type manifest struct {
	Records []struct {
		File, Key string
		Record    value
	}
	Messages []struct {
		Name     string
		Files    []string
		Settings struct {
			Originator, Domain string
			Reduced            bool
			MaxFragment        int `json:"max_fragment"`
			Filters            []any
		}
		Headers []header
		Receive struct {
			Knowledge map[string]value
		} `json:"reference_receive"`
	}
	ReceiveCases []struct {
		Name  string
		Files []string
	} `json:"receive_cases"`
}

type value struct {
	Type  string
	Value json.RawMessage
	Hex   *string
	Toi   uint64
}

type header struct {
	Kind, Domain, Originator      string
	Size, Clock, Timestamp, Total uint64
	Type, Updates, Quality        uint32
	TTL                           uint8
	UpdateNumber                  uint32 `json:"update_number"`
	TotalSize                     uint64 `json:"total_size"`
}

func readManifest(t testing.TB) manifest {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(fixtures, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	if len(m.Records) != 21 || len(m.Messages) != 23 || len(m.ReceiveCases) != 32 {
		t.Fatalf("%d records, %d messages, %d cases", len(m.Records), len(m.Messages), len(m.ReceiveCases))
	}
	return m
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(fixtures, file))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// same compares a value with the manifest's.
func same(v karl.Value, want value) bool {
	if v.Kind().String() != want.Type {
		return false
	}
	if want.Hex != nil {
		return hex.EncodeToString(v.Bytes()) == *want.Hex
	}
	var x any
	d := json.NewDecoder(bytes.NewReader(want.Value))
	d.UseNumber()
	if d.Decode(&x) != nil {
		return false
	}
	number := func(v karl.Value, x any) bool {
		if n, ok := x.(json.Number); ok {
			if v.Kind() == karl.KindInteger {
				i, err := n.Int64()
				return err == nil && v.Int() == i
			}
			f, err := n.Float64()
			return err == nil && v.Float() == f
		}
		switch x {
		case "NaN":
			return v.String() == "nan"
		case "Infinity":
			return v.String() == "inf"
		}
		return x == "-Infinity" && v.String() == "-inf"
	}
	switch x := x.(type) {
	case string:
		if v.Kind() == karl.KindDouble {
			return number(v, x)
		}
		return v.String() == x
	case []any:
		if len(x) != v.Len() {
			return false
		}
		for i := range x {
			if e, _ := v.At(i); !number(e, x[i]) {
				return false
			}
		}
		return true
	}
	return number(v, x)
}

func TestRecords(t *testing.T) {
	for _, r := range readManifest(t).Records {
		b := read(t, r.File)
		var got wire.Record
		rest, err := wire.ParseRecord(b, &got)
		if err != nil || len(rest) != 0 {
			t.Errorf("%s: %v, %d bytes left", r.File, err, len(rest))
			continue
		}
		if string(got.Name) != r.Key || got.Time != r.Record.Toi || !same(got.Value, r.Record) {
			t.Errorf("%s: %q = %s %v at %d, want %q = %s %s at %d", r.File, got.Name, got.Value.Kind(), got.Value, got.Time, r.Key, r.Record.Type, r.Record.Value, r.Record.Toi)
		}
		if again := wire.AppendRecord(nil, string(got.Name), got.Value, got.Time); !bytes.Equal(again, b) {
			t.Errorf("%s: encoded again\n%x\nwant\n%x", r.File, again, b)
		}
		if n := wire.RecordSize(r.Key, got.Value); n != len(b) {
			t.Errorf("%s: RecordSize %d, want %d", r.File, n, len(b))
		}
		for n := range b {
			if _, err := wire.ParseRecord(b[:n], &got); err == nil {
				t.Errorf("%s: the first %d bytes of %d are a record", r.File, n, len(b))
			}
		}
	}
}

// again encodes a message from what was decoded of it.
func again(t *testing.T, message []byte) []byte {
	t.Helper()
	h, err := wire.ParseHeader(message)
	if err != nil {
		t.Fatal(err)
	}
	if h.Size != uint64(len(message)) {
		t.Errorf("size %d of %d bytes", h.Size, len(message))
	}
	out := h.Append(nil)
	updates := wire.ReadUpdates(message[h.Len():], h.Updates)
	var r wire.Record
	for updates.Next(&r) {
		out = wire.AppendRecord(out, string(r.Name), r.Value, r.Time)
	}
	if updates.Err() != nil || len(updates.Rest()) != 0 {
		t.Errorf("%v, %d bytes left", updates.Err(), len(updates.Rest()))
	}
	return out
}

func TestMessages(t *testing.T) {
	for _, m := range readManifest(t).Messages {
		t.Run(m.Name, func(t *testing.T) {
			var drops []transport.Drop
			a := wire.NewAssembler(wire.AssemblerLimits{}, func(d transport.Drop, _ int) { drops = append(drops, d) })
			var datagrams [][]byte
			whole := read(t, m.Files[0])
			for i, file := range m.Files {
				b := read(t, file)
				datagrams = append(datagrams, b)
				if m.Settings.Filters != nil && len(m.Files) == 1 {
					return // the filters are tested where they are
				}
				h, err := wire.ParseHeader(b)
				if err != nil {
					t.Fatal(err)
				}
				w := m.Headers[i]
				if h.Kind.String() != w.Kind || h.Size != w.Size || string(h.Domain) != w.Domain || string(h.Originator) != w.Originator ||
					h.Type != w.Type || h.Updates != w.Updates || h.Quality != w.Quality || h.Clock != w.Clock || h.Timestamp != w.Timestamp ||
					h.TTL != w.TTL || h.Index != w.UpdateNumber || h.Total != w.TotalSize {
					t.Errorf("%s: header %+v, want %+v", file, h, w)
				}
				if h.Kind == wire.Fragment {
					whole = a.Add("10.0.0.9:4000", &h, b, 0)
					if (whole != nil) != (i == len(m.Files)-1) {
						t.Errorf("complete after fragment %d", i)
					}
				}
			}
			if len(m.Files) > 1 {
				h, _ := wire.ParseHeader(datagrams[0])
				for i, want := range datagrams {
					if got := wire.AppendFragment(nil, h, whole, m.Settings.MaxFragment, i); !bytes.Equal(got, want) {
						t.Errorf("fragment %d encoded again\n%x\nwant\n%x", i, got, want)
					}
				}
			}
			if drops != nil || a.Bytes() != 0 {
				t.Errorf("drops %v, %d bytes kept", drops, a.Bytes())
			}
			if m.Settings.Filters == nil {
				if got := again(t, whole); !bytes.Equal(got, whole) {
					t.Errorf("encoded again\n%x\nwant\n%x", got, whole)
				}
			}
		})
	}
	live, err := filepath.Glob(filepath.Join(fixtures, "live", "*.bin"))
	if err != nil || len(live) != 7 {
		t.Fatalf("%d captures, %v", len(live), err)
	}
	for _, file := range live {
		b := read(t, filepath.Join("live", filepath.Base(file)))
		h, err := wire.ParseHeader(b)
		if err != nil || h.Size != uint64(len(b)) {
			t.Errorf("%s: %+v, %v", file, h, err)
		} else if h.Kind != wire.Fragment {
			if got := again(t, b); !bytes.Equal(got, b) {
				t.Errorf("%s encoded again\n%x\nwant\n%x", file, got, b)
			}
		}
	}
}

// TestAssemblerBounds lets 10,000 senders leave one fragment each.
func TestAssemblerBounds(t *testing.T) {
	dropped := 0
	limit := 1 << 20
	a := wire.NewAssembler(wire.AssemblerLimits{Total: limit}, func(_ transport.Drop, n int) { dropped += n })
	message := bytes.Repeat([]byte("x"), 3000)
	for i := range 10_000 {
		h := wire.Header{Originator: []byte{byte(i), byte(i >> 8), 1}, Clock: uint64(i)}
		b := wire.AppendFragment(nil, h, message, 1000, 0)
		h, err := wire.ParseHeader(b)
		if err != nil {
			t.Fatal(err)
		}
		if a.Add([]string{"1.2.3.4:5", "1.2.3.4:6", "1.2.3.4:7", "1.2.3.4:8", "1.2.3.4:9"}[i%5], &h, b, 0) != nil {
			t.Fatal("complete")
		}
		if a.Bytes() > limit {
			t.Fatalf("%d bytes kept", a.Bytes())
		}
	}
	if dropped < 9000 {
		t.Errorf("%d dropped", dropped)
	}
	a.Expire(time.Hour)
	if a.Bytes() != 0 || dropped != 10_000 {
		t.Errorf("%d bytes kept, %d dropped", a.Bytes(), dropped)
	}
	a = wire.NewAssembler(wire.AssemblerLimits{Total: limit, Message: 10_000}, func(_ transport.Drop, n int) {})
	for i := range 10_000 { // one source may have a quarter
		h := wire.Header{Originator: []byte{byte(i), byte(i >> 8), 1}, Clock: uint64(i)}
		b := wire.AppendFragment(nil, h, message, 1000, 0)
		h, _ = wire.ParseHeader(b)
		if a.Add("1.2.3.4:5", &h, b, 0); a.Bytes() > limit/4 {
			t.Fatalf("%d bytes kept of one source", a.Bytes())
		}
	}
	a = wire.NewAssembler(wire.AssemblerLimits{Total: limit}, func(_ transport.Drop, n int) { dropped += n })
	for clock := range 1000 { // one sender may have 100
		h := wire.Header{Originator: []byte("one"), Clock: uint64(clock)}
		b := wire.AppendFragment(nil, h, message, 1000, 0)
		h, _ = wire.ParseHeader(b)
		a.Add("1.2.3.4:5", &h, b, 0)
	}
	if dropped != 10_900 {
		t.Errorf("%d dropped", dropped)
	}
}

func TestEncodeAllocates(t *testing.T) {
	h := wire.Header{Domain: []byte("KaRL"), Originator: []byte("a"), Updates: 2}
	var buf []byte
	v, s := karl.Int(1), karl.String("text")
	encode := func() {
		buf = h.Append(buf[:0])
		buf = wire.AppendRecord(buf, "x", v, 1)
		buf = wire.AppendRecord(buf, "s", s, 1)
	}
	encode()
	if n := testing.AllocsPerRun(100, encode); n != 0 {
		t.Errorf("encoding allocates %v", n)
	}
	decode := func() {
		h, err := wire.ParseHeader(buf)
		if err != nil {
			t.Fatal(err)
		}
		u := wire.ReadUpdates(buf[h.Len():], h.Updates)
		var r wire.Record
		for u.Next(&r) {
		}
	}
	if n := testing.AllocsPerRun(100, decode); n > 1 { // the string
		t.Errorf("decoding allocates %v", n)
	}
}

func seeds(f *testing.F) {
	files, _ := filepath.Glob(filepath.Join(fixtures, "*.bin"))
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}

// FuzzMessage decodes any bytes; what decodes must encode to the same.
func FuzzMessage(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := wire.ParseHeader(b)
		if err != nil {
			return
		}
		out := h.Append(nil)
		if back, err := wire.ParseHeader(out); err != nil || back.Clock != h.Clock || !bytes.Equal(back.Originator, h.Originator) {
			t.Errorf("header %+v came back as %+v, %v", h, back, err)
		}
		u := wire.ReadUpdates(b[h.Len():], h.Updates)
		var r wire.Record
		for u.Next(&r) {
			enc := wire.AppendRecord(nil, string(r.Name), r.Value, r.Time)
			var again wire.Record
			if _, err := wire.ParseRecord(enc, &again); err != nil || !again.Value.Equal(r.Value) {
				t.Errorf("%q = %v came back as %v, %v", r.Name, r.Value, again.Value, err)
			}
		}
	})
}

// FuzzFragments feeds any datagrams to an assembler: it stays within its bounds.
func FuzzFragments(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		a := wire.NewAssembler(wire.AssemblerLimits{Total: 10_000, Message: 5000}, func(transport.Drop, int) {})
		for len(b) >= wire.FragmentSize {
			n := min(len(b), wire.FragmentSize+int(b[0]))
			h, err := wire.ParseHeader(b[:n])
			if err == nil && h.Kind == wire.Fragment {
				if m := a.Add("s", &h, b[:n], time.Duration(n)); uint64(len(m)) > 5000 {
					t.Errorf("a message of %d bytes", len(m))
				}
			}
			if a.Bytes() > 10_000 {
				t.Errorf("%d bytes kept", a.Bytes())
			}
			b = b[n:]
		}
	})
}

// FuzzFilterHeader takes any bytes as a filtered message.
func FuzzFilterHeader(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		id, payload, err := wire.ParseFilterHeader(b)
		if err != nil {
			return
		}
		out := append(wire.AppendFilterHeader(nil, string(id), len(payload)), payload...)
		if back, p, err := wire.ParseFilterHeader(out); err != nil || !bytes.Equal(back, id) || !bytes.Equal(p, payload) {
			t.Errorf("%q came back as %q, %v", id, back, err)
		}
	})
}
