package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/madara-go/madara/karl"
)

type fmtCmd struct {
	File  []string `arg:"" help:"Program files; - is standard input."`
	List  bool     `short:"l" help:"Print the names of the files whose layout differs instead of their texts."`
	Write bool     `short:"w" help:"Write the files in place instead of printing their texts."`
	Diff  bool     `short:"d" help:"Print what would change, as a unified diff, instead of the texts."`
}

// Help is shown by kong below the usage.
func (c *fmtCmd) Help() string {
	return `All files get the one layout that programs share: a line for each statement, blocks indented by a tab, short blocks on one line as they were, comments in their places. What the programs do stays the same. Nothing is written or printed if one of them does not compile.

The exit code is 1 if --list or --diff found a file that differs, unless --write has mended it.`
}

// Validate is called by kong.
func (c *fmtCmd) Validate() error {
	for _, file := range c.File {
		if c.Write && file == "-" {
			return fmt.Errorf("--write cannot write to standard input (-)")
		}
	}
	return nil
}

// Run is called by kong.
func (c *fmtCmd) Run(p *process) error {
	texts := make([][2]string, len(c.File)) // as they are, and as they should be
	var reads, faults []error
	for i, file := range c.File {
		b, err := p.read(file, karl.DefaultMaxSource+1)
		if errors.Is(err, errTwice) {
			return fail(exitUsage, err)
		} else if err != nil {
			reads = append(reads, err)
			continue
		}
		text, err := karl.Format(string(b))
		if err != nil {
			faults = append(faults, named(err, file))
		}
		texts[i] = [2]string{string(b), text}
	}
	switch {
	case reads != nil:
		return fail(exitIO, append(reads, faults...)...)
	case faults != nil:
		return fail(exitCompile, faults...)
	}
	differs := false
	for i, file := range c.File {
		before, after := texts[i][0], texts[i][1]
		if !c.List && !c.Write && !c.Diff {
			p.out.Write([]byte(after))
			continue
		}
		if before == after {
			continue
		}
		differs = true
		if c.List {
			fmt.Fprintln(p.out, file)
		}
		if c.Diff {
			p.out.Write(unified(file, before, after))
		}
		if c.Write {
			if err := replace(file, after); err != nil {
				return err
			}
		}
	}
	if differs && !c.Write {
		return fail(exitUnreached)
	}
	return nil
}

// named gives faults the name of the file that they are in.
func named(err error, file string) error {
	var list karl.ErrorList
	if errors.As(err, &list) {
		if file == "-" {
			file = "<stdin>"
		}
		for _, e := range list {
			e.Name = file
		}
	}
	return err
}

// unified returns a unified diff between a file as it is and as it should be.
func unified(file, before, after string) []byte {
	d := diff.Diff(file, []byte(before), file+" (laid out)", []byte(after))
	_, d, _ = bytes.Cut(d, []byte("\n")) // the command line of a diff
	return d
}

// replace writes a file anew, at once and with the mode it has. What a symbolic
// link leads to is replaced, and not the link.
func replace(file, text string) (err error) {
	file, err = filepath.EvalSymlinks(file)
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err = f.WriteString(text); err != nil {
		return err
	}
	if err = f.Chmod(info.Mode().Perm()); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
