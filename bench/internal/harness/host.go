package harness

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Host is where it was measured.
type Host struct {
	Arch        string  `json:"arch"`
	OS          string  `json:"os"`
	Kernel      string  `json:"kernel"`
	CPU         string  `json:"cpu"`
	Cores       int     `json:"cores"`
	GOMAXPROCS  int     `json:"gomaxprocs"`
	Governor    string  `json:"governor"`
	Memory      int64   `json:"memory_bytes"`
	Virtual     string  `json:"virtual"`
	ClockSource string  `json:"clock_source"`
	Daemon      *Daemon `json:"clock_daemon,omitempty"`
	Ends        string  `json:"ends,omitempty"` // what ran there, with --connect
	LoadBefore  float64 `json:"load_before"`    // programs that wanted to run in the last minute, -1 unknown
	LoadAfter   float64 `json:"load_after"`
}

// Daemon is what the daemon that synchronises a host's clock told the kernel.
type Daemon struct {
	Synchronised bool  `json:"synchronised"`
	MaxErrorUS   int64 `json:"max_error_us"`
}

func readFile(name string) string {
	text, _ := os.ReadFile(name) // absent where there is no such system
	return strings.TrimSpace(string(text))
}

func thisHost() *Host {
	h := &Host{
		Arch: runtime.GOARCH, OS: runtime.GOOS, Kernel: readFile("/proc/sys/kernel/osrelease"), CPU: "unknown",
		Cores: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0),
		Governor: readFile("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"), Virtual: "unknown", LoadBefore: load(), ClockSource: clockSource(), Daemon: daemonWord(),
	}
	for line := range strings.Lines(readFile("/proc/cpuinfo")) {
		key, value, _ := strings.Cut(line, ":")
		switch key, value = strings.TrimSpace(key), strings.TrimSpace(value); {
		case key == "model name" || key == "Model" || key == "uarch":
			h.CPU = value
		case key == "flags" && strings.Contains(value+" ", " hypervisor "):
			h.Virtual = "virtual machine"
		}
	}
	if _, err := os.Stat("/.dockerenv"); err == nil {
		h.Virtual = "container"
	}
	if _, rest, ok := strings.Cut(readFile("/proc/meminfo"), "MemTotal:"); ok {
		fields := strings.Fields(rest)
		if len(fields) > 0 {
			kb, _ := strconv.ParseInt(fields[0], 10, 64) // 0 is unknown
			h.Memory = kb << 10
		}
	}
	return h
}

func load() float64 {
	first, _, _ := strings.Cut(readFile("/proc/loadavg"), " ")
	n, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return -1
	}
	return n
}
