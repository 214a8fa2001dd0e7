package knowledge

// Stats is what a base holds at one moment, for monitoring. What was sent and
// received is in the Stats of each [Attachment].
type Stats struct {
	Variables   int    // with a value or named by a program, a handle or a wait
	Marked      int    // to be sent
	Functions   int    // names that are defined or called
	Waiting     int    // waits that sleep until a change
	Watches     int    // loops over Watch
	Attachments int    // transports that the base is attached to
	Texts       int    // programs that Evaluate and Compile remember by their texts
	TextBytes   int    // about how much those take
	Clock       uint64 // Lamport time of the base
}

// Stats returns what the base holds now. It is cheap, and may be called often.
func (b *Base) Stats() Stats {
	b.lock("Base.Stats")
	s := Stats{
		Variables: b.store.Size(), Marked: b.store.Marked(), Functions: b.env.Functions(),
		Waiting: b.store.Waiting(), Watches: b.store.Watching(),
		Attachments: len(b.attachments), Clock: b.store.Clock,
	}
	b.unlock()
	s.Texts, s.TextBytes = b.texts.size()
	return s
}
