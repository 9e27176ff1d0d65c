package consistency

import (
	"context"
	"time"
)

// outcomeTimeout limits a write that records an outcome.
const outcomeTimeout = 10 * time.Second

// Outcome returns the context of a write that records an outcome. It outlives the given context, whose deadline limits
// the work: an unrecorded outcome would be repeated, or counted, again. If the process has lost its leadership, the
// lock of the resource refuses the write.
func Outcome(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), outcomeTimeout)
}
