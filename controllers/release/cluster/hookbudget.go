package cluster

import (
	"fmt"
	"time"
)

// maxHooks is how many hooks one action runs.
const maxHooks = 50

// hookBudget limits the hooks of one action on a release, in number and in total time. Helm runs them one after the
// other. The zero value is ready for use.
type hookBudget struct {
	count    int
	total    time.Duration
	deadline time.Time
}

// take returns how long the next hook may take, where total is the time for all of them, which starts with
// the first one. The error explains that nothing is left.
func (b *hookBudget) take(total time.Duration, now time.Time) (time.Duration, error) {
	b.count++
	if b.count > maxHooks {
		return 0, fmt.Errorf("the chart has more than %d hooks for this action", maxHooks)
	}

	return b.left(total, now)
}

// left returns how long the removal of a hook may take. Its time counts like that of hooks.
func (b *hookBudget) left(total time.Duration, now time.Time) (time.Duration, error) {
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
