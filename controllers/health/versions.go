package health

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/controllers/object"
)

// known is what a person or program that looked at an object itself, and not at the watch, has
// recorded of it.
type known struct {
	version object.Snapshot
	differs bool // from the release
	awaited bool // the watch is behind, and somebody waits for it
}

// Verified records that objects are as their release says in these versions. Their next change
// wakes the provider.
func (t *Tracker) Verified(versions []object.Snapshot) { t.record(versions, false) }

// Differing records that objects differ from what their release says in these versions, and are
// left so: Changed goes on naming them. Their next change wakes the provider.
func (t *Tracker) Differing(versions []object.Snapshot) { t.record(versions, true) }

func (t *Tracker) record(versions []object.Snapshot, differs bool) {
	t.mu.Lock()
	defer t.mu.Unlock()

	for _, v := range versions {
		t.known[v.Object] = known{version: v, differs: differs}
	}
}

// Changed are the objects that are not known to be as their release says: never recorded, recorded
// as differing, or changed or deleted since. An object is named until it is recorded as verified.
// It makes no request but for the watches.
func (t *Tracker) Changed(ctx context.Context, objects []object.Key) ([]object.Key, error) {
	if err := t.Watch(ctx, objects); err != nil {
		return nil, err
	}

	var changed []object.Key

	for _, o := range objects {
		found, lagging, err := t.look(ctx, o)
		if err != nil {
			return nil, err
		}

		recorded, ok := t.recorded(o)

		alike := lagging || found != nil && recorded.version.Same(object.SnapshotOf(o, found))
		if !ok || recorded.differs || !alike {
			changed = append(changed, o)
		}
	}

	return changed, nil
}

func (t *Tracker) recorded(o object.Key) (known, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()

	recorded, ok := t.known[o]

	return recorded, ok
}

// await makes the watch tell when it has come to the recorded state of an object.
func (t *Tracker) await(o object.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()

	if recorded, ok := t.known[o]; ok {
		recorded.awaited = true
		t.known[o] = recorded
	}
}

// lags reports whether what a watch holds of an object, nil if nothing, is older than what was
// recorded of it.
func (t *Tracker) lags(ctx context.Context, o object.Key, found client.Object) (bool, error) {
	recorded, ok := t.recorded(o)
	if !ok {
		return false, nil
	}

	if found != nil {
		return object.IsOlder(found.GetResourceVersion(), recorded.version.ResourceVersion), nil
	}

	t.mu.Lock()
	informer := t.informers[o.GroupVersionKind]
	t.mu.Unlock()
	// Informers tell how far they are, though their interface does not say so; but not those of
	// single namespaces.
	if far, ok := informer.(interface{ LastSyncResourceVersion() string }); ok {
		return object.IsOlder(far.LastSyncResourceVersion(), recorded.version.ResourceVersion), nil
	}

	err := t.live.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, newObject(o.GroupVersionKind))
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("read %s: %w", o, err)
	}

	return err == nil, nil
}

// outdated reports whether an event shows a recorded object in another state, or in the one that is
// waited for. t.mu is held.
func (t *Tracker) outdated(name object.Key, o client.Object, gone bool) bool {
	recorded, ok := t.known[name]
	if !ok {
		return false
	}

	now := object.SnapshotOf(name, o)
	if now.OlderThan(recorded.version) {
		return false
	}

	if gone {
		delete(t.known, name)
		return true
	}

	awaited := recorded.awaited
	recorded.awaited = false
	t.known[name] = recorded

	return awaited || !now.Same(recorded.version)
}
