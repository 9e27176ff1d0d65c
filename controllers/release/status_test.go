package release_test

import (
	"sync"
	"sync/atomic"

	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// victims are the numbers of writes after which processes are killed, by their engines: an *atomic.Int64.
var victims sync.Map

// announceBy returns what writes the status of a resource, by a process that may be killed after that.
func announceBy(e *release.Engine) state.Announce {
	return func(state.Announcement) error {
		if left, is := victims.Load(e); is && left.(*atomic.Int64).Add(-1) < 1 {
			return errKilled
		}

		return nil
	}
}
