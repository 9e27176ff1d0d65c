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

// Observe returns the history of a release. It makes one request, for the metadata of its Secrets,
// and decodes none of them.
func (e *Engine) Observe(ctx context.Context, release types.NamespacedName) (state.History, error) {
	history, err := ReadHistory(ctx, e.connection.Metadata(), release)
	if err != nil {
		return history, err
	}

	history.Busy = e.isBusy(release)

	for i := range history.Revisions {
		revision := &history.Revisions[i]
		revision.Unreadable = e.records.isUnreadable(release, *revision)
	}

	return history, nil
}

// ReadHistory returns the history of a release, with the permissions of the reader.
func ReadHistory(
	ctx context.Context, reader metadata.Interface, release types.NamespacedName,
) (state.History, error) {
	history := state.History{Release: release}

	list, err := reader.Resource(secretsResource).Namespace(release.Namespace).
		List(ctx, metav1.ListOptions{LabelSelector: storage.Selector(release.Name)})
	if err != nil {
		return history, fmt.Errorf("list the revisions of release %s: %w", release, err)
	}

	for i := range list.Items {
		if revision, ok := storage.RevisionOf(&list.Items[i].ObjectMeta); ok {
			history.Revisions = append(history.Revisions, revision)
		}
	}

	slices.SortFunc(history.Revisions, func(a, b state.Revision) int { return cmp.Compare(b.Number, a.Number) })

	return history, nil
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
