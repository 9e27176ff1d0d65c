package providers

import (
	"errors"
	"fmt"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// effect is what the deletion of a provider's resource removes.
type effect struct {
	provider v1alpha2.Provider
	// removed are the things that go, and blocks what prevents that, each as text.
	removed, blocks []string
}

func (e *effect) add(format string, args ...any) {
	e.removed = append(e.removed, fmt.Sprintf(format, args...))
}

func (e *effect) block(format string, args ...any) {
	e.blocks = append(e.blocks, fmt.Sprintf(format, args...))
}

// tree returns the lines of a dry run.
func (e *effect) tree() cli.Node {
	node := cli.Node{Text: v1alpha2.FullName(e.provider) + " would be removed"}
	if len(e.blocks) > 0 {
		node.Text = v1alpha2.FullName(e.provider) + " cannot be removed now"
	}

	for _, text := range e.removed {
		node.Add(cli.Plain, text)
	}

	for _, text := range e.blocks {
		node.Add(cli.Red, "blocked: "+text)
	}

	return node
}

// refusal returns an error that lists what prevents the removal of providers; nil if nothing does.
func refusal(effects []*effect) error {
	var lines []string

	for _, e := range effects {
		for _, text := range e.blocks {
			lines = append(lines, fmt.Sprintf("  %s: %s", v1alpha2.FullName(e.provider), text))
		}
	}

	if len(lines) == 0 {
		return nil
	}

	return errors.New("nothing is deleted, because not all providers can be removed:\n" + strings.Join(lines, "\n"))
}
