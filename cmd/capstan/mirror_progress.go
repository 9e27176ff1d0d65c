package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/capstan-project/capstan/chartgen/supply/mirror"
)

// progress tells how a copy goes: a bar that moves on a terminal, and a line for each item
// anywhere.
type progress struct {
	out      io.Writer
	terminal bool
	items    int
	total    int64
	began    time.Time

	mu       sync.Mutex
	done     int64 // bytes that are where they should be
	moved    int64 // bytes that were copied
	finished int
	drawn    time.Time
}

func newProgress(out io.Writer, items []*mirror.Item) *progress {
	p := &progress{out: out, items: len(items), began: time.Now()}
	if file, ok := out.(*os.File); ok {
		info, err := file.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	}

	for _, item := range items {
		p.total += item.Size
	}

	return p
}

// Copied advances the bar.
func (p *progress) Copied(_ *mirror.Item, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.moved += bytes
	p.advance(bytes)
}

// Skipped advances the bar.
func (p *progress) Skipped(_ *mirror.Item, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.advance(bytes)
}

// advance draws the bar, at most ten times a second.
func (p *progress) advance(bytes int64) {
	p.done += bytes

	if p.terminal && time.Since(p.drawn) > 100*time.Millisecond {
		p.draw()
	}
}

// Finished prints an item's line.
func (p *progress) Finished(item *mirror.Item, result mirror.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.finished++
	word := "copied "

	switch {
	case result.Err != nil:
		word = "failed "
	case result.UpToDate:
		word = "present"
	}

	p.clear()
	fmt.Fprintf(p.out, "%s  %10s  %s\n", word, binarySize(item.Size), item.Name)

	if p.terminal {
		p.draw()
	}
}

// end takes the bar away and sums up.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.clear()
	took := time.Since(p.began)
	fmt.Fprintf(p.out, "%s copied in %s\n", binarySize(p.moved), took.Round(time.Millisecond))
}

const barWidth = 30

func (p *progress) draw() {
	p.drawn = time.Now()

	share := 1.0
	if p.total > 0 {
		share = min(1, float64(p.done)/float64(p.total))
	}

	full := int(share * barWidth)
	rate := float64(p.moved) / max(time.Since(p.began).Seconds(), 0.1)
	fmt.Fprintf(
		p.out,
		"\r\x1b[K[%s%s] %3.0f %%  %s of %s  %s/s  %d of %d",
		strings.Repeat("=", full),
		strings.Repeat(" ", barWidth-full),
		100*share,
		binarySize(p.done),
		binarySize(p.total),
		binarySize(int64(rate)),
		p.finished,
		p.items,
	)
}

func (p *progress) clear() {
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
