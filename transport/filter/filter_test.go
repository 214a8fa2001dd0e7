package filter_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/chacha20poly1305"
	"pgregory.net/rapid"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/filter"
	"github.com/madara-go/madara/transport/wire"
)

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../testdata/wire", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var password = sync.OnceValue(func() *filter.SSL { return must(filter.NewSSLPassword("testbed#1")) })

// TestFixtures decodes what MADARA encoded, and encodes it again.
func TestFixtures(t *testing.T) {
	raw := must(filter.NewSSL(must(hex.DecodeString("2348f998744212575d85959674f9607ab26f67708a917157472832386337c904"))))
	for _, c := range []struct {
		file  string
		chain wire.Chain
		names []string
		same  bool // encoding gives the same bytes
	}{
		{"aes_password.bin", wire.Chain{password()}, []string{"s", "x"}, true},
		{"aes_raw_key.bin", wire.Chain{raw}, []string{"x"}, true},
		{"lz4.bin", wire.Chain{filter.LZ4{}}, []string{"n", "s"}, false},
		{"lz4_then_aes.bin", wire.Chain{filter.LZ4{}, password()}, []string{"s"}, false},
		{"aes_then_lz4.bin", wire.Chain{password(), filter.LZ4{}}, []string{"blob", "n"}, false},
		{"case_aes_bit_flip.bin", wire.Chain{password()}, []string{"a"}, true}, // nothing tells that it was changed
	} {
		encoded := fixture(t, c.file)
		message, err := c.chain.Decode(encoded, 1<<20)
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		h, err := wire.ParseHeader(message)
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		var names []string
		updates := wire.ReadUpdates(message[h.Len():], h.Updates)
		for r := (wire.Record{}); updates.Next(&r); {
			names = append(names, string(r.Name))
		}
		if fmt.Sprint(names) != fmt.Sprint(c.names) || updates.Err() != nil {
			t.Errorf("%s: names %v, want %v, %v", c.file, names, c.names, updates.Err())
		}
		again, err := c.chain.Encode(message)
		if err != nil || c.same && !bytes.Equal(again, encoded) {
			t.Errorf("%s: encoded again it is other bytes, %v", c.file, err)
		}
		back, err := c.chain.Decode(again, 1<<20)
		if err != nil || !bytes.Equal(back, message) {
			t.Errorf("%s: encoded and decoded again: %v", c.file, err)
		}
	}
	if _, err := (wire.Chain{password()}).Decode(fixture(t, "case_plain_to_aes.bin"), 1<<20); err == nil {
		t.Error("a plain message was decoded")
	}
}

func chains() map[string]wire.Chain {
	return map[string]wire.Chain{
		"ssl": {password()}, "lz4": {filter.LZ4{}}, "lz4 ssl": {filter.LZ4{}, password()}, "ssl lz4": {password(), filter.LZ4{}},
		"ssl ssl": {password(), must(filter.NewSSL(bytes.Repeat([]byte{1}, 32)))},
	}
}

func TestChains(t *testing.T) {
	for name, chain := range chains() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				message := bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(t, "part"), rapid.IntRange(0, 50).Draw(t, "times"))
				encoded, err := chain.Encode(message)
				if err != nil {
					t.Fatal(err)
				}
				decoded, err := chain.Decode(encoded, len(message)+64)
				if err != nil || !bytes.Equal(decoded, message) {
					t.Fatalf("%d bytes, %d encoded, %d decoded, %v", len(message), len(encoded), len(decoded), err)
				}
				if len(message) > 0 {
					if out, err := chain.Decode(encoded, len(message)-1); err == nil {
						t.Fatalf("%d bytes came out, %d are allowed", len(out), len(message)-1)
					}
				}
			})
		})
	}
}

