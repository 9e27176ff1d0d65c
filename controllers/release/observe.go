package release

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

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

		history := historyOf(release, records)
		if known && e.seen.Shows(release, versionsOf(history)) {
			return e.complete(history), nil
		}
	}

	return e.observeLive(ctx, release)
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

// complete adds to a history what only this process knows.
func (e *Engine) complete(history state.History) state.History {
	history.Busy = e.isBusy(history.Release)

	for i := range history.Revisions {
		revision := &history.Revisions[i]
		revision.Unreadable = e.records.isUnreadable(history.Release, *revision)
	}

	return history
}

// ReadHistory returns the history of a release, with the permissions of the reader.
func ReadHistory(
	ctx context.Context, reader metadata.Interface, release types.NamespacedName,
) (state.History, error) {
	list, err := reader.Resource(secretsResource).Namespace(release.Namespace).
		List(ctx, metav1.ListOptions{LabelSelector: storage.Selector(release.Name)})
	if err != nil {
		return state.History{Release: release}, fmt.Errorf("list the revisions of release %s: %w", release, err)
	}

	return historyOf(release, list.Items), nil
}

// historyOf returns the history that the metadata of a release's Secrets describes.
func historyOf(release types.NamespacedName, records []metav1.PartialObjectMetadata) state.History {
	history := state.History{Release: release}

	for i := range records {
		if revision, ok := storage.RevisionOf(&records[i].ObjectMeta); ok {
			history.Revisions = append(history.Revisions, revision)
		}
	}

	slices.SortFunc(history.Revisions, func(a, b state.Revision) int { return cmp.Compare(b.Number, a.Number) })

	return history
}

// versionsOf returns the resource versions of the Secrets that hold the revisions of a history, by name.
func versionsOf(history state.History) map[string]string {
	versions := map[string]string{}
	for _, r := range history.Revisions {
		versions[storage.SecretName(history.Release.Name, r.Number)] = r.ResourceVersion
	}

	return versions
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
