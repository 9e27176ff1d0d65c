package consistency

import (
	"context"
	"time"
)

// outcomeTimeout limits a write that records an outcome.
const outcomeTimeout = 10 * time.Second

// Outcome returns the context of a write that records what has happened. It outlives the given one, whose deadline is
// that of the work: what has happened and is not recorded would be done, or counted, again. A write of a process that
// no longer leads is refused by its lock.
func Outcome(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), outcomeTimeout)
}
