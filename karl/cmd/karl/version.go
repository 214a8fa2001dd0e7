package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCmd struct {
	JSON bool `name:"json" help:"Print as a JSON object."`
}

// version is what the build recorded about the command.
type version struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
}

func readVersion() version {
	v := version{Version: "(unknown)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version = info.Main.Version
	if v.Version == "" {
		v.Version = "(devel)"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// Run is called by kong.
func (c *versionCmd) Run(p *process) error {
	v := readVersion()
	if c.JSON {
		return json.NewEncoder(p.out).Encode(v)
	}
	fmt.Fprintf(p.out, "karl %s %s %s\n", v.Version, v.Go, v.Platform)
	if v.Revision != "" {
		fmt.Fprintf(p.out, "revision %s %s", v.Revision, v.Time)
		if v.Modified {
			fmt.Fprint(p.out, " modified")
		}
		fmt.Fprintln(p.out)
	}
	return nil
}
