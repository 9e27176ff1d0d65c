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
	"github.com/capstan-project/capstan/controllers/consistency"
	"github.com/capstan-project/capstan/controllers/paging"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// secretsResource is where Helm stores revisions.
var secretsResource = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// Observe returns the history of a release, and decodes none of its revisions. It reads the metadata of the release's
// Secrets from the cache, if there is one that shows what the engine has written, otherwise by a request.
func (e *Engine) Observe(ctx context.Context, release types.NamespacedName) (state.History, error) {
	if e.options.Records != nil {
		records, known := e.options.Records(ctx, release)

		history, err := historyOf(release, records)
		if err == nil && known && e.written.Shows(release, newestVersion(history)) {
			return limitTimes(history), nil
		}
	}

	return e.observeLive(ctx, release)
}

// observeLive is Observe, but always makes the request.
func (e *Engine) observeLive(ctx context.Context, release types.NamespacedName) (state.History, error) {
	history, err := ReadHistory(ctx, e.connection.Metadata, release)
	if err != nil {
		return history, err
	}

	if newest := newestVersion(history); newest != "" {
		e.written.Note(release, newest)
	} else {
		e.written.Forget(release) // a cache that shows records is older
	}

	return limitTimes(history), nil
}

// limitTimes bounds the times of a history: no record was written later than now, whatever its managed fields claim.
func limitTimes(history state.History) state.History {
	now := time.Now().Truncate(time.Second)

	for i := range history.Revisions {
		revision := &history.Revisions[i]
		if revision.LastTransitionTime.After(now) {
			revision.LastTransitionTime.Time = now
		}
	}

	return history
}

// ReadHistory returns the history of a release, with the permissions of the reader.
func ReadHistory(
	ctx context.Context, reader metadata.Interface, release types.NamespacedName,
) (state.History, error) {
	records, err := ListRecords(ctx, reader, release)
	if err != nil {
		return state.History{Release: release}, fmt.Errorf("list the revisions of release %s: %w", release, err)
	}

	return historyOf(release, records)
}

// recordsPage is how many records are listed at a time: with labels as large as possible, they are 15 MiB.
const recordsPage = 10

// ListRecords returns the metadata of the Secrets of a release, with the permissions of the reader: not many more than
// it may have, and of their annotations and managed fields only the time of the last write.
func ListRecords(
	ctx context.Context, reader metadata.Interface, release types.NamespacedName,
) ([]metav1.PartialObjectMetadata, error) {
	var records []metav1.PartialObjectMetadata

	list := reader.Resource(secretsResource).Namespace(release.Namespace).List
	options := metav1.ListOptions{LabelSelector: storage.Selector(release.Name), Limit: recordsPage}

	for page, err := range paging.Pages(ctx, options, list) {
		if err != nil {
			return nil, err
		}

		for i := range page.Items {
			storage.Strip(&page.Items[i])
		}

		records = append(records, page.Items...)
		if len(records) > storage.MaxRecords {
			break
		}
	}

	return records, nil
}

// IsInstalled reports whether a Helm release is installed: storage contains it, and not only what an uninstall has kept
// of it. A release that must not be read counts as installed.
func IsInstalled(ctx context.Context, reader metadata.Interface, release types.NamespacedName) (bool, error) {
	history, err := ReadHistory(ctx, reader, release)
	if apierrors.IsForbidden(err) {
		return true, nil
	}

	newest, exists := history.Newest()

	return exists && newest.Status != v1alpha2.RevisionUninstalled, err
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

// newestVersion returns the newest resource version of the Secrets that hold the revisions of a history; empty if there
// are none.
func newestVersion(history state.History) string {
	versions := make([]string, 0, len(history.Revisions))
	for _, r := range history.Revisions {
		versions = append(versions, r.ResourceVersion)
	}

	return consistency.Newest(versions)
}

// Names returns the names of the releases in a namespace, sorted.
func (e *Engine) Names(ctx context.Context, namespace string) ([]string, error) {
	names := map[string]bool{}
	options := metav1.ListOptions{LabelSelector: storage.Selector(""), Limit: recordsPage}

	secrets := e.connection.Metadata.Resource(secretsResource).Namespace(namespace)

	for page, err := range paging.Pages(ctx, options, secrets.List) {
		if err != nil {
			return nil, fmt.Errorf("list the releases in namespace %s: %w", namespace, err)
		}

		for _, secret := range page.Items {
			names[storage.ReleaseName(secret.Labels)] = true
		}
	}

	return slices.Sorted(maps.Keys(names)), nil
}
