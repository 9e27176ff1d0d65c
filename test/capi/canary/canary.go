package canary

import (
	"context"
	"sync"
	"time"
)

const (
	// Interval is the time from the start of one attempt of a canary to the start of the next.
	Interval = 200 * time.Millisecond
	// attemptTimeout ends an attempt that is not answered, so that a gap is noticed.
	attemptTimeout = 5 * time.Second
)

// Canary repeats an attempt all the time, and records the gaps in which it fails.
type Canary struct {
	name    string
	attempt func(context.Context) error

	mu   sync.Mutex
	gaps gaps
}

// Start starts a canary, which ends with the context.
func Start(ctx context.Context, name string, attempt func(context.Context) error) *Canary {
	c := &Canary{name: name, attempt: attempt}
	go c.run(ctx)

	return c
}

func (c *Canary) run(ctx context.Context) {
	ticker := time.NewTicker(Interval)
	defer ticker.Stop()

	for {
		c.try(ctx)

		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (c *Canary) try(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()

	start := time.Now()

	err := c.attempt(limited)

	if ctx.Err() != nil {
		return // the end of the canary, not a failure
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	c.gaps.record(start, time.Now(), err)
}

// Answers reports whether the last attempt since the previous summary succeeded.
func (c *Canary) Answers() bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.gaps.attempts > 0 && c.gaps.open == nil
}

// Summarize returns the attempts and gaps since the previous summary. If a gap has not ended, what follows of it is
// another gap of the next summary.
func (c *Canary) Summarize() Summary {
	c.mu.Lock()
	defer c.mu.Unlock()

	s := Summary{Canary: c.name, Attempts: c.gaps.attempts, Gaps: c.gaps.closed}
	if c.gaps.open != nil {
		s.Gaps = append(s.Gaps, *c.gaps.open)
	}

	c.gaps = gaps{}

	return s
}
