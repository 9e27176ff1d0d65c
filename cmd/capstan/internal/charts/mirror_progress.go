package charts

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/capstan-project/capstan/chartgen/mirror"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

const (
	// redrawInterval is the least time between two updates of the status line.
	redrawInterval = 100 * time.Millisecond
	// clearLine removes the status line.
	clearLine = "\r\x1b[K"
)

// progress prints a line for each item that is done. On a terminal it also keeps a status line below
// them.
type progress struct {
	out      io.Writer
	terminal bool
	items    int
	total    int64 // bytes
	start    time.Time

	mu       sync.Mutex
	copied   int64 // bytes
	present  int64 // bytes that the target had
	finished int   // items
	drawn    time.Time
}

func newProgress(out io.Writer, items []*mirror.Item) *progress {
	p := &progress{out: out, items: len(items), start: time.Now()}

	if file, isFile := out.(*os.File); isFile {
		p.terminal = cli.IsTerminal(file)
	}

	for _, item := range items {
		p.total += item.Size
	}

	return p
}

// advance updates the status line.
func (p *progress) advance(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.copied += bytes

	if time.Since(p.drawn) > redrawInterval {
		p.draw()
	}
}

// finish prints the line of an item.
func (p *progress) finish(item *mirror.Item, result mirror.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()

	outcome := "copied"

	switch {
	case result.Err != nil:
		outcome = "failed"
	case result.Copied == 0:
		outcome = "present"
	}

	if result.Err == nil {
		p.present += item.Size - result.Copied
	}

	p.finished++
	p.clear()
	fmt.Fprintf(p.out, "%-7s  %10s  %s\n", outcome, cli.Size(item.Size), cli.Text(item.Name))
	p.draw()
}

// end replaces the status line with a summary.
func (p *progress) end() {
	p.clear()
	fmt.Fprintf(p.out, "%s copied in %s\n", cli.Size(p.copied), time.Since(p.start).Round(time.Millisecond))
}

func (p *progress) draw() {
	if !p.terminal {
		return
	}

	p.drawn = time.Now()
	seconds := max(time.Since(p.start).Seconds(), 0.1)

	fmt.Fprintf(
		p.out,
		clearLine+"%s of %s  %s/s  %d of %d",
		cli.Size(p.copied+p.present),
		cli.Size(p.total),
		cli.Size(int64(float64(p.copied)/seconds)),
		p.finished,
		p.items,
	)
}

func (p *progress) clear() {
	if p.terminal {
		fmt.Fprint(p.out, clearLine)
	}
}
