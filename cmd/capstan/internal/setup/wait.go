package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"golang.org/x/term"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// pollInterval is how often the providers are read.
const pollInterval = 300 * time.Millisecond

// progress is the state of a provider that is waited for.
type progress struct {
	resource v1alpha2.Provider
	// printed is the state that was printed last.
	printed string
	done    bool
	err     error
}

// waitForAll waits until all providers are ready or have failed, and prints their states: on a terminal with a bar
// for each, otherwise a line for each change.
func (o *options) waitForAll(ctx context.Context, cluster *cli.Cluster, resources []v1alpha2.Provider) error {
	ctx, cancel := context.WithTimeout(ctx, o.wait.Timeout)
	defer cancel()

	all := make([]*progress, 0, len(resources))
	for _, r := range resources {
		all = append(all, &progress{resource: r})
	}

	view := newView(o)
	retries := o.Retries()

	for {
		pending := false

		for _, p := range all {
			if !p.done {
				p.update(ctx, cluster, retries)
			}

			pending = pending || !p.done
		}

		view.draw(all)

		if !pending {
			return failures(all)
		}

		select {
		case <-ctx.Done():
			return errors.Join(failures(all), late(ctx, all, o.wait.Timeout))
		case <-time.After(pollInterval):
		}
	}
}

// update reads the provider.
func (p *progress) update(ctx context.Context, cluster *cli.Cluster, retries func(error) bool) {
	err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(p.resource), p.resource)

	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		p.done, p.err = cli.Ready(p.resource)
	case !retries(err):
		p.err = fmt.Errorf("read %s: %w", v1alpha2.FullName(p.resource), err)
	}

	p.done = p.done || p.err != nil
}

// failures returns the errors of providers that have failed.
func failures(all []*progress) error {
	errs := make([]error, 0, len(all))

	for _, p := range all {
		errs = append(errs, p.err)
	}

	return errors.Join(errs...)
}

// late returns the error for providers that are not ready in time; nil if the user has interrupted the command.
func late(ctx context.Context, all []*progress, timeout time.Duration) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}

	var states []string

	for _, p := range all {
		if !p.done {
			states = append(states, fmt.Sprintf("%s: %s", v1alpha2.FullName(p.resource), cli.Readiness(p.resource)))
		}
	}

	return fmt.Errorf("not ready after %s; the operator continues, follow it with `capstan status --watch`:\n%s",
		timeout, strings.Join(states, "\n"))
}

// The steps of an installation, which a bar shows.
const (
	steps    = 5
	barWidth = 20

	// defaultWidth is that of a terminal that does not tell its own.
	defaultWidth = 80
)

// step returns how many of the steps a provider has done.
func (p *progress) step() int {
	status := p.resource.GetStatus()

	switch {
	case p.done && p.err == nil:
		return steps
	case conditions.IsTrue(p.resource, v1alpha2.ProviderInstalledCondition):
		return 4
	case status.Release != nil:
		return 3
	case conditions.IsTrue(p.resource, v1alpha2.PreflightCheckCondition):
		return 2
	case status.ObservedGeneration == p.resource.GetGeneration():
		return 1
	}

	return 0
}

// view prints the progress.
type view struct {
	*options

	terminal *os.File // nil if the output is not a terminal
	lines    int      // on the terminal
}

func newView(o *options) *view {
	v := &view{options: o}
	if out, isFile := o.Out.(*os.File); isFile && cli.IsTerminal(out) {
		v.terminal = out
	}

	return v
}

// draw prints the states that have changed, or all of them in place of those before.
func (v *view) draw(all []*progress) {
	if v.terminal != nil {
		v.drawBars(all)
		return
	}

	for _, p := range all {
		if state := cli.Readiness(p.resource); state != p.printed {
			v.Printf("%s: %s", v1alpha2.FullName(p.resource), state)
			p.printed = state
		}
	}
}

// drawBars draws a line for each provider, in place of the lines before. A line that the terminal wrapped would count
// as two.
func (v *view) drawBars(all []*progress) {
	width, _, err := term.GetSize(int(v.terminal.Fd()))
	if err != nil || width <= 0 {
		width = defaultWidth
	}

	if v.lines > 0 {
		fmt.Fprintf(v.Out, "\x1b[%dA", v.lines)
	}

	v.lines = len(all)

	for _, p := range all {
		done := p.step() * barWidth / steps
		bar := strings.Repeat("█", done) + strings.Repeat("░", barWidth-done)
		line := fmt.Sprintf("%s %-24s %s", bar, v1alpha2.Label(p.resource), cli.Readiness(p.resource))

		fmt.Fprintf(v.Out, "\x1b[K%s\n", cli.Text(firstLine(line, width-1)))
	}
}

// firstLine returns the first line of a text, with at most the given number of characters.
func firstLine(text string, most int) string {
	line, _, _ := strings.Cut(text, "\n")
	if runes := []rune(line); len(runes) > most {
		return string(runes[:max(most-1, 0)]) + "…"
	}

	return line
}
