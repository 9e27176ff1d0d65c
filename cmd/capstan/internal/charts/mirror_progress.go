package charts

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/capstan-project/capstan/chartgen/mirror"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// redrawInterval is the least time between two updates of the status line.
const redrawInterval = 100 * time.Millisecond

// progress prints a line for each item that is done. On a terminal it also keeps a status line below them.
type progress struct {
	*cli.Progress

	items int
	total int64 // bytes
	start time.Time

	mu       sync.Mutex
	copied   int64 // bytes
	present  int64 // bytes that the target had
	finished int   // items
	drawn    time.Time
}

func newProgress(out io.Writer, items []*mirror.Item) *progress {
	p := &progress{Progress: cli.NewProgress(out), items: len(items), start: time.Now()}
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
	p.Printf("%-7s  %10s  %s", outcome, cli.Size(item.Size), item.Name)
	p.draw()
}

// end replaces the status line with a summary.
func (p *progress) end() {
	p.Show()
	p.Printf("%s copied in %s", cli.Size(p.copied), time.Since(p.start).Round(time.Millisecond))
}

func (p *progress) draw() {
	p.drawn = time.Now()
	seconds := max(time.Since(p.start).Seconds(), 0.1)

	p.Show(fmt.Sprintf(
		"%s of %s  %s/s  %d of %d",
		cli.Size(p.copied+p.present),
		cli.Size(p.total),
		cli.Size(int64(float64(p.copied)/seconds)),
		p.finished,
		p.items,
	))
}
