package release

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/paging"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// Metadata returns a client for the metadata of objects, with the engine's permissions.
func (e *Engine) Metadata() metadata.Interface { return e.connection.Metadata() }

// FindLeftovers searches for the objects of a release whose history is lost or cannot be decoded. The
// history is lost, for example, with the namespace of the release, while its objects outside of that
// namespace remain. It returns the objects that have the release's annotations and that Uninstall would
// delete. The error is a *cluster.SearchError if some kinds could not be searched.
func (e *Engine) FindLeftovers(
	ctx context.Context, release types.NamespacedName, search cluster.Search,
) ([]cluster.Leftover, error) {
	return e.newClient(ctx, release).FindLeftovers(ctx, search)
}

// DeleteLeftovers deletes what FindLeftovers has found, in the same order as Uninstall. The error is a
// *cluster.RemoveError if objects could not be deleted; the others are.
func (e *Engine) DeleteLeftovers(
	ctx context.Context, release types.NamespacedName, options cluster.RemoveOptions, found []cluster.Leftover,
) error {
	return e.newClient(ctx, release).DeleteLeftovers(ctx, options, found)
}

// DeleteHistory deletes the Secrets of a release, readable or not.
func (e *Engine) DeleteHistory(ctx context.Context, release types.NamespacedName) error {
	defer e.written.Note(release, "")

	secrets := e.metadata.Namespace(release.Namespace)
	options := metav1.ListOptions{LabelSelector: storage.Selector(release.Name), Limit: recordsPage}

	for page, err := range paging.Pages(ctx, options, secrets.List) {
		if err != nil {
			return fmt.Errorf("list the history of release %s: %w", release, err)
		}

		for _, secret := range page.Items {
			err := secrets.Delete(ctx, secret.Name, metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete Secret %s/%s: %w", secret.Namespace, secret.Name, err)
			}
		}
	}

	return nil
}

// Dissolve deletes a release without its objects: they lose the label and annotations of Helm, and the history is
// deleted. It can be repeated, and does nothing if the release does not exist. A *storage.CorruptError means that no
// revision can be decoded.
func (e *Engine) Dissolve(ctx context.Context, release types.NamespacedName) error {
	_, err := e.run(ctx, release, state.Observed{}, func(s *session) error {
		if err := s.store.Load(ctx); err != nil {
			return err
		}

		newest, _ := s.store.Newest()

		switch {
		case newest == 0:
			return nil
		case len(s.store.Readable()) == 0:
			return &storage.CorruptError{
				Secret: release.Namespace + "/" + helm.RecordName(release.Name, newest),
				Reason: "nor can an older one, so the objects are unknown",
			}
		}

		return s.client.RemoveHelmMetadata(s.store.CurrentManifests())
	})
	if err != nil {
		return err
	}

	return e.DeleteHistory(ctx, release)
}

// PruneOptions are the options of Engine.Prune.
type PruneOptions struct {
	// Known is the same as in PrepareOptions.
	Known []state.Revision
	// Search describes where objects may be of which no record tells.
	Search cluster.Search
}

// Prune deletes the objects that an observed revision, which is deployed and complete, has left: it does not have them,
// and they could not be deleted for a passing reason when it was applied, finalizers held them, or the records of the
// revisions that had them are lost. The error is a *cluster.RemoveError if they still cannot be deleted, and a
// *cluster.RemainingError if only finalizers hold them.
func (e *Engine) Prune(
	ctx context.Context, release types.NamespacedName, revision state.Revision, options PruneOptions,
) error {
	_, err := e.amend(ctx, release, revision, options.Known, func(s *session) error {
		rel := s.store.Find(revision.Number)
		if rel == nil {
			return fmt.Errorf("revision %d of release %s cannot be read: %w", revision.Number, release, storage.ErrChanged)
		}

		if err := s.client.Prune(rel.Manifest, s.store.IncompleteManifests()); err != nil {
			return err
		}

		if err := s.client.PruneFound(ctx, rel.Manifest, options.Search); err != nil {
			return err
		}

		_, err := e.label(ctx, release, revision, map[string]any{storage.UnprunedLabel: nil})

		return err
	})

	return err
}

// KeysOf returns the keys of leftovers.
func KeysOf(found []cluster.Leftover) []object.Key {
	keys := make([]object.Key, 0, len(found))
	for _, leftover := range found {
		keys = append(keys, leftover.Object)
	}

	return keys
}
