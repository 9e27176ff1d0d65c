// Package arrival remembers when changes of resources were seen first, across reconciles. A change that must not
// overtake others that were made together with it can so be held back until they have arrived.
package arrival

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Times has the newest generation of each resource that was asked about, with the time at which it was seen first. It
// is safe for concurrent use, and its zero value is ready to use.
type Times struct {
	mu    sync.Mutex
	times map[types.UID]change
}

// change is a generation of a resource, and when it was seen.
type change struct {
	generation int64
	seen       time.Time
}

// Of returns when the resource was seen first in its generation: now, unless it was asked before.
func (t *Times) Of(resource metav1.Object, now time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()

	known, ok := t.times[resource.GetUID()]
	if ok && known.generation == resource.GetGeneration() {
		return known.seen
	}

	if t.times == nil {
		t.times = map[types.UID]change{}
	}

	t.times[resource.GetUID()] = change{resource.GetGeneration(), now}

	return now
}

// Forget drops what is known of a resource that no longer exists.
func (t *Times) Forget(resource types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()

	delete(t.times, resource)
}
