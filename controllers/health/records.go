package health

import (
	"context"
	"fmt"

	"github.com/capstan-project/capstan/controllers/object"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// record is the version of an object that was compared with its release, at the API server itself.
type record struct {
	version object.Snapshot
	// drifted means that the version differs from the release.
	drifted bool
	// awaited means that the watch has not shown the version yet and wakes the provider when it does.
	awaited bool
	// finished means that the object was a Job which had completed when it was deleted.
	finished bool
}

// MarkVerified records that objects match their release in these versions. Their next change wakes
// the provider.
func (t *Tracker) MarkVerified(versions []object.Snapshot) { t.mark(versions, false) }

// MarkDrifted records that objects differ from their release in these versions and stay so:
// Unverified continues to return them. Their next change wakes the provider.
func (t *Tracker) MarkDrifted(versions []object.Snapshot) { t.mark(versions, true) }

func (t *Tracker) mark(versions []object.Snapshot, drifted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()

	for _, v := range versions {
		t.records[v.Object] = record{version: v, drifted: drifted}
	}
}

// Unverified returns the objects of a release that are not known to match it: those that were never
// recorded, that have drifted, or that were changed or deleted since. It returns an object until that
// is marked as verified. Jobs that have completed are not compared any more. It makes no requests
// except to start watches, and to read objects that may not be watched.
//
// If a kind cannot be watched although that is permitted, the error is a *WatchError, and the objects
// are those of the other kinds.
func (t *Tracker) Unverified(ctx context.Context, owner Owner, objects []object.Key) ([]object.Key, error) {
	if err := t.Watch(ctx, owner, objects); err != nil {
		return nil, err
	}

	known, unsynced := t.withoutUnsynced(ctx, objects)

	var unverified []object.Key

	for _, o := range known {
		found, stale, err := t.read(ctx, owner, o)
		if err != nil {
			return nil, err
		}

		recorded, ok := t.recordOf(o)
		if recorded.finished || found != nil && isCompleteJob(found) {
			continue
		}

		unchanged := stale || found != nil && recorded.version.Same(snapshotOf(o, found))

		if !ok || recorded.drifted || !unchanged {
			unverified = append(unverified, o)
		}
	}

	if unsynced != nil {
		return unverified, unsynced
	}

	return unverified, nil
}

func (t *Tracker) recordOf(o object.Key) (record, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()

	recorded, ok := t.records[o]

	return recorded, ok
}

// wasFinished reports whether an object that was deleted was a Job that had completed.
func (t *Tracker) wasFinished(o object.Key) bool {
	recorded, _ := t.recordOf(o)
	return recorded.finished
}

// wakeWhenCurrent makes the provider wake when the watch shows the recorded version of an object.
func (t *Tracker) wakeWhenCurrent(o object.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()

	if recorded, ok := t.records[o]; ok {
		recorded.awaited = true
		t.records[o] = recorded
	}
}

// isStale reports whether what the cache has of an object, nil if it has nothing, is older than the
// recorded version.
func (t *Tracker) isStale(ctx context.Context, o object.Key, found client.Object) (bool, error) {
	recorded, ok := t.recordOf(o)
	if !ok {
		return false, nil
	}

	if found != nil {
		return object.IsOlder(found.GetResourceVersion(), recorded.version.ResourceVersion), nil
	}

	// Informers have this method, although their interface lacks it. Those of single namespaces do
	// not.
	if synced, ok := t.informer(o).(interface{ LastSyncResourceVersion() string }); ok {
		return object.IsOlder(synced.LastSyncResourceVersion(), recorded.version.ResourceVersion), nil
	}

	err := t.apiReader.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, newObject(o.GroupVersionKind))
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("read %s: %w", o, err)
	}

	return err == nil, nil
}

func (t *Tracker) informer(o object.Key) any {
	t.mu.Lock()
	defer t.mu.Unlock()

	known := t.kinds[o.GroupVersionKind]
	if known == nil {
		return nil
	}

	return known.informer
}

// observeRecorded handles an event of a recorded object. It reports whether the object differs from
// its recorded version, or has it at last if the provider waits for that. t.mu must be held.
func (t *Tracker) observeRecorded(id object.Key, o client.Object, deleted bool) bool {
	recorded, ok := t.records[id]
	if !ok {
		return false
	}

	now := snapshotOf(id, o)
	if now.OlderThan(recorded.version) {
		return false
	}

	if deleted && isCompleteJob(o) {
		recorded.finished = true
		t.records[id] = recorded

		return true
	}

	if deleted {
		delete(t.records, id)
		return true
	}

	recorded.finished = false
	awaited := recorded.awaited
	recorded.awaited = false
	t.records[id] = recorded

	return awaited || !now.Same(recorded.version)
}
