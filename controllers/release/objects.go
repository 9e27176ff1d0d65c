package release

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/paging"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// Metadata returns a client for the metadata of objects, with the engine's permissions.
func (e *Engine) Metadata() metadata.Interface { return e.connection.Metadata }

// Search returns the objects in the cluster that bear the marks of a release, whose inventory is lost.
func (e *Engine) Search(
	ctx context.Context, release types.NamespacedName, search apply.Search,
) ([]object.Key, error) {
	return e.newClient(ctx, release, state.Memory{}).Search(ctx, search)
}

// Remains reports whether there are still objects of a release's inventory that an uninstall would delete.
func (e *Engine) Remains(ctx context.Context, release types.NamespacedName, inventory []object.Key) (bool, error) {
	return e.newClient(ctx, release, state.Memory{Inventory: inventory}).Remains()
}

// DeleteHistory deletes the Secrets of a release, readable or not.
func (e *Engine) DeleteHistory(ctx context.Context, release types.NamespacedName) error {
	defer e.written.Note(release, "")

	secrets := e.connection.Metadata.Resource(secretsResource).Namespace(release.Namespace)
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

// Dissolve deletes a release without the objects of its inventory: they lose the label and annotations of Helm, and the
// history is deleted. It can be repeated, and does nothing if the release does not exist.
func (e *Engine) Dissolve(ctx context.Context, release types.NamespacedName, inventory []object.Key) error {
	if err := e.newClient(ctx, release, state.Memory{Inventory: inventory}).RemoveHelmMetadata(); err != nil {
		return err
	}

	return e.DeleteHistory(ctx, release)
}

// Prune deletes the objects that an observed revision, which is deployed and complete, has left: it does not have them,
// and they could not be deleted for a passing reason when it was applied, or finalizers held them. The error is a
// *apply.RemoveError if they still cannot be deleted, and a *apply.RemainingError if only finalizers hold them.
func (e *Engine) Prune(
	ctx context.Context, release types.NamespacedName, memory state.Memory, revision state.Revision,
) (Result, error) {
	return e.amend(ctx, release, memory, revision, func(s *session) (Result, error) {
		rel, err := s.find(revision)
		if err != nil {
			return Result{}, err
		}

		results, inventory, err := s.client.Prune(rel.Manifest)

		return Result{Inventory: inventory, Results: results}, err
	})
}
