package cli

import (
	"fmt"
	"io"
	"sync"

	"github.com/capstan-project/capstan/controllers/object"
)

// Progress shows the progress of a command: on a terminal, lines that change, below those that stay.
type Progress struct {
	out    io.Writer
	width  int // of the terminal; 0 if there is none
	height int

	mu    sync.Mutex
	lines []string // that change
	drawn []string // the rows that change, as they are on the terminal
}

// NewProgress shows progress on a stream.
func NewProgress(out io.Writer) *Progress {
	width, height := size(out)

	return &Progress{out: out, width: width, height: height}
}

// Show sets the lines that change; without any, it removes them. Only the rows that become others are written. Without
// a terminal it does nothing.
func (p *Progress) Show(lines ...string) {
	if !p.isTerminal() {
		return
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	p.lines = lines
	p.draw()
}

// isTerminal reports whether there are lines that change.
func (p *Progress) isTerminal() bool { return p.width > 0 }

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

// change prints something while the lines that change are not on the terminal.
func (p *Progress) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.erase()
	do()
	p.draw()
}

func (p *Progress) erase() {
	if len(p.drawn) > 0 {
		fmt.Fprintf(p.out, "\x1b[%dA\x1b[J", len(p.drawn)) // up, and clears what is below
	}

	p.drawn = nil
}

func (p *Progress) draw() {
	shown := p.shown()
	if len(shown) != len(p.drawn) {
		p.erase()
	}

	for i, row := range shown {
		switch {
		case p.drawn == nil:
			fmt.Fprintln(p.out, row)
		case p.drawn[i] != row:
			fmt.Fprintf(p.out, "\x1b[%dA\x1b[2K%s\r\x1b[%[1]dB", len(shown)-i, row) // up, clears the row, and down
		}
	}

	p.drawn = shown
}

// shown returns the rows that fit on the terminal, whose last one is empty: above its first one, nothing can be
// cleared any more. Long lines are wrapped, or cut if that takes too many rows.
func (p *Progress) shown() []string {
	most := max(p.height-1, 1)

	var wrapped []string

	cut := make([]string, 0, len(p.lines))

	for _, line := range p.lines {
		line = object.Printable(line)
		cut = append(cut, Cut(line, p.width))

		for i, part := range wrap(line, p.width-len(continued)) {
			if i > 0 {
				part = continued + part
			}

			wrapped = append(wrapped, Cut(part, p.width))
		}
	}

	switch {
	case len(wrapped) <= most:
		return wrapped
	case len(cut) <= most:
		return cut
	}

	return append(cut[:most-1], fmt.Sprintf("… and %d more", len(cut)-most+1))
}

// continued begins the further rows of a line.
const continued = "  "
