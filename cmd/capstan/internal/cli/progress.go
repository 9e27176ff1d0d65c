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
	out   io.Writer
	width int // of the terminal; 0 if there is none

	mu    sync.Mutex
	names []string          // of the lines that change, in their order
	lines map[string]string // by name
	drawn int               // lines that change on the terminal
}

// NewProgress shows progress on a stream.
func NewProgress(out io.Writer) *Progress {
	return &Progress{out: out, width: Width(out), lines: map[string]string{}}
}

// Show sets the line with a name that changes. Without a terminal it does nothing, and returns false.
func (p *Progress) Show(name, line string) bool {
	if p.width == 0 {
		return false
	}

	p.change(func() {
		if _, exists := p.lines[name]; !exists {
			p.names = append(p.names, name)
		}

		p.lines[name] = line
	})

	return true
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
	p.change(func() { fmt.Fprintln(p.out, Text(fmt.Sprintf(format, args...))) })
}

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

	for _, name := range p.names {
		fmt.Fprintln(p.out, Cut(object.Printable(p.lines[name]), p.width))
	}

	p.drawn = len(p.names)
}
