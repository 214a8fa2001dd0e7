package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/pierrec/lz4/v4"

	"github.com/madara-go/madara/transport/filter"
)

// perOperation runs f over and over for a time, and returns the time and the
// allocations of one.
func perOperation(length time.Duration, f func() error) (ns, allocs float64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began, n := time.Now(), 0
	for ; time.Since(began) < length; n += 16 {
		for range 16 {
			if err := f(); err != nil {
				return 0, 0, err
			}
		}
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	return float64(took.Nanoseconds()) / float64(n), float64((after.Mallocs - before.Mallocs) / uint64(n)), nil
}

// sealRound measures to seal and open a datagram of so many bytes.
func sealRound(size int) func(time.Duration) (ns, allocs float64, err error) {
	return func(length time.Duration) (ns, allocs float64, err error) {
		key := filter.NewKey()
		a, err := filter.NewAEAD(1, key)
		if err != nil {
			return 0, 0, err
		}
		b, err := filter.NewAEAD(1, key)
		if err != nil {
			return 0, 0, err
		}
		datagram := make([]byte, size)
		var sealed, opened []byte
		return perOperation(length, func() error {
			if sealed, err = a.Seal(sealed[:0], datagram); err != nil {
				return err
			}
			if opened, err = b.Open(opened[:0], sealed); err == nil && len(opened) != size {
				err = fmt.Errorf("%d bytes came out of %d", len(opened), size)
			}
			return err
		})
	}
}

func smallSealRound(length time.Duration) (sample, error) {
	ns, allocs, err := sealRound(64)(length)
	return sample{figure: ns / 1000, allocs: allocs}, err
}

func largeSealRound(length time.Duration) (sample, error) {
	const size = 60_000
	small, _, err := sealRound(64)(length / 2)
	if err != nil {
		return sample{}, err
	}
	large, allocs, err := sealRound(size)(length / 2)
	return sample{figure: (large - small) / (size - 64), allocs: allocs}, err
}

// lz4Round measures to encode and decode a message of 60 KB with the filter, and
// with the bare library as baseline; in MB per second.
func lz4Round(length time.Duration) (sample, error) {
	message := telemetry(60_000)
	var encoded, decoded []byte
	var f filter.LZ4
	ns, allocs, err := perOperation(length/2, func() (err error) {
		if encoded, err = f.Encode(encoded[:0], message); err != nil {
			return err
		}
		if decoded, err = f.Decode(decoded[:0], encoded, 500_000); err == nil && !bytes.Equal(decoded, message) {
			err = errors.New("other bytes came out")
		}
		return err
	})
	if err != nil {
		return sample{}, err
	}
	var c lz4.Compressor
	block, out := make([]byte, lz4.CompressBlockBound(len(message))), make([]byte, len(message))
	bare, _, err := perOperation(length/2, func() error {
		n, err := c.CompressBlock(message, block)
		if err == nil {
			_, err = lz4.UncompressBlock(block[:n], out)
		}
		if err == nil && !bytes.Equal(out, message) {
			err = errors.New("other bytes came out of the library")
		}
		return err
	})
	rate := func(ns float64) float64 { return float64(len(message)) * 1000 / ns }
	return sample{figure: rate(ns), baseline: rate(bare), allocs: allocs, note: fmt.Sprintf("to %d %%", 100*len(encoded)/len(message))}, err
}

// telemetry is text as variables of robots are: names again and again, and
// numbers that differ.
func telemetry(size int) []byte {
	random := rand.New(rand.NewPCG(1, 1))
	var b []byte
	for i := 0; len(b) < size; i++ {
		b = fmt.Appendf(b, "agent.%d.location=%.6f,%.6f;", i%20, 40+random.Float64(), -79+random.Float64())
	}
	return b[:size]
}
