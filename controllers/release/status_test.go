package release_test

import (
	"sync"
	"sync/atomic"

	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// statuses are what the statuses of resources have of hooks, by namespace: a state.Announcement.
var statuses sync.Map

// victims are the numbers of writes after which processes are killed, by their engines: an *atomic.Int64.
var victims sync.Map

// announceBy returns what writes the status of the resource whose release is in a namespace, by a process that may be
// killed after that.
func announceBy(e *release.Engine, namespace string) state.Announce {
	return func(a state.Announcement) error {
		left := int64(2)

		if writes, is := victims.Load(e); is {
			left = writes.(*atomic.Int64).Add(-1) + 1
		}

		if left > 0 {
			statuses.Store(namespace, a)
		}

		if left < 2 {
			return errKilled
		}

		return nil
	}
}

// hooksIn returns which hooks the status of a resource knows of a revision.
func hooksIn(namespace string, revision int) state.Hooks {
	known, exists := statuses.Load(namespace)
	if !exists || known.(state.Announcement).Revision != revision {
		return state.Hooks{}
	}

	return known.(state.Announcement).Hooks
}
