package hooks

import "time"

// moment is how long a wait may take before others need to know about it.
const moment = time.Second

// Await waits until wait returns, and calls begin if that takes longer than a moment.
func Await(wait func() error, begin func()) error {
	ended := make(chan error, 1)

	go func() { ended <- wait() }()

	select {
	case err := <-ended:
		return err
	case <-time.After(moment):
	}

	begin()

	return <-ended
}
