package transport

// Filter changes whole messages before they are cut into fragments, and back:
// compression, encryption. Implementations are in transport/filter. The header
// that names the filter on the wire belongs to transport/wire. A Filter may be
// used by many goroutines.
type Filter interface {
	// ID is what the header says, 1 to 8 bytes; both ends use the same.
	ID() string
	// Encode appends the encoded form of src to dst.
	Encode(dst, src []byte) ([]byte, error)
	// Decode appends the original of src, at most limit bytes of it, to dst.
	Decode(dst, src []byte, limit int) ([]byte, error)
}

// Sealer encrypts and authenticates single datagrams, outermost, after messages
// were cut into fragments. A Sealer may be used by many goroutines.
type Sealer interface {
	// Overhead is how much longer a sealed datagram is, in bytes.
	Overhead() int
	// Seal appends the sealed form of a datagram to dst.
	Seal(dst, datagram []byte) ([]byte, error)
	// Open appends the datagram to dst, or returns an error: ErrUnknownKey,
	// ErrForged and ErrReplayed are counted as what they are.
	Open(dst, datagram []byte) ([]byte, error)
}
