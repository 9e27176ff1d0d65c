package release_test

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// victims are the numbers of writes after which processes are killed, by their engines: an *atomic.Int64.
var victims sync.Map

// statuses are those of resources, by release: *v1alpha2.ProviderStatus.
var statuses sync.Map

// statusOf returns the status of a release's resource.
func statusOf(key types.NamespacedName) *v1alpha2.ProviderStatus {
	if status, exists := statuses.Load(key); exists {
		return status.(*v1alpha2.ProviderStatus)
	}

	return &v1alpha2.ProviderStatus{}
}

// changeStatus changes the status of a release's resource.
func changeStatus(key types.NamespacedName, change func(*v1alpha2.ProviderStatus)) {
	changed := statusOf(key).DeepCopy()
	change(changed)
	statuses.Store(key, changed)
}

// setInventory sets the inventory in the status of a release's resource.
func setInventory(key types.NamespacedName, objects []object.Key) {
	changeStatus(key, func(s *v1alpha2.ProviderStatus) { s.Objects = object.Inventory(objects) })
}

// mark notes that something has changed of the newest revision of a release.
func mark(ctx context.Context, key types.NamespacedName, change func(*state.Revision)) {
	GinkgoHelper()

	newest, exists := accepted(ctx, reader, key).Newest()
	Expect(exists).To(BeTrue())
	change(&newest)

	known, _ := state.Known(statusOf(key), newest.Number)
	newest.Digest = known.Digest

	changeStatus(key, func(s *v1alpha2.ProviderStatus) { state.Mark(s, newest) })
}

// markHealthy notes that the newest revision of a release was healthy.
func markHealthy(ctx context.Context, key types.NamespacedName) {
	GinkgoHelper()
	mark(ctx, key, func(r *state.Revision) { r.Healthy = true })
}

// inventoryOf returns the inventory in the status of a release's resource.
func inventoryOf(key types.NamespacedName) []object.Key {
	return object.KeysOfInventory(statusOf(key).Objects)
}

// seen returns the objects of a release as a reconcile knows them: those of its inventory, and of the newest record.
func seen(key types.NamespacedName) []object.Key {
	GinkgoHelper()

	ctx := context.Background()

	history, err := reader.Observe(ctx, key)
	Expect(err).NotTo(HaveOccurred())

	newest, exists := history.Newest()
	if !exists {
		return inventoryOf(key)
	}

	record, err := reader.Read(ctx, key, newest)
	if err != nil { // it cannot be decoded
		return inventoryOf(key)
	}

	return object.Union(inventoryOf(key), record.Keys())
}

// announceBy returns what writes the status of a release's resource, by a process that may be killed after that.
func announceBy(e *release.Engine, key types.NamespacedName) state.Announce {
	return func(_ context.Context, revision state.Revision, objects []object.Key) error {
		if left, is := victims.Load(e); is && left.(*atomic.Int64).Add(-1) < 1 {
			return errKilled
		}

		changeStatus(key, func(s *v1alpha2.ProviderStatus) { state.Enter(s, revision) })

		if objects != nil {
			setInventory(key, objects)
		}

		return nil
	}
}

// note writes the inventory after an action into the status, unless the process was killed.
func note(e *release.Engine, key types.NamespacedName, result release.Result) {
	if left, is := victims.Load(e); is && left.(*atomic.Int64).Load() < 1 {
		return
	}

	if result.Inventory != nil {
		setInventory(key, result.Inventory)
	}

	if adopted := len(result.Adopted()); adopted > 0 {
		changeStatus(key, func(s *v1alpha2.ProviderStatus) { state.Adopt(s, result.Revision, adopted) })
	}
}

// kindsOf are the kinds of releases that define some.
var kindsOf sync.Map

// memoryOf returns what the status of a release's resource knows of it.
func memoryOf(ctx context.Context, e *release.Engine, key types.NamespacedName) state.Memory {
	GinkgoHelper()

	kinds, _ := kindsOf.Load(key)
	own, _ := kinds.(apply.OwnKinds)

	return state.Memory{
		Revisions: accepted(context.WithoutCancel(ctx), reader, key).Revisions, Last: state.Last(statusOf(key)),
		Inventory: seen(key), Kinds: own, Announce: announceBy(e, key),
	}
}

func rollback(
	ctx context.Context, e *release.Engine, key types.NamespacedName, options release.RollbackOptions,
	observed state.Observed,
) (release.Result, error) {
	result, err := e.Rollback(ctx, key, memoryOf(ctx, e, key), options, observed)
	note(e, key, result)

	return result, err
}

func advanceOnce(
	ctx context.Context, e *release.Engine, key types.NamespacedName, revision state.Revision,
) (release.Result, error) {
	result, err := e.Advance(ctx, key, memoryOf(ctx, e, key), revision)
	note(e, key, result)

	if left, is := victims.Load(e); err == nil && (!is || left.(*atomic.Int64).Load() > 0) {
		mark(context.WithoutCancel(ctx), key, func(newest *state.Revision) {
			newest.Wave, newest.LastTransitionTime.Time = result.Wave, time.Now()
		})
	}

	return result, err
}

func uninstall(
	ctx context.Context, e *release.Engine, key types.NamespacedName, newest int, atOnce bool,
) (release.Result, error) {
	recorded := state.Revision{}
	if newest != 0 {
		recorded, _ = accepted(context.WithoutCancel(ctx), reader, key).Newest()
	}

	options := release.UninstallOptions{Newest: recorded, AtOnce: atOnce}

	return e.Uninstall(ctx, key, memoryOf(ctx, e, key), options)
}

// prune deletes what the newest revision of the release in a namespace has left.
func prune(ctx context.Context, e *release.Engine, namespace string, revision state.Revision) error {
	key := releaseIn(namespace)

	result, err := e.Prune(ctx, key, memoryOf(ctx, e, key), revision)
	note(e, key, result)

	return err
}

// left returns what the newest revision of the release in a namespace has left.
func left(ctx context.Context, namespace string) []object.Key {
	GinkgoHelper()

	key := releaseIn(namespace)
	record, err := reader.Read(ctx, key, newest(ctx, reader, namespace))
	Expect(err).NotTo(HaveOccurred())

	return object.Without(inventoryOf(key), record.Keys())
}
