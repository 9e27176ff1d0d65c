package clusters

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
// the own namespace has none; empty if there is none. It asks like MayHaveRelease. Namespaces that are ignored do not
// count.
func (t *Target) InstalledElsewhere(
	ctx context.Context, release types.NamespacedName, ignored func(namespace string) bool,
) string {
	records, known := t.cluster.records(ctx, release.Name, "")
	if !known {
		return ""
	}

	var namespaces []string

	for _, record := range records {
		switch {
		case record.Namespace == release.Namespace:
			return ""
		case storage.IsInstalled(record.Labels) && !ignored(record.Namespace):
			namespaces = append(namespaces, record.Namespace)
		}
	}

	if len(namespaces) == 0 {
		return ""
	}

	return slices.Min(namespaces)
}

// readRelease reports whether Helm's storage contains a release. It makes a request only if the watch has
// not started, or does not include the namespace. A release that must not be read counts as one.
func (c *Cluster) readRelease(ctx context.Context, key types.NamespacedName) (bool, error) {
	if found, known := c.findRelease(ctx, key); known {
		return found, nil
	}

	history, err := release.ReadHistory(ctx, c.metadata, key)
	if apierrors.IsForbidden(err) {
		return true, nil
	}

	return len(history.Revisions) > 0, err
}

// findRelease looks a release up in the watch of Helm's storage. It is not known whether there is one
// until the watch has started.
func (c *Cluster) findRelease(ctx context.Context, release types.NamespacedName) (found, known bool) {
	records, known := c.releaseRecords(ctx, release)
	return len(records) > 0, known
}

// releaseRecords returns the metadata of Helm's records of a release.
func (c *Cluster) releaseRecords(
	ctx context.Context, release types.NamespacedName,
) (records []metav1.PartialObjectMetadata, known bool) {
	return c.records(ctx, release.Name, release.Namespace)
}

// records returns the metadata of Helm's records of the releases of a name, in a namespace, or in all if
// that is empty. They are not known until the watch has started, and must not be changed. In a remote cluster it makes
// a request.
func (c *Cluster) records(
	ctx context.Context, name, namespace string,
) (records []metav1.PartialObjectMetadata, known bool) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))

	options := []client.ListOption{
		client.InNamespace(namespace), client.MatchingLabels{"owner": "helm", "name": name},
		client.UnsafeDisableDeepCopy,
	}

	if c.connection.polls() {
		err := c.apiReader.List(ctx, list, append(options, client.Limit(storage.MaxRecords+1))...)
		return list.Items, err == nil
	}

	record := &metav1.PartialObjectMetadata{}
	record.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))

	informer, err := c.History.GetInformer(ctx, record, cache.BlockUntilSynced(false))
	if err != nil || !informer.HasSynced() {
		return nil, false
	}

	err = c.History.List(ctx, list, options...)

	return list.Items, err == nil
}
