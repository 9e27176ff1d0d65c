package health

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/capstan-project/capstan/controllers/object"
)

const (
	// syncTime is how long a check waits for a watch that has just been started.
	syncTime = 2 * time.Second
	// retryTime is when to check again if a kind cannot be watched.
	retryTime = 10 * time.Second
	// The intervals of reads of objects that may not be watched.
	pollTime          = time.Minute
	pollUnhealthyTime = 5 * time.Second
)

// kind is how the objects of a kind are read.
type kind struct {
	// informer watches the objects; nil if that is not permitted, so that they are polled.
	informer cache.Informer
	// since is when the watch was started.
	since time.Time
}

// WatchError reports that objects cannot be watched, so that their health and drift are not known.
type WatchError struct {
	kind, reason string
	// Until is when to try again.
	Until time.Time
}

func (e *WatchError) Error() string {
	return fmt.Sprintf(
		"the health and drift of %s objects are unknown, because they cannot be watched: %s", e.kind, e.reason)
}

// WatchErrors keeps the last error of each watch of a cache.
type WatchErrors struct {
	mu     sync.Mutex
	errors map[string]string // by the description of the type
}

// Handle is the handler of the errors of watches, see cache.Options.
func (w *WatchErrors) Handle(ctx context.Context, reflector *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, reflector, err)

	w.mu.Lock()
	defer w.mu.Unlock()

	if w.errors == nil {
		w.errors = map[string]string{}
	}

	w.errors[reflector.TypeDescription()] = object.Reason("", err)
}

