package store

import (
	"maps"
	"slices"
	"sync"
)

// chartID identifies a chart in the cluster.
type chartID struct{ namespace, provider, version, digest string }

// pushQueue records which charts are in the registry. The zero value is an empty queue. It is safe
// for concurrent use.
type pushQueue struct {
	mu sync.Mutex
	// pushed reports whether the registry has a chart, for all charts that were used since the start.
	pushed map[chartID]bool
	// wakeups has an element if pending charts can probably be pushed now.
	wakeups chan struct{}
}

// markPushed records that the registry has a chart.
func (q *pushQueue) markPushed(id chartID) { q.mark(id, true) }

// markPending records that a chart has yet to be pushed.
func (q *pushQueue) markPending(id chartID) { q.mark(id, false) }

func (q *pushQueue) mark(id chartID, pushed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()

	if q.pushed == nil {
		q.pushed = map[chartID]bool{}
	}

	q.pushed[id] = pushed
}

// contains reports whether a chart is recorded as pushed or pending.
func (q *pushQueue) contains(id chartID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()

	_, found := q.pushed[id]

	return found
}

// remove forgets the charts that match.
func (q *pushQueue) remove(matches func(chartID) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()

	maps.DeleteFunc(q.pushed, func(id chartID, _ bool) bool { return matches(id) })
}

// pending returns the charts that have yet to be pushed, in no particular order.
func (q *pushQueue) pending() []chartID {
	q.mu.Lock()
	defer q.mu.Unlock()

	return slices.DeleteFunc(slices.Collect(maps.Keys(q.pushed)), func(id chartID) bool { return q.pushed[id] })
}

// wake sends a signal to the channel of wakeup, unless there is one already.
func (q *pushQueue) wake() {
	select {
	case q.wakeup() <- struct{}{}:
	default:
	}
}

// wakeup returns the channel that wake sends to.
func (q *pushQueue) wakeup() chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()

	if q.wakeups == nil {
		q.wakeups = make(chan struct{}, 1)
	}

	return q.wakeups
}
