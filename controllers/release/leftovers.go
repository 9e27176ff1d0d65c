package release

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// DeleteLeftovers deletes a release whose history is lost or cannot be decoded. The history is
// lost, for example, with the namespace of the release, while its objects outside of that namespace
// remain. It searches all kinds of the cluster for objects that match the selector and have the
// release's annotations, and returns those that it deleted. It keeps what Uninstall keeps. The
// Secrets of the release are deleted last.
func (e *Engine) DeleteLeftovers(
	ctx context.Context,
	release types.NamespacedName,
	selector labels.Selector,
) ([]object.Key, error) {
	deleted, err := e.newClient(ctx, release).DeleteLeftovers(ctx, selector)
	if err != nil {
		return deleted, err
	}

	secrets := metav1.ListOptions{LabelSelector: storage.Selector(release.Name)}

	err = e.metadata.Namespace(release.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, secrets)
	if err != nil {
		return deleted, fmt.Errorf("delete the history of release %s: %w", release, err)
	}

	return deleted, nil
}
