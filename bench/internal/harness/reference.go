package harness

// Reference is a published row of R2Kernel.
type Reference struct {
	Track, Topology, Condition, Figure, Unit string
}

// referenceRemark stands beside the table.
const referenceRemark = "R2Kernel as published, for context: another machine, another system, no gate. Its mean at N=512 is hundreds of periods long, so it is the length of a queue and not a latency."

var references = []Reference{
	{"event", "same host", "64 B-4 KiB, N=1..16, 1000 Hz", "lossless, subscriber mean 23.413-39.963", "us"},
	{"event", "cross host", "64 B-4 KiB, N=1..16, 1000 Hz", "lossless, subscriber mean 116.631-175.347", "us"},
	{"event", "cross host", "8 B, N=512, 1000 Hz", "lossless, subscriber mean about 541", "ms"},
	{"event", "cross host", "8 B, N=1024, 1000 Hz", "1008 of 1024 completed", "endpoints"},
	{"event", "same host", "round trip, 64 B-64 KiB, 10,000", "average 43.125-115.346, failures 0", "us"},
	{"event", "cross host", "round trip, 64 B-64 KiB, 10,000", "average 239.061-479.578, failures 0", "us"},
	{"control", "same host", "C++, 8 B, 1 kHz", "average 82.174, p95 99.097, failures 0", "us"},
	{"control", "cross host", "C++, 8 B, 1 kHz", "average 383.970, p95 793.900, failures 0", "us"},
	{"control", "cross host", "C++, 1 MiB, about 30 Hz, size of the answer not stated", "average 14.890, p95 16.038, failures 0", "ms"},
}

func referencesOf(track string) []Reference {
	var list []Reference
	for _, r := range references {
		if r.Track == track {
			list = append(list, r)
		}
	}
	return list
}
