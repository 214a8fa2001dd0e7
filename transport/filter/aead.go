package filter

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/madara-go/madara/transport"
)

// AEAD seals datagrams with XChaCha20-Poly1305: who does not have a key can
// neither read nor make nor change one, and one that came before does not come
// again. All who have a key can do all of that, as each other: it tells members
// from strangers, not members from members. It may be used by many goroutines, but
// each link needs one of its own: of two that hear the same datagram and share an
// AEAD, one would take it for replayed. Each AEAD is a session of its own.
//
// A sealed datagram is a filter header of 20 bytes with the id "aead1", the id of
// the key (4 bytes), the session (8), the sequence (8), and the sealed content with
// its tag (16). Numbers are little-endian. The nonce is session, sequence and zeros;
// all 40 bytes before the content are authenticated with it. What came is remembered
// by key and session: not by address, which anybody can claim to begin anew, and not
// by session alone, which an old key could then spoil for its successor. Only what is
// authentic is remembered or called replayed. Keys have ids, so that
// they can be replaced without a pause: add the new key everywhere, then let every
// sender use it, then remove the old one.
type AEAD struct {
	session  uint64
	sequence atomic.Uint64
	sending  atomic.Pointer[key]
	opened   atomic.Uint64
	forged   atomic.Uint64
	replayed atomic.Uint64
	unknown  atomic.Uint64

	mu       sync.Mutex
	keys     map[uint32]*key
	sessions map[sessionKey]*window
	oldest   *window // a ring, in the order of their last datagrams
}

var _ transport.Sealer = (*AEAD)(nil)

type key struct {
	id   uint32
	aead cipher.AEAD
}

// The layout of a sealed datagram.
const (
	aeadID     = "aead1"
	headerSize = 20
	aeadHead   = headerSize + 4 + 8 + 8
	// Overhead is how much longer than its content a sealed datagram is, in bytes.
	Overhead = aeadHead + chacha20poly1305.Overhead
)

// The bounds of the memory of what came.
const (
	replayWindow = 1024 // sequences below the highest of a session
	maxSessions  = 4096
	maxKeys      = 256
)

// sessionKey keeps apart what two keys sealed.
type sessionKey struct {
	key     uint32
	session uint64
}

// window is which sequences of a session came.
type window struct {
	of         sessionKey
	highest    uint64
	seen       [replayWindow / 64]uint64 // a bit for each, by the sequence's low bits
	next, prev *window
}

// NewAEAD returns a sealer that sends with a key of 32 bytes, which has an id
// among the fleet's keys.
func NewAEAD(id uint32, secret []byte) (*AEAD, error) {
	a := &AEAD{keys: map[uint32]*key{}, sessions: map[sessionKey]*window{}}
	var b [8]byte
	for a.session == 0 {
		rand.Read(b[:])
		a.session = binary.LittleEndian.Uint64(b[:])
	}
	if err := a.AddKey(id, secret); err != nil {
		return nil, err
	}
	return a, a.SendWith(id)
}

// AddKey adds a key that datagrams are opened with, or replaces the one with its id.
func (a *AEAD) AddKey(id uint32, secret []byte) error {
	if len(secret) != KeySize {
		return fmt.Errorf("key %d has %d bytes, %d are needed: %w", id, len(secret), KeySize, ErrKey)
	}
	aead, err := chacha20poly1305.NewX(secret)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.keys[id] == nil && len(a.keys) >= maxKeys {
		return fmt.Errorf("key %d is one more than %d: %w", id, maxKeys, ErrKey)
	}
	k := &key{id, aead}
	a.keys[id] = k
	if old := a.sending.Load(); old != nil && old.id == id {
		a.sending.Store(k)
	}
	return nil
}

// SendWith chooses the key that datagrams are sealed with.
func (a *AEAD) SendWith(id uint32) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	k := a.keys[id]
	if k == nil {
		return fmt.Errorf("there is no key %d: %w", id, ErrKey)
	}
	a.sending.Store(k)
	return nil
}

// RemoveKey removes a key: what is sealed with it is not opened any more. The key
// that is sent with cannot be removed. What came is remembered, so that it does not
// come again should the key be added again.
func (a *AEAD) RemoveKey(id uint32) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sending.Load().id == id {
		return fmt.Errorf("key %d is the one that is sent with: %w", id, ErrKey)
	}
	delete(a.keys, id)
	return nil
}

// AEADStats is what an AEAD counted.
type AEADStats struct {
	Sealed, Opened uint64
	Forged         uint64 // of a key that is there, but not sealed with it, or changed
	Replayed       uint64 // authentic, but came before, or too late to tell
	UnknownKey     uint64 // of a key that is not there, or not sealed at all
	Sessions       int    // that are remembered
}

// Stats returns a copy of the counters.
func (a *AEAD) Stats() AEADStats {
	a.mu.Lock()
	sessions := len(a.sessions)
	a.mu.Unlock()
	return AEADStats{
		Sealed: a.sequence.Load(), Opened: a.opened.Load(), Forged: a.forged.Load(), Replayed: a.replayed.Load(),
		UnknownKey: a.unknown.Load(), Sessions: sessions,
	}
}

// Overhead is transport.Sealer.Overhead.
func (a *AEAD) Overhead() int { return Overhead }

