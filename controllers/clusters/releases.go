package clusters

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/controllers/namespaces"
	"github.com/capstan-project/capstan/controllers/paging"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// MayHaveRelease reports whether Helm's storage may contain a release. It asks the watch, and makes a request only in
// a remote cluster; until the watch has started, every release may exist.
func (t *Target) MayHaveRelease(ctx context.Context, release types.NamespacedName) bool {
	found, known := t.cluster.findRelease(ctx, release)
	return found || !known
}

// HasRelease reports whether Helm's storage is known to contain a release. It asks like MayHaveRelease.
func (t *Target) HasRelease(ctx context.Context, release types.NamespacedName) bool {
	found, _ := t.cluster.findRelease(ctx, release)
	return found
}

// InstalledElsewhere returns the namespace in which Capstan has installed a release of the same name, and
// the own namespace has none; empty if there is none. It takes a request, because only the namespaces of provider
// resources are watched. Namespaces that are ignored do not count, nor does what must not be read.
func (t *Target) InstalledElsewhere(
	ctx context.Context, release types.NamespacedName, ignored func(namespace string) bool,
) (string, error) {
	if found, err := t.cluster.isInstalled(ctx, release); found || err != nil {
		return "", err
	}

	for _, searched := range t.cluster.searched() {
		list := t.cluster.metadata.Resource(namespaces.Secrets).Namespace(searched).List
		options := metav1.ListOptions{LabelSelector: storage.InstalledSelector(release.Name), Limit: searchedPage}

		for page, err := range paging.Pages(ctx, options, list) {
			if apierrors.IsForbidden(err) {
				break
			}

			if err != nil {
				return "", fmt.Errorf("look for release %s in other namespaces: %w", release.Name, err)
			}

			for _, record := range page.Items {
				switch {
				case record.Namespace == release.Namespace || ignored(record.Namespace):
				case storage.IsInstalled(record.Labels):
					return record.Namespace, nil
				}
			}
		}
	}

	return "", nil
}

// searchedPage is how many records of releases in all namespaces are read at a time. Anyone may create such Secrets.
const searchedPage = 10

// searched returns the namespaces that may be searched; an empty one represents all.
func (c *Cluster) searched() []string {
	if len(c.connection.Namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}

	return slices.Sorted(maps.Keys(c.connection.Namespaces))
}

// isInstalled reports whether a Helm release is installed. It makes a request unless the watch knows that Helm's
// storage
// does not contain it. A release that must not be read counts as installed.
func (c *Cluster) isInstalled(ctx context.Context, key types.NamespacedName) (bool, error) {
	if found, known := c.findRelease(ctx, key); known && !found {
		return false, nil
	}

	return release.IsInstalled(ctx, c.metadata, key)
}

// findRelease looks a release up in the watch of Helm's storage. It is not known whether there is one
// until the watch has started.
func (c *Cluster) findRelease(ctx context.Context, release types.NamespacedName) (found, known bool) {
	records, known := c.releaseRecords(ctx, release)
	return len(records) > 0, known
}

// releaseRecords returns the metadata of Helm's records of a release. They are not known until their namespace is
// watched, and must not be changed. In a remote cluster it makes a request.
func (c *Cluster) releaseRecords(
	ctx context.Context, name types.NamespacedName,
) (records []metav1.PartialObjectMetadata, known bool) {
	if !c.connection.Remote {
		return c.Watches.Records(name)
	}

	records, err := release.ListRecords(ctx, c.metadata, name)

	return records, err == nil
}
