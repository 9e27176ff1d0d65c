package cli

import (
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/capstan-project/capstan/controllers/object"
)

// Progress shows the progress of a command: on a terminal, lines that change, below those that stay.
type Progress struct {
	out    io.Writer
	width  int // of the terminal; 0 if there is none
	height int

	mu    sync.Mutex
	names []string          // of the lines that change, in their order
	lines map[string]string // by name
	drawn int               // lines that change on the terminal
}

// NewProgress shows progress on a stream.
func NewProgress(out io.Writer) *Progress {
	width, height := size(out)

	return &Progress{out: out, width: width, height: height, lines: map[string]string{}}
}

// Show sets the line with a name that changes. Without a terminal it does nothing, and returns false.
func (p *Progress) Show(name, line string) bool {
	p.change(func() { p.set(name, line) })

	return p.isTerminal()
}

// isTerminal reports whether there are lines that change.
func (p *Progress) isTerminal() bool { return p.width > 0 }

// set sets a line, to be drawn.
func (p *Progress) set(name, line string) {
	if !p.isTerminal() {
		return
	}

	if _, exists := p.lines[name]; !exists {
		p.names = append(p.names, name)
	}

	p.lines[name] = line
}

// clear removes all lines that change, within change.
func (p *Progress) clear() {
	p.names = nil
	clear(p.lines)
}

// Drop removes the line with a name.
func (p *Progress) Drop(name string) {
	p.change(func() {
		p.names = slices.DeleteFunc(p.names, func(n string) bool { return n == name })
		delete(p.lines, name)
	})
}

// Printf prints a line that stays.
func (p *Progress) Printf(format string, args ...any) {
	p.change(func() { p.print(fmt.Sprintf(format, args...)) })
}

// print prints a line that stays, within change.
func (p *Progress) print(line string) { fmt.Fprintln(p.out, Text(line)) }

// Retries returns the function of Options, whose warning does not disturb the lines.
func (p *Progress) Retries(o *Options) func(error) bool {
	retries := o.Retries()

	return func(err error) (again bool) {
		p.change(func() { again = retries(err) })
		return again
	}
}

// change makes a change while the lines that change are not on the terminal.
func (p *Progress) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.drawn > 0 {
		fmt.Fprintf(p.out, "\x1b[%dA\x1b[J", p.drawn) // up, and clears what is below
	}

	do()

	shown := p.shown()
	for _, line := range shown {
		fmt.Fprintln(p.out, Cut(object.Printable(line), p.width))
	}

	p.drawn = len(shown)
}

// shown returns the lines that fit on the terminal, whose last row is empty: above its first one, nothing can be
// cleared any more.
func (p *Progress) shown() []string {
	lines := make([]string, 0, len(p.names))
	for _, name := range p.names {
		lines = append(lines, p.lines[name])
	}

	most := max(p.height-1, 1)
	if len(lines) <= most {
		return lines
	}

	return append(lines[:most-1], fmt.Sprintf("… and %d more", len(lines)-most+1))
}
