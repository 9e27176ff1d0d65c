package cluster

import "time"

// hookMoment is how long a wait may take before others need to know about it.
const hookMoment = time.Second

// awaitHook waits until wait returns, and calls begin if that takes longer than a moment.
func awaitHook(wait func() error, begin func()) error {
	ended := make(chan error, 1)

	go func() { ended <- wait() }()

	select {
	case err := <-ended:
		return err
	case <-time.After(hookMoment):
	}

	begin()

	return <-ended
}
