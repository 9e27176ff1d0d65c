// Package hooks limits the hooks of charts, which Helm runs one after the other.
package hooks

import (
	"fmt"
	"time"
)

// MaxCount is how many hooks one action runs.
const MaxCount = 50

// Budget limits the hooks of one action on a release, in number and in total time. The zero value is
// ready for use.
type Budget struct {
	count    int
	total    time.Duration
	deadline time.Time
}

// Take returns how long the next hook may take, where total is the time for all of them, which starts with
// the first one. The error explains that nothing is left.
func (b *Budget) Take(total time.Duration, now time.Time) (time.Duration, error) {
	b.count++
	if b.count > MaxCount {
		return 0, fmt.Errorf("the chart has more than %d hooks for this action", MaxCount)
	}

	return b.Left(total, now)
}

// Left returns how long the removal of a hook may take. Its time counts like that of hooks.
func (b *Budget) Left(total time.Duration, now time.Time) (time.Duration, error) {
	if b.deadline.IsZero() {
		b.total = total
		b.deadline = now.Add(total)
	}

	left := b.deadline.Sub(now)
	if left <= 0 {
		return 0, fmt.Errorf("the chart's hooks took longer than %s together", b.total)
	}

	return left, nil
}
