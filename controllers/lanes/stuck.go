package lanes

import (
	"fmt"
	"time"
)

// Patience is how long the workers of a controller may take for one reconcile before the operator
// counts as stuck.
type Patience struct {
	// All is how long every worker may be busy with the same reconciles, and One how long a single
	// one may.
	All, One time.Duration
}

// Stuck returns an error that names a resource if the controller's workers are stuck at now. What runs
// elsewhere does not count: it waits for something that a user chose, and holds up nothing else.
func (d *Dispatcher) Stuck(now time.Time, patience Patience) error {
	d.mu.Lock()
	defer d.mu.Unlock()

	var (
		longest time.Duration
		name    string
	)

	busy := 0

	for req, run := range d.running {
		if !run.onWorker {
			continue
		}

		age := now.Sub(run.since)
		if age > patience.All {
			busy++
		}

		if age > longest {
			longest = age
			name = req.String()
		}
	}

	longest = longest.Truncate(time.Second)

	switch {
	case longest > patience.One:
		return fmt.Errorf("the reconcile of %s %s has been running for %s", d.options.Kind, name, longest)
	case busy >= d.options.Workers:
		return fmt.Errorf("all %d workers of %s are busy; the reconcile of %s has been running for %s",
			busy, d.options.Kind, name, longest)
	}

	return nil
}
