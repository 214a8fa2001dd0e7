package filter

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/crypto/argon2"
)

// NewKey returns a random key of 32 bytes.
func NewKey() []byte {
	key := make([]byte, KeySize)
	rand.Read(key)
	return key
}

// The parameters of Argon2id in [PasswordKey]: three passes over 64 MiB with 4
// lanes, as RFC 9106 has it for machines with little memory.
const (
	argonTime    = 3
	argonMemory  = 64 << 10 // KiB
	argonThreads = 4
	minPassword  = 8 // bytes
	minSalt      = 8
)

// PasswordKey makes a key of 32 bytes out of a password with Argon2id, which
// takes about a tenth of a second and 64 MiB on purpose. The salt is the same for
// all members of a fleet, and best another one for each fleet: its name will do. A
// random key in a file is better.
func PasswordKey(password, salt string) ([]byte, error) {
	switch {
	case len(password) < minPassword:
		return nil, fmt.Errorf("a password of %d bytes, at least %d are needed: %w", len(password), minPassword, ErrKey)
	case len(salt) < minSalt:
		return nil, fmt.Errorf("a salt of %d bytes, at least %d are needed: %w", len(salt), minSalt, ErrKey)
	}
	return argon2.IDKey([]byte(password), []byte(salt), argonTime, argonMemory, argonThreads, KeySize), nil
}

// ReadKeyFile reads a key: a file of 32 bytes, or of 64 hexadecimal digits and
// perhaps a line end. Where files have owners, nobody but the owner may be allowed
// to read or write it.
func ReadKeyFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); modesCount && mode&0o077 != 0 {
		return nil, fmt.Errorf("key file %s has the mode %v, so others can use it; want %v: %w", name, mode, os.FileMode(0o600), ErrKey)
	}
	b, err := io.ReadAll(io.LimitReader(f, 128))
	if err != nil {
		return nil, err
	}
	if len(b) == KeySize {
		return b, nil
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(key) != KeySize {
		return nil, fmt.Errorf("key file %s has %d bytes; want %d, or %d hexadecimal digits: %w", name, len(b), KeySize, 2*KeySize, ErrKey)
	}
	return key, nil
}

// WriteKeyFile writes a key as hexadecimal digits to a new file that only its
// owner may read.
func WriteKeyFile(name string, key []byte) error {
	if len(key) != KeySize {
		return fmt.Errorf("a key of %d bytes, %d are needed: %w", len(key), KeySize, ErrKey)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(hex.EncodeToString(key) + "\n")
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