// TestBomb decodes a block that would be very much longer than what is allowed.
func TestBomb(t *testing.T) {
	bomb := must(filter.LZ4{}.Encode(nil, make([]byte, 64<<20)))
	if len(bomb) > 300<<10 {
		t.Fatalf("the bomb has %d bytes", len(bomb))
	}
	if _, err := (filter.LZ4{}).Decode(nil, bomb, 1<<20); !errors.Is(err, filter.ErrLimit) {
		t.Errorf("got %v", err)
	}
	if out, err := (filter.LZ4{}).Decode(nil, bomb, 64<<20); err != nil || len(out) != 64<<20 {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	for range 10 { // each with new room, once the collector has emptied the pool
		runtime.GC()
		runtime.GC()
		if _, err := (filter.LZ4{}).Decode(nil, []byte("\x10"+strings.Repeat("x", 40)), 0); err == nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"", "\x10", "\xf0\xff", "\x0f\x00\x00"} {
		if _, err := (filter.LZ4{}).Decode(nil, []byte(bad), 100); !errors.Is(err, filter.ErrContent) && !errors.Is(err, filter.ErrLimit) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestKeys(t *testing.T) {
	dir := t.TempDir()
	key := filter.NewKey()
	write := func(name string, b []byte, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		os.Chmod(path, mode)
		return path
	}
	digits := hex.EncodeToString(key)
	for _, path := range []string{write("raw", key, 0o600), write("hex", []byte(digits+"\n"), 0o400)} {
		if got, err := filter.ReadKeyFile(path); err != nil || !bytes.Equal(got, key) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{
		write("short", key[:31], 0o600), write("long", append(key, 1), 0o600), write("empty", nil, 0o600),
		write("digits", []byte(strings.Replace(digits, digits[:1], "x", 1)), 0o600), write("open", key, 0o644), write("group", key, 0o640),
	} {
		if _, err := filter.ReadKeyFile(path); !errors.Is(err, filter.ErrKey) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	path := filepath.Join(dir, "new")
	if err := filter.WriteKeyFile(path, key); err != nil {
		t.Fatal(err)
	}
	if got, err := filter.ReadKeyFile(path); err != nil || !bytes.Equal(got, key) {
		t.Error(err)
	}
	if err := filter.WriteKeyFile(path, key); !errors.Is(err, os.ErrExist) {
		t.Errorf("written over: %v", err)
	}
	if _, err := filter.NewSSL(key[:16]); !errors.Is(err, filter.ErrKey) {
		t.Error(err)
	}
	if _, err := filter.NewSSLPassword(""); !errors.Is(err, filter.ErrKey) {
		t.Error(err)
	}
	if _, err := filter.NewAEAD(1, key[:16]); !errors.Is(err, filter.ErrKey) {
		t.Error(err)
	}
	a, b := must(filter.PasswordKey("correct horse", "fleet one")), must(filter.PasswordKey("correct horse", "fleet two"))
	if len(a) != 32 || bytes.Equal(a, b) {
		t.Error("the salt does not matter")
	}
	if got := hex.EncodeToString(a); got != "81e35af8ab63be8bac65ca54dcf9e2a927048ff503a7a438c469ccf8ef78cdaa" {
		t.Errorf("fleets have other keys than before: %s", got)
	}
	for _, c := range [][2]string{{"short", "fleet one"}, {"correct horse", "salt"}} {
		if _, err := filter.PasswordKey(c[0], c[1]); !errors.Is(err, filter.ErrKey) {
			t.Errorf("%q: %v", c, err)
		}
	}
}

func TestAEAD(t *testing.T) {
	secret := bytes.Repeat([]byte{7}, 32)
	a, b := must(filter.NewAEAD(5, secret)), must(filter.NewAEAD(5, secret))
	var sealed [][]byte
	for i := range 3000 {
		d, err := a.Seal(nil, fmt.Append(nil, "datagram ", i))
		if err != nil || len(d) != len(fmt.Append(nil, "datagram ", i))+a.Overhead() {
			t.Fatal(len(d), err)
		}
		sealed = append(sealed, d)
	}
	want := append(wire.AppendFilterHeader(nil, "aead1", len(sealed[0])-wire.FilterHeaderSize), 5, 0, 0, 0)
	if !bytes.HasPrefix(sealed[0], want) || binary.LittleEndian.Uint64(sealed[0][32:]) != 1 {
		t.Errorf("the head is %q", sealed[0][:40])
	}
	open := func(i int) error {
		out, err := b.Open(nil, sealed[i])
		if err == nil && string(out) != fmt.Sprint("datagram ", i) {
			t.Fatalf("%d came out as %q", i, out)
		}
		return err
	}
	for _, c := range []struct {
		i    int
		want error
	}{
		{0, nil}, {0, transport.ErrReplayed}, {5, nil}, {3, nil}, {3, transport.ErrReplayed}, {1028, nil}, {4, transport.ErrReplayed},
		{6, nil}, {5, transport.ErrReplayed}, {1027, nil}, {2999, nil}, {2999, transport.ErrReplayed}, {1975, transport.ErrReplayed},
		{1976, nil}, {1028, transport.ErrReplayed}, {2500, nil}, {2500, transport.ErrReplayed},
	} {
		if err := open(c.i); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("datagram %d: %v, want %v", c.i, err, c.want)
		}
	}
	// Every bit matters.
	fresh := must(a.Seal(nil, []byte("secret")))
	for i := range fresh {
		for bit := range 8 {
			bad := bytes.Clone(fresh)
			bad[i] ^= 1 << bit
			if _, err := b.Open(nil, bad); err == nil {
				t.Fatalf("bit %d of byte %d does not matter", bit, i)
			}
		}
		if _, err := b.Open(nil, fresh[:i]); err == nil {
			t.Fatalf("%d of %d bytes are enough", i, len(fresh))
		}
	}
	// What is forged with a sequence that came is forged.
	forged := bytes.Clone(sealed[2999])
	forged[len(forged)-1] ^= 1
	if _, err := b.Open(nil, forged); !errors.Is(err, transport.ErrForged) {
		t.Errorf("forged, with a sequence that came: %v", err)
	}
	if out, err := b.Open([]byte("before "), fresh); err != nil || string(out) != "before secret" {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := must(filter.NewAEAD(5, filter.NewKey())).Open(nil, fresh); !errors.Is(err, transport.ErrForged) {
		t.Errorf("another key: %v", err)
	}
	if _, err := must(filter.NewAEAD(6, secret)).Open(nil, fresh); !errors.Is(err, transport.ErrUnknownKey) {
		t.Errorf("another id: %v", err)
	}
	if _, err := b.Open(nil, []byte("plain")); !errors.Is(err, transport.ErrUnknownKey) {
		t.Errorf("plain: %v", err)
	}
	if s := b.Stats(); s.Opened != 9+1 || s.Sessions != 1 || s.Forged == 0 || s.Replayed == 0 || s.UnknownKey == 0 {
		t.Errorf("%+v", s)
	}
}

// TestLayout seals and opens with the cipher itself, by the layout that is written
// in transport/doc/wire.md.
func TestLayout(t *testing.T) {
	secret := bytes.Repeat([]byte{9}, 32)
	bare := must(chacha20poly1305.NewX(secret))
	a := must(filter.NewAEAD(0x01020304, secret))
	build := func(session, sequence uint64, content string) []byte {
		head := wire.AppendFilterHeader(nil, "aead1", 20+len(content)+16)
		head = binary.LittleEndian.AppendUint32(head, 0x01020304)
		head = binary.LittleEndian.AppendUint64(head, session)
		head = binary.LittleEndian.AppendUint64(head, sequence)
		nonce := append(bytes.Clone(head[24:40]), make([]byte, 8)...)
		return bare.Seal(bytes.Clone(head), nonce, []byte(content), head)
	}
	if out, err := a.Open(nil, build(77, 1, "content")); err != nil || string(out) != "content" {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := a.Open(nil, build(78, 0, "content")); !errors.Is(err, transport.ErrReplayed) {
		t.Errorf("sequence 0: %v", err)
	}
	d := must(a.Seal(nil, []byte("content")))
	if want := build(binary.LittleEndian.Uint64(d[24:]), 1, "content"); !bytes.Equal(d, want) {
		t.Errorf("sealed\n%x, want\n%x", d, want)
	}
}

// TestOpenTogether opens each datagram by several goroutines: one gets it.
func TestOpenTogether(t *testing.T) {
	secret := make([]byte, 32)
	a, b := must(filter.NewAEAD(1, secret)), must(filter.NewAEAD(1, secret))
	content := make([]byte, 20_000)
	for range 300 {
		d := must(a.Seal(nil, content))
		start := make(chan struct{})
		var opened atomic.Int32
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				<-start
				if _, err := b.Open(nil, d); err == nil {
					opened.Add(1)
				} else if !errors.Is(err, transport.ErrReplayed) {
					t.Error(err)
				}
			})
		}
		close(start)
		all.Wait()
		if n := opened.Load(); n != 1 {
			t.Fatalf("opened %d times", n)
		}
	}
}

// TestChangedInTransit is what a changed bit does to either.
func TestChangedInTransit(t *testing.T) {
	if _, err := (wire.Chain{password()}).Decode(fixture(t, "case_aes_bit_flip.bin"), 1<<20); err != nil {
		t.Errorf("ssl notices: %v", err)
	}
	a := must(filter.NewAEAD(1, make([]byte, 32)))
	d := must(a.Seal(nil, fixture(t, "aes_password.bin")))
	d[len(d)/2] ^= 1
	if _, err := a.Open(nil, d); !errors.Is(err, transport.ErrForged) {
		t.Errorf("aead1: %v", err)
	}
}

func TestKeyRotation(t *testing.T) {
	old, next := filter.NewKey(), filter.NewKey()
	a, b := must(filter.NewAEAD(1, old)), must(filter.NewAEAD(1, old))
	pass := func(want error) {
		t.Helper()
		if _, err := b.Open(nil, must(a.Seal(nil, []byte("x")))); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	pass(nil)
	for _, s := range []*filter.AEAD{a, b} {
		if err := s.AddKey(2, next); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.SendWith(3); !errors.Is(err, filter.ErrKey) {
		t.Error(err)
	}
	if err := a.SendWith(2); err != nil {
		t.Fatal(err)
	}
	pass(nil)
	if err := b.RemoveKey(1); !errors.Is(err, filter.ErrKey) {
		t.Errorf("the key in use was removed: %v", err)
	}
	b.SendWith(2)
	if err := b.RemoveKey(1); err != nil {
		t.Fatal(err)
	}
	pass(nil)
	a.SendWith(1)
	pass(transport.ErrUnknownKey)
	b.AddKey(1, old)
	recorded := must(a.Seal(nil, []byte("x")))
	if _, err := b.Open(nil, recorded); err != nil {
		t.Errorf("a key that was added again: %v", err)
	}
	for range 2 { // What came with a key does not come again once that is back.
		b.RemoveKey(1)
		if _, err := b.Open(nil, recorded); !errors.Is(err, transport.ErrUnknownKey) {
			t.Errorf("without the key: %v", err)
		}
		b.AddKey(1, old)
		if _, err := b.Open(nil, recorded); !errors.Is(err, transport.ErrReplayed) {
			t.Errorf("with the key again: %v", err)
		}
	}
	if s := b.Stats(); s.Sessions != 2 || s.Forged != 0 || s.Replayed != 2 || s.UnknownKey != 3 {
		t.Errorf("%+v", s)
	}
}

// TestSessionsAreBounded lets strangers and members begin sessions.
func TestSessionsAreBounded(t *testing.T) {
	secret := make([]byte, 32)
	b := must(filter.NewAEAD(1, secret))
	honest := must(filter.NewAEAD(1, secret))
	first := must(honest.Seal(nil, []byte("x")))
	b.Open(nil, first)
	stranger := must(filter.NewAEAD(1, filter.NewKey()))
	for range 10_000 {
		d := must(stranger.Seal(nil, []byte("y")))
		copy(d[24:32], must(hex.DecodeString(fmt.Sprintf("%016x", len(d)))))
		b.Open(nil, d)
	}
	if s := b.Stats(); s.Sessions != 1 {
		t.Errorf("strangers made sessions: %d", s.Sessions)
	}
	previous := first
	for range 5000 {
		b.Open(nil, must(must(filter.NewAEAD(1, secret)).Seal(nil, []byte("z"))))
		if _, err := b.Open(nil, previous); !errors.Is(err, transport.ErrReplayed) {
			t.Fatalf("a session in use was forgotten: %v", err)
		}
		previous = must(honest.Seal(nil, []byte("x")))
		if _, err := b.Open(nil, previous); err != nil {
			t.Fatal(err)
		}
	}
	if s := b.Stats(); s.Sessions != 4096 {
		t.Errorf("%d sessions", s.Sessions)
	}
}

func TestAEADTogether(t *testing.T) {
	secret := make([]byte, 32)
	a, b := must(filter.NewAEAD(1, secret)), must(filter.NewAEAD(1, secret))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 500 {
				d, _ := a.Seal(nil, []byte("x"))
				if _, err := b.Open(nil, d); err != nil && !errors.Is(err, transport.ErrReplayed) {
					t.Error(err)
				}
			}
		})
	}
	for i := range 50 {
		a.AddKey(uint32(2+i%3), filter.NewKey())
		b.RemoveKey(uint32(2 + i%3))
	}
	all.Wait()
	if s := a.Stats(); s.Sealed != 2000 {
		t.Errorf("%+v", s)
	}
}

func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's pools forget")
	}
	a := must(filter.NewAEAD(1, make([]byte, 32)))
	b := must(filter.NewAEAD(1, make([]byte, 32)))
	datagram := make([]byte, 1200)
	sealed, opened := make([]byte, 0, 2000), make([]byte, 0, 2000)
	if n := testing.AllocsPerRun(1000, func() {
		sealed, _ = a.Seal(sealed[:0], datagram)
		var err error
		if opened, err = b.Open(opened[:0], sealed); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations to seal and open", n)
	}
}

func FuzzOpen(f *testing.F) {
	a := must(filter.NewAEAD(1, make([]byte, 32)))
	f.Add(must(a.Seal(nil, []byte("x"))))
	f.Add([]byte("aead1"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, d []byte) {
		b := must(filter.NewAEAD(1, make([]byte, 32)))
		out, err := b.Open(nil, d)
		if err == nil && len(out)+b.Overhead() != len(d) {
			t.Errorf("%d bytes came out of %d", len(out), len(d))
		}
		if _, again := b.Open(nil, d); err == nil && !errors.Is(again, transport.ErrReplayed) {
			t.Errorf("opened twice: %v", again)
		}
	})
}

func FuzzChain(f *testing.F) {
	for _, name := range []string{"aes_password.bin", "lz4.bin", "lz4_then_aes.bin", "aes_then_lz4.bin", "normal_single.bin"} {
		f.Add(fixture(f, name), 1000)
	}
	all := chains()
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		if limit < 0 || limit > 1<<20 {
			return
		}
		for name, chain := range all {
			out, err := chain.Decode(b, limit)
			if err == nil && len(out) > limit {
				t.Errorf("%s: %d bytes, %d are allowed", name, len(out), limit)
			}
			encoded, err := chain.Encode(b)
			if err != nil {
				t.Fatal(err)
			}
			if back, err := chain.Decode(encoded, len(b)+64); err != nil || !bytes.Equal(back, b) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func BenchmarkAEAD(b *testing.B) {
	for _, size := range []int{64, 1200, 60_000} {
		b.Run(fmt.Sprint("size=", size), func(b *testing.B) {
			x, y := must(filter.NewAEAD(1, make([]byte, 32))), must(filter.NewAEAD(1, make([]byte, 32)))
			datagram := make([]byte, size)
			var sealed, opened []byte
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				sealed, _ = x.Seal(sealed[:0], datagram)
				var err error
				if opened, err = y.Open(opened[:0], sealed); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