// Seal is transport.Sealer.Seal.
func (a *AEAD) Seal(dst, datagram []byte) ([]byte, error) {
	k := a.sending.Load()
	from := len(dst)
	dst = appendHeader(dst, aeadHead-headerSize+len(datagram)+chacha20poly1305.Overhead)
	dst = binary.LittleEndian.AppendUint32(dst, k.id)
	dst = binary.LittleEndian.AppendUint64(dst, a.session)
	dst = binary.LittleEndian.AppendUint64(dst, a.sequence.Add(1))
	head := dst[from:]
	nonce := nonces.Get().(*[chacha20poly1305.NonceSizeX]byte)
	defer nonces.Put(nonce)
	copy(nonce[:16], head[headerSize+4:])
	return k.aead.Seal(dst, nonce[:], datagram, head), nil
}

// nonces are on the heap anyway, as they go through an interface. Their last 8
// bytes stay zero.
var nonces = sync.Pool{New: func() any { return new([chacha20poly1305.NonceSizeX]byte) }}

// appendHeader appends a filter header, as package wire makes it.
func appendHeader(dst []byte, size int) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(size))
	return append(dst, 'a', 'e', 'a', 'd', '1', 0, 0, 0, 0, 1, 0, 0)
}

// unknownKey and forgedKey are errors of Open that name the id of a key.
type unknownKey uint32

func (k unknownKey) Error() string {
	return fmt.Sprintf("key %d: %v", uint32(k), transport.ErrUnknownKey)
}
func (unknownKey) Unwrap() error { return transport.ErrUnknownKey }

type forgedKey uint32

func (k forgedKey) Error() string {
	return fmt.Sprintf("key %d: %v, or it is another key here", uint32(k), transport.ErrForged)
}
func (forgedKey) Unwrap() error { return transport.ErrForged }

// errNotSealed is what was not sealed at all.
var errNotSealed = fmt.Errorf("no %s datagram: %w", aeadID, transport.ErrUnknownKey)

// Open is transport.Sealer.Open. The errors are transport.ErrUnknownKey,
// transport.ErrForged and transport.ErrReplayed.
func (a *AEAD) Open(dst, datagram []byte) ([]byte, error) {
	var want [headerSize]byte
	if len(datagram) < Overhead || string(appendHeader(want[:0], len(datagram)-headerSize)) != string(datagram[:headerSize]) {
		a.unknown.Add(1)
		return nil, errNotSealed
	}
	head, sealed := datagram[:aeadHead], datagram[aeadHead:]
	id := binary.LittleEndian.Uint32(head[headerSize:])
	of := sessionKey{id, binary.LittleEndian.Uint64(head[headerSize+4:])}
	sequence := binary.LittleEndian.Uint64(head[headerSize+12:])
	a.mu.Lock()
	k := a.keys[id]
	a.mu.Unlock()
	if k == nil {
		a.unknown.Add(1)
		return nil, unknownKey(id)
	}
	nonce := nonces.Get().(*[chacha20poly1305.NonceSizeX]byte)
	defer nonces.Put(nonce)
	copy(nonce[:16], head[headerSize+4:])
	out, err := k.aead.Open(dst, nonce[:], sealed, head)
	if err != nil {
		a.forged.Add(1)
		return nil, forgedKey(id)
	}
	switch err := a.note(k, of, sequence); {
	case errors.Is(err, transport.ErrReplayed):
		a.replayed.Add(1)
		return nil, err
	case err != nil:
		a.unknown.Add(1)
		return nil, err
	}
	a.opened.Add(1)
	return out, nil
}

// came reports whether a sequence came, or is too old to tell.
func (w *window) came(sequence uint64) bool {
	switch {
	case sequence > w.highest:
		return false
	case w.highest-sequence >= replayWindow:
		return true
	}
	return w.seen[sequence/64%(replayWindow/64)]&(1<<(sequence%64)) != 0
}

// note remembers an authentic sequence. The error is ErrReplayed if it came before,
// and unknownKey if its key is gone meanwhile.
func (a *AEAD) note(k *key, of sessionKey, sequence uint64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.keys[of.key] != k:
		return unknownKey(of.key)
	case sequence == 0: // no sender has it
		return transport.ErrReplayed
	}
	w := a.sessions[of]
	if w == nil {
		if len(a.sessions) >= maxSessions {
			a.forget(a.oldest)
		}
		w = &window{of: of}
		a.sessions[of] = w
		a.append(w)
	} else {
		if w.came(sequence) {
			return transport.ErrReplayed
		}
		if a.oldest.prev != w {
			a.unlink(w)
			a.append(w)
		}
	}
	if sequence > w.highest {
		if sequence-w.highest >= replayWindow {
			clear(w.seen[:])
		} else {
			for s := w.highest + 1; s < sequence; s++ {
				w.seen[s/64%(replayWindow/64)] &^= 1 << (s % 64)
			}
		}
		w.highest = sequence
	}
	w.seen[sequence/64%(replayWindow/64)] |= 1 << (sequence % 64)
	return nil
}

// append puts a window at the end of the ring, as the newest.
func (a *AEAD) append(w *window) {
	if a.oldest == nil {
		a.oldest, w.next, w.prev = w, w, w
		return
	}
	w.next, w.prev = a.oldest, a.oldest.prev
	w.prev.next, w.next.prev = w, w
}

func (a *AEAD) unlink(w *window) {
	if w.next == w {
		a.oldest = nil
		return
	}
	w.prev.next, w.next.prev = w.next, w.prev
	if a.oldest == w {
		a.oldest = w.next
	}
}

func (a *AEAD) forget(w *window) {
	a.unlink(w)
	delete(a.sessions, w.of)
}
