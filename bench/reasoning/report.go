package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// environment is where and how the figures were taken.
type environment struct {
	CPU        string   `json:"cpu"`
	CPUs       int      `json:"cpus"`
	GOMAXPROCS int      `json:"gomaxprocs"`
	Go         string   `json:"go"`
	OS         string   `json:"goos"`
	Arch       string   `json:"goarch"`
	Time       string   `json:"time"`
	Clock      string   `json:"clock"` // "cpu": time of the process; "wall"
	Rounds     int      `json:"rounds"`
	RoundMS    float64  `json:"round_ms"`
	Load       *float64 `json:"load,omitempty"`      // of the machine, last minute, at the end
	CPUShare   float64  `json:"cpu_share,omitempty"` // CPU time by wall time of the rounds
	Parallel   float64  `json:"parallel,omitempty"`  // processors that two busy goroutines got
	Quick      bool     `json:"quick,omitempty"`
}

func thisMachine() environment {
	return environment{
		CPU: cpuModel(), CPUs: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0),
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		Time: time.Now().UTC().Format(time.RFC3339), Clock: clockName, Load: load(),
	}
}

// cpuModel returns the processor's name where the system has a file with it.
func cpuModel() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		key, value, _ := strings.Cut(line, ":")
		if key := strings.TrimSpace(key); key == "model name" || key == "Model" || key == "uarch" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// load returns how many programs wanted to run in the last minute, nil where
// the system has no file with it.
func load() *float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	n, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return nil
	}
	return &n
}

// warnings says what makes the figures doubtful.
func (r *results) warnings() []string {
	var list []string
	if r.Env.Quick {
		list = append(list, "a quick run: the rows were exercised, the figures mean little")
	}
	if r.Env.Clock == "cpu" && r.Env.CPUShare > 0 && r.Env.CPUShare < 0.8 {
		list = append(list, "other programs kept the machine busy; look at the ratios only")
	}
	if r.Env.GOMAXPROCS > 1 && r.Env.Parallel > 0 && r.Env.Parallel < enough {
		list = append(list, fmt.Sprintf("two busy goroutines got %.2f processors together; rows of several goroutines do not show contention", r.Env.Parallel))
	}
	return list
}

// json returns the run as the file of -json.
func (r *results) json() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	err := e.Encode(r)
	return b.Bytes(), err
}

// write writes the file of -json, to standard output for "-", and nothing for "".
func (r *results) write(name string, file *os.File, stdout io.Writer) error {
	if name == "" {
		return nil
	}
	text, err := r.json()
	if err != nil {
		return err
	}
	if file == nil {
		_, err := stdout.Write(text)
		return err
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	if _, err := file.Write(text); err != nil {
		return err
	}
	return file.Close()
}
