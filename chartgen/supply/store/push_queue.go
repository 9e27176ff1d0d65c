package store

import (
	"maps"
	"sync"

	"github.com/capstan-project/capstan/chartgen/chart"
)

// Limits of the charts that wait in memory, far more than the providers that are released between two
// restarts of a registry.
const (
	maxPending     = 64
	maxPendingSize = 64 << 20
)

// chartID identifies a chart that is generated from the catalog, in whatever namespace that happens.
type chartID struct{ provider, version, digest string }

// pushQueue holds charts that have yet to be pushed. The zero value is an empty queue. It is safe for
// concurrent use.
type pushQueue struct {
	mu     sync.Mutex
	charts map[chartID]*chart.Chart
	size   int // of the files of all charts
	// wakeups has an element if pending charts can probably be pushed now.
	wakeups chan struct{}
}

// add adds a chart. It returns false if the queue is full.
func (q *pushQueue) add(id chartID, c *chart.Chart) bool {
	q.mu.Lock()
	defer q.mu.Unlock()

	if q.charts[id] != nil {
		return true
	}

	if len(q.charts) == maxPending || q.size+sizeOf(c) > maxPendingSize {
		return false
	}

	if q.charts == nil {
		q.charts = map[chartID]*chart.Chart{}
	}

	q.charts[id] = c
	q.size += sizeOf(c)

	return true
}

// remove removes a chart, if it is in the queue.
func (q *pushQueue) remove(id chartID) {
	q.mu.Lock()
	defer q.mu.Unlock()

	if c := q.charts[id]; c != nil {
		delete(q.charts, id)
		q.size -= sizeOf(c)
	}
}

// sizeOf returns the size of a chart's files in bytes.
func sizeOf(c *chart.Chart) int {
	size := 0

	for _, files := range [][]chart.File{c.Files, c.CRDs} {
		for _, f := range files {
			size += len(f.Data)
		}
	}

	return size
}

// pending returns the charts that have yet to be pushed.
func (q *pushQueue) pending() map[chartID]*chart.Chart {
	q.mu.Lock()
	defer q.mu.Unlock()

	return maps.Clone(q.charts)
}

// len returns the number of charts that have yet to be pushed.
func (q *pushQueue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()

	return len(q.charts)
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
