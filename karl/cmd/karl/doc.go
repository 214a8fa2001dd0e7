package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/madara-go/madara/karl/doc"
)

type docCmd struct {
	Topic []string `arg:"" optional:"" help:"A topic of the language, or a system call as #size. Without one the topics are listed."`
}

// Run is called by kong.
func (c *docCmd) Run(p *process) error {
	if len(c.Topic) == 0 {
		for _, topic := range doc.Topics() {
			fmt.Fprintf(p.out, "%-18s %s\n", topic.Name, topic.Title)
		}
		return nil
	}
	text, err := topicText(strings.Join(c.Topic, " "))
	if err != nil {
		return fail(exitUsage, err)
	}
	io.WriteString(p.out, text)
	return nil
}

// topicText returns a topic with its title underlined. The error names others.
func topicText(name string) (string, error) {
	topic, near, ok := doc.Find(name)
	switch {
	case ok && strings.HasPrefix(topic.Name, "#"):
		return topic.Text, nil
	case ok:
		return topic.Title + "\n" + strings.Repeat("=", len(topic.Title)) + "\n\n" + topic.Text, nil
	case len(near) > 0:
		return "", fmt.Errorf("there is no topic %q; did you mean %s?", name, strings.Join(near, ", "))
	}
	return "", fmt.Errorf("there is no topic %q; \"karl doc\" lists them", name)
}
