package main

import (
	"encoding/hex"
	"fmt"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/filter"
)

// secrets is the flags of what messages go through on their way.
type secrets struct {
	LZ4         bool   `name:"lz4" help:"Compress messages, before they are encrypted."`
	AESPassword string `name:"aes-password" placeholder:"TEXT" help:"Encrypt messages as MADARA's AES filter does, with a key made of a password. It proves nothing; others can see the command line."`
	AESKeyFile  string `name:"aes-key-file" placeholder:"FILE" help:"The same with a key of 32 bytes in a file that nobody else may read."`
	AEADKeyFile string `name:"aead-key-file" placeholder:"FILE" help:"Seal each datagram with the key in FILE (karl keygen): nobody without it can read, make or change one. Peers need this library."`
	AEADKeyID   uint32 `name:"aead-key-id" placeholder:"N" default:"1" help:"The number of that key among the keys of the fleet; the default is 1."`
}

func (s *secrets) check() error {
	if s.AESPassword != "" && s.AESKeyFile != "" {
		return fmt.Errorf("--aes-password does not go with --aes-key-file")
	}
	return nil
}

func (s *secrets) given() bool {
	return s.LZ4 || s.AESPassword != "" || s.AESKeyFile != "" || s.AEADKeyFile != ""
}

// filters returns what whole messages go through.
func (s *secrets) filters() (list []transport.Filter, err error) {
	if s.LZ4 {
		list = append(list, filter.LZ4{})
	}
	var ssl *filter.SSL
	switch {
	case s.AESPassword != "":
		if ssl, err = filter.NewSSLPassword(s.AESPassword); err != nil {
			return nil, failf(exitUsage, "--aes-password: %w", err)
		}
	case s.AESKeyFile != "":
		key, err := filter.ReadKeyFile(s.AESKeyFile)
		if err != nil {
			return nil, failf(exitIO, "--aes-key-file: %w", err)
		}
		if ssl, err = filter.NewSSL(key); err != nil {
			return nil, failf(exitIO, "--aes-key-file: %w", err)
		}
	default:
		return list, nil
	}
	return append(list, ssl), nil
}

// sealer returns what seals datagrams, nil for nothing.
func (s *secrets) sealer() (transport.Sealer, error) {
	if s.AEADKeyFile == "" {
		return nil, nil
	}
	key, err := filter.ReadKeyFile(s.AEADKeyFile)
	if err == nil {
		var a *filter.AEAD
		if a, err = filter.NewAEAD(s.AEADKeyID, key); err == nil {
			return a, nil
		}
	}
	return nil, failf(exitIO, "--aead-key-file: %w", err)
}

type keygenCmd struct {
	Out      string `placeholder:"FILE" help:"Write the key to a new file that only you may read, instead of printing it."`
	Password string `placeholder:"TEXT" help:"Make the key of a password of at least 8 bytes, the same on every machine, instead of a random one. Others can see the command line."`
	Salt     string `placeholder:"TEXT" help:"With --password: the name of the fleet, at least 8 bytes, so that another fleet with the same password has another key."`
}

// Help is shown by kong below the usage.
func (c *keygenCmd) Help() string {
	return `The key has 32 bytes and is written as 64 hexadecimal digits, for --aead-key-file and --aes-key-file. A password is turned into a key with Argon2id (3 passes, 64 MiB, 4 lanes).`
}

// Validate is called by kong.
func (c *keygenCmd) Validate() error {
	if (c.Password == "") != (c.Salt == "") {
		return fmt.Errorf("--password and --salt go together")
	}
	return nil
}

// Run is called by kong.
func (c *keygenCmd) Run(p *process) error {
	key := filter.NewKey()
	if c.Password != "" {
		var err error
		if key, err = filter.PasswordKey(c.Password, c.Salt); err != nil {
			return fail(exitUsage, err)
		}
	}
	if c.Out == "" {
		fmt.Fprintln(p.out, hex.EncodeToString(key))
		return nil
	}
	if err := filter.WriteKeyFile(c.Out, key); err != nil {
		return fail(exitIO, err)
	}
	return nil
}
