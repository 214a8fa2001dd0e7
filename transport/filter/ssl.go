// Package filter is what changes messages on their way: compression and
// encryption. [LZ4] and [SSL] are MADARA's buffer filters, for
// knowledge.Sharing.Filters; they work on whole messages, before these are cut
// into fragments. [AEAD] is a [transport.Sealer], for transport.Settings.Sealer; it
// works on single datagrams, after that, and is what keeps strangers out.
//
//	key, err := filter.ReadKeyFile("fleet.key")
//	…
//	sealer, err := filter.NewAEAD(1, key)
//	…
//	link, err := udp.Multicast("239.255.0.1:4150", &transport.Settings{Sealer: sealer})
package filter

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"

	"github.com/madara-go/madara/transport"
)

// Errors of filters and sealers, beside those of package transport.
var (
	ErrKey     = errors.New("key cannot be used")
	ErrContent = errors.New("not what this filter made")
	ErrLimit   = errors.New("more than is allowed to come out")
)

// KeySize is the length of the keys of SSL and AEAD, in bytes.
const KeySize = 32

// SSL encrypts messages as MADARA's filter of that id does, with AES-256-CBC. It
// is there to talk to MADARA. It hides little and proves nothing: the same
// beginning gives the same bytes, what was changed on the way is not noticed,
// fragments' heads and registrations are in the clear, and a message that was
// recorded can be sent again. Between Go programs use [AEAD]. It may be used by
// many goroutines. MADARA knows it as AESBufferFilter.
type SSL struct {
	block cipher.Block
	iv    [aes.BlockSize]byte
}

var _ transport.Filter = (*SSL)(nil)

// NewSSL returns the filter with a key of 32 bytes. Peers that have the key from
// a password use [NewSSLPassword].
func NewSSL(key []byte) (*SSL, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("a key of %d bytes, %d are needed: %w", len(key), KeySize, ErrKey)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return &SSL{block: block}, nil
}

// NewSSLPassword returns the filter with a key made of a password as MADARA makes
// it, with a salt that everybody knows.
func NewSSLPassword(password string) (*SSL, error) {
	if password == "" {
		return nil, fmt.Errorf("the password is empty: %w", ErrKey)
	}
	salt := []byte{0xef, 0x47, 0xa4, 0x19, 0x2d, 0xed, 0xe4, 0x70}
	salted := append([]byte(password), salt...)
	key := digest(salted)
	s, err := NewSSL(key[:])
	if err != nil {
		return nil, err
	}
	second := digest(append(key[:], salted...))
	copy(s.iv[:], second[:])
	return s, nil
}

// digest is SHA-256 of SHA-256 of…, 10,000 times, as EVP_BytesToKey makes it.
func digest(b []byte) [sha256.Size]byte {
	sum := sha256.Sum256(b)
	for range 9999 {
		sum = sha256.Sum256(sum[:])
	}
	return sum
}

// ID is "ssl".
func (s *SSL) ID() string { return "ssl" }

// Encode is transport.Filter.Encode.
func (s *SSL) Encode(dst, src []byte) ([]byte, error) {
	from := len(dst)
	dst = append(dst, src...)
	padding := aes.BlockSize - len(src)%aes.BlockSize
	for range padding {
		dst = append(dst, byte(padding))
	}
	cipher.NewCBCEncrypter(s.block, s.iv[:]).CryptBlocks(dst[from:], dst[from:])
	return dst, nil
}

// Decode is transport.Filter.Decode.
func (s *SSL) Decode(dst, src []byte, limit int) ([]byte, error) {
	if len(src) == 0 || len(src)%aes.BlockSize != 0 {
		return nil, fmt.Errorf("%d bytes, which is not a number of blocks: %w", len(src), ErrContent)
	}
	if len(src)-aes.BlockSize > limit {
		return nil, fmt.Errorf("about %d bytes, %d are allowed: %w", len(src), limit, ErrLimit)
	}
	from := len(dst)
	dst = append(dst, src...)
	out := dst[from:]
	cipher.NewCBCDecrypter(s.block, s.iv[:]).CryptBlocks(out, out)
	padding := int(out[len(out)-1])
	good := subtle.ConstantTimeLessOrEq(1, padding) & subtle.ConstantTimeLessOrEq(padding, aes.BlockSize)
	for i, b := range out[len(out)-aes.BlockSize:] {
		in := subtle.ConstantTimeLessOrEq(aes.BlockSize-i, padding)
		good &= subtle.ConstantTimeSelect(in, subtle.ConstantTimeByteEq(b, byte(padding)), 1)
	}
	if good != 1 {
		return nil, fmt.Errorf("the end is not padding, so the key is another or the message was changed: %w", ErrContent)
	}
	if len(out)-padding > limit {
		return nil, fmt.Errorf("%d bytes, %d are allowed: %w", len(out)-padding, limit, ErrLimit)
	}
	return dst[:len(dst)-padding], nil
}