// of returns why a kind cannot be watched, as far as that is known.
func (w *WatchErrors) of(gvk schema.GroupVersionKind) string {
	const unknown = "the API server has not listed them yet"

	if w == nil {
		return unknown
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	// The reflectors of metadata do not describe their kind: the error itself must do so.
	description := gvk.String()
	if kindsWithoutStatus[gvk.GroupKind()] {
		description = metadataDescription
	}

	if reason := w.errors[description]; reason != "" {
		return reason
	}

	return unknown
}

// metadataDescription is how reflectors describe the type of all kinds of which only the metadata is
// watched.
const metadataDescription = "*v1.PartialObjectMetadata"

// Watch starts to watch the kinds of the objects of a release that are not watched yet, that the API
// server serves, and that the operator may watch. It does not wait for their objects. The kinds of
// objects that the release had before are no longer watched if no other has them.
func (t *Tracker) Watch(ctx context.Context, owner Owner, objects []object.Key) error {
	wanted := map[schema.GroupVersionKind]bool{}
	for _, o := range objects {
		wanted[o.GroupVersionKind] = true
	}

	t.setKinds(owner.key(), wanted)

	for gvk := range wanted {
		if t.isWatched(gvk) {
			continue
		}

		if err := t.watchKind(ctx, gvk); err != nil {
			return fmt.Errorf("watch %s objects: %w", gvk.Kind, err)
		}
	}

	return nil
}

// isWatched reports whether a kind is watched.
func (t *Tracker) isWatched(gvk schema.GroupVersionKind) bool {
	known := t.kindOf(gvk)
	return known != nil && known.informer != nil
}

// watchKind starts to watch a kind, or notes that it is not permitted.
func (t *Tracker) watchKind(ctx context.Context, gvk schema.GroupVersionKind) error {
	permitted, err := t.access(ctx, gvk)
	if meta.IsNoMatchError(err) {
		return nil // its objects cannot exist: get says so
	}

	if err != nil {
		return err
	}

	t.starting.Lock()
	defer t.starting.Unlock()

	if t.isWatched(gvk) {
		return nil // another reconcile has started the watch meanwhile
	}

	if !permitted {
		t.setKind(gvk, &kind{})
		return nil
	}

	informer, err := t.cache.GetInformer(ctx, newObject(gvk), cache.BlockUntilSynced(false))
	if meta.IsNoMatchError(err) {
		return nil
	}

	if err != nil {
		return err
	}

	// The handler drops events of kinds that are not set.
	t.setKind(gvk, &kind{informer: informer, since: time.Now()})

	if _, err := informer.AddEventHandler(t.handler(gvk)); err != nil {
		t.removeKind(gvk)
		return err
	}

	return nil
}

func (t *Tracker) setKind(gvk schema.GroupVersionKind, known *kind) {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.kinds[gvk] = known
}

func (t *Tracker) removeKind(gvk schema.GroupVersionKind) {
	t.mu.Lock()
	defer t.mu.Unlock()

	delete(t.kinds, gvk)
}

// Forget stops watching the kinds that only the release of a provider had.
func (t *Tracker) Forget(provider, namespace string) {
	t.setKinds(Owner{Provider: provider, Namespace: namespace}.key(), nil)
}

// setKinds notes the kinds of a release, and stops watching those that no release has any more.
func (t *Tracker) setKinds(owner string, wanted map[schema.GroupVersionKind]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()

	before := t.owners[owner]
	t.owners[owner] = wanted

	if len(wanted) == 0 {
		delete(t.owners, owner)
	}

	for gvk := range before {
		if wanted[gvk] || t.isWanted(gvk) {
			continue
		}

		if known := t.kinds[gvk]; known != nil && known.informer != nil {
			// It only fails for kinds that are not served any more, whose watch does not either.
			_ = t.cache.RemoveInformer(context.Background(), newObject(gvk))
		}

		delete(t.kinds, gvk)
		forgetKind(t.results, gvk)
		forgetKind(t.records, gvk)
		forgetKind(t.unhealthySince, gvk)
	}
}

// isWanted reports whether a release has objects of a kind. t.mu must be held.
func (t *Tracker) isWanted(gvk schema.GroupVersionKind) bool {
	for _, kinds := range t.owners {
		if kinds[gvk] {
			return true
		}
	}

	return false
}

func forgetKind[V any](m map[object.Key]V, gvk schema.GroupVersionKind) {
	for key := range m {
		if key.GroupVersionKind == gvk {
			delete(m, key)
		}
	}
}

// kindOf returns how the objects of a kind are read; nil if the API server does not serve it.
func (t *Tracker) kindOf(gvk schema.GroupVersionKind) *kind {
	t.mu.Lock()
	defer t.mu.Unlock()

	return t.kinds[gvk]
}

// polls reports whether a kind must be polled.
func (t *Tracker) polls(gvk schema.GroupVersionKind) bool {
	known := t.kindOf(gvk)
	return known != nil && known.informer == nil
}

// unsynced returns why the objects of a kind are not known; nil if they are. It waits a little for a
// watch that has just been started.
func (t *Tracker) unsynced(ctx context.Context, gvk schema.GroupVersionKind) *WatchError {
	known := t.kindOf(gvk)
	if known == nil || known.informer == nil {
		return nil
	}

	synced := known.informer.HasSyncedChecker().Done()

	timer := time.NewTimer(time.Until(known.since.Add(syncTime)))
	defer timer.Stop()

	select {
	case <-synced:
		return nil
	default:
	}

	select {
	case <-synced:
		return nil
	case <-timer.C:
	case <-ctx.Done():
	}

	return &WatchError{kind: gvk.Kind, reason: t.watchErrors.of(gvk), Until: time.Now().Add(retryTime)}
}

// withoutUnsynced returns the objects of kinds that are known, and the first error of one that is not.
func (t *Tracker) withoutUnsynced(ctx context.Context, objects []object.Key) ([]object.Key, *WatchError) {
	errors := map[schema.GroupVersionKind]*WatchError{}

	var first *WatchError

	for _, o := range objects {
		if _, checked := errors[o.GroupVersionKind]; checked {
			continue
		}

		err := t.unsynced(ctx, o.GroupVersionKind)
		errors[o.GroupVersionKind] = err

		if first == nil {
			first = err
		}
	}

	isUnknown := func(o object.Key) bool { return errors[o.GroupVersionKind] != nil }

	return slices.DeleteFunc(slices.Clone(objects), isUnknown), first
}
