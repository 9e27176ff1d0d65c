package reconcile

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// arrivalTimes has the newest generation of each resource that was asked about, with the time at which it was seen
// first. A change that must not overtake others that were made together with it can so be held back until they have
// arrived. It is safe for concurrent use, and its zero value is ready to use.
type arrivalTimes struct {
	mu    sync.Mutex
	times map[types.UID]arrival
}

// arrival is a generation of a resource, and when it was seen.
type arrival struct {
	generation int64
	seen       time.Time
	// unannounced is set until events about the change have been emitted. What they are about may become known only after
	// other reconciles of the generation.
	unannounced bool
}

// of returns when the resource was seen first in its generation: now, unless it was asked before.
func (t *arrivalTimes) of(resource metav1.Object, now time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()

	known, ok := t.times[resource.GetUID()]
	if ok && known.generation == resource.GetGeneration() {
		return known.seen
	}

	if t.times == nil {
		t.times = map[types.UID]arrival{}
	}

	t.times[resource.GetUID()] = arrival{generation: resource.GetGeneration(), seen: now}

	return now
}

// announceLater notes that events about a change of a resource are to be emitted.
func (t *arrivalTimes) announceLater(resource types.UID) { t.setUnannounced(resource, true) }

// announce reports whether events about a change of a resource are to be emitted, which it is once for each change.
func (t *arrivalTimes) announce(resource types.UID) bool { return t.setUnannounced(resource, false) }

// setUnannounced returns what was set before.
func (t *arrivalTimes) setUnannounced(resource types.UID, unannounced bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()

	known, ok := t.times[resource]
	before := known.unannounced

	if ok {
		known.unannounced = unannounced
		t.times[resource] = known
	}

	return before
}

// forget drops what is known of a resource that no longer exists.
func (t *arrivalTimes) forget(resource types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()

	delete(t.times, resource)
}
