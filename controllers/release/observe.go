package release

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/paging"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// secretsResource is where Helm stores revisions.
var secretsResource = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// Observe returns the history of a release, and decodes none of its revisions. It reads the metadata of the release's
// Secrets from the cache, if there is one that shows all that the engine has read and written before, otherwise by a
// request.
func (e *Engine) Observe(ctx context.Context, release types.NamespacedName) (state.History, error) {
	if e.options.Records != nil {
		records, known := e.options.Records(ctx, release)

		history, err := historyOf(release, records)
		if err == nil && known && e.seen.Shows(release, versionsOf(history)) {
			return e.complete(history), nil
		}
	}

	return e.observeLive(ctx, release)
}

// maxLearned limits how many revisions Learn reads, and learnedPage how many at a time.
const (
	maxLearned  = 10_000
	learnedPage = 500
)

// Learn finds out by one list what former processes have written to all releases, so that Observe need not ask for each
// of them: the restart with a hundred providers would take 431 requests instead of 331. It must be called when no other
// process writes any more, and does nothing the next time, or without Options.ListObjects. If not all releases may be
// listed, Observe asks.
func (e *Engine) Learn(ctx context.Context) error {
	if e.options.Records == nil || !e.options.ListObjects {
		return nil
	}

	e.learning.Lock()
	defer e.learning.Unlock()

	if e.learned {
		return nil
	}

	releases := map[types.NamespacedName]map[string]string{}
	count := 0
	options := metav1.ListOptions{
		LabelSelector: storage.Selector(""), FieldSelector: "type=" + storage.RecordType, Limit: learnedPage,
	}

	for page, err := range paging.Pages(ctx, options, e.metadata.List) {
		if apierrors.IsForbidden(err) || count > maxLearned {
			e.learned = true
			return nil
		}

		if err != nil {
			return fmt.Errorf("list the revisions of all releases: %w", err)
		}

		for i := range page.Items {
			noteVersion(releases, &page.Items[i])
		}

		count += len(page.Items)
	}

	e.seen.SetAll(releases)
	e.learned = true

	if len(releases) > 0 {
		e.former.Store(newListedObjects(v1alpha2.ManagedByLabel + "=Helm," + v1alpha2.ClusterctlProviderLabel))
	}

	return nil
}

// noteVersion adds the version of a Secret that holds a revision to those of its release.
func noteVersion(releases map[types.NamespacedName]map[string]string, secret *metav1.PartialObjectMetadata) {
	revision, ok := storage.RevisionOf(&secret.ObjectMeta)
	if !ok {
		return
	}

	release := types.NamespacedName{Namespace: secret.Namespace, Name: storage.ReleaseName(secret.Labels)}
	if releases[release] == nil {
		releases[release] = map[string]string{}
	}

	releases[release][helm.RecordName(release.Name, revision.Number)] = revision.ResourceVersion
}

// observeLive is Observe, but always makes the request.
func (e *Engine) observeLive(ctx context.Context, release types.NamespacedName) (state.History, error) {
	history, err := ReadHistory(ctx, e.connection.Metadata(), release)
	if err != nil {
		return history, err
	}

	e.seen.Set(release, versionsOf(history))

	return e.complete(history), nil
}

// complete adds to a history what only this process knows. No record was written later than now, whatever its managed
// fields claim.
func (e *Engine) complete(history state.History) state.History {
	history.Busy = e.isBusy(history.Release)
	now := e.clock.Now().Truncate(time.Second)

	for i := range history.Revisions {
		revision := &history.Revisions[i]
		revision.Unreadable = e.records.isUnreadable(history.Release, *revision)

		if revision.Changed.After(now) {
			revision.Changed = now
		}
	}

	return history
}

// ReadHistory returns the history of a release, with the permissions of the reader.
func ReadHistory(
	ctx context.Context, reader metadata.Interface, release types.NamespacedName,
) (state.History, error) {
	list, err := reader.Resource(secretsResource).Namespace(release.Namespace).
		List(ctx, metav1.ListOptions{LabelSelector: storage.Selector(release.Name), Limit: storage.MaxRecords + 1})
	if err != nil {
		return state.History{Release: release}, fmt.Errorf("list the revisions of release %s: %w", release, err)
	}

	return historyOf(release, list.Items)
}

// historyOf returns the history that the metadata of a release's Secrets describes.
func historyOf(release types.NamespacedName, records []metav1.PartialObjectMetadata) (state.History, error) {
	history := state.History{Release: release}
	if err := storage.CheckRecords(release, records); err != nil {
		return history, err
	}

	for i := range records {
		if revision, ok := storage.RevisionOf(&records[i].ObjectMeta); ok {
			history.Revisions = append(history.Revisions, revision)
		}
	}

	slices.SortFunc(history.Revisions, func(a, b state.Revision) int { return cmp.Compare(b.Number, a.Number) })

	return history, nil
}

// versionsOf returns the resource versions of the Secrets that hold the revisions of a history, by name.
func versionsOf(history state.History) map[string]string {
	versions := map[string]string{}
	for _, r := range history.Revisions {
		versions[helm.RecordName(history.Release.Name, r.Number)] = r.ResourceVersion
	}

	return versions
}

// nameOf returns the namespace and name of an object.
func nameOf(o *metav1.PartialObjectMetadata) types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
}

// absentSince returns a function that reports whether an object is known not to have existed at some time after the
// given one. It returns nil if that is not to be found out by lists.
func (e *Engine) absentSince(
	ctx context.Context, since time.Time,
) func(schema.GroupVersionResource, types.NamespacedName) bool {
	if e.existing == nil {
		return nil
	}

	return func(resource schema.GroupVersionResource, object types.NamespacedName) bool {
		existing, err := e.existing.List(ctx, resource, since)
		return err == nil && !slices.Contains(existing, object)
	}
}

// Names returns the names of the releases in a namespace, sorted.
func (e *Engine) Names(ctx context.Context, namespace string) ([]string, error) {
	list, err := e.metadata.Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: storage.Selector("")})
	if err != nil {
		return nil, fmt.Errorf("list the releases in namespace %s: %w", namespace, err)
	}

	names := map[string]bool{}
	for _, secret := range list.Items {
		names[storage.ReleaseName(secret.Labels)] = true
	}

	return slices.Sorted(maps.Keys(names)), nil
}
