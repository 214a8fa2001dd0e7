package harness

import "runtime"

// Resources is what a process used.
type Resources struct {
	CPUSeconds float64 `json:"cpu_seconds"`
	MaxRSS     int64   `json:"max_rss_bytes"`
	Mallocs    uint64  `json:"mallocs"`
	GCs        uint32  `json:"gcs"`
	MaxPause   float64 `json:"max_gc_pause_us"`
	Switches   int64   `json:"context_switches"`
}

func readResources() Resources {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r := Resources{Mallocs: m.Mallocs, GCs: m.NumGC}
	r.usage()
	return r
}

// since subtracts what was used before.
func (r Resources) since(before Resources) Resources {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	for n := before.GCs; n < m.NumGC && m.NumGC-n < uint32(len(m.PauseNs)); n++ {
		r.MaxPause = max(r.MaxPause, float64(m.PauseNs[n%uint32(len(m.PauseNs))])/1000)
	}
	r.CPUSeconds -= before.CPUSeconds
	r.Mallocs -= before.Mallocs
	r.GCs -= before.GCs
	r.Switches -= before.Switches
	return r
}

// add sums the resources of processes.
func (r *Resources) add(o Resources) {
	r.CPUSeconds += o.CPUSeconds
	r.MaxRSS += o.MaxRSS
	r.Mallocs += o.Mallocs
	r.GCs += o.GCs
	r.MaxPause = max(r.MaxPause, o.MaxPause)
	r.Switches += o.Switches
}
