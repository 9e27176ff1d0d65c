// Package export writes what other programs read: ConfigMaps with components, as cluster-api-operator writes them, and
// clusterctl's inventory.
package export

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/controllers/predecessor"
)

// ComponentsWriter writes the ConfigMaps <type>-<name>-<version> of provider resources. Capstan itself never reads
// them: see IsWritten.
type ComponentsWriter struct {
	// Client must read from the API server, not from a cache, which need not hold the content of ConfigMaps.
	Client client.Client
}

// IsWritten reports whether a ConfigMap is one that a ComponentsWriter has written for a resource. It must not be the
// source of a provider: what the operator has fetched would then decide what it fetches next, and would be gone with
// the resource. A copy without the owner is a user's own, and may be a source.
func IsWritten(o metav1.Object) bool {
	return o.GetLabels()[v1alpha2.ManagedByLabel] == v1alpha2.FieldOwner && predecessor.Owns(o)
}

// Write writes the ConfigMap of a version that was fetched for a resource, and deletes those of versions that are
// neither installed nor in the release's history. A ConfigMap that something else has created stays as it is. The error
// is a *RefusedError if it makes no sense to try again.
func (w *ComponentsWriter) Write(ctx context.Context, provider v1alpha2.Provider, b *bundle.Bundle) error {
	cm, err := newConfigMap(provider, b)
	if err != nil {
		return err
	}

	err = w.put(ctx, cm)

	switch {
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsRequestEntityTooLargeError(err):
		return refused(cm, "the API server refuses it: %v", err)
	case err != nil:
		return err
	}

	return w.prune(ctx, provider, b.Version)
}

// put creates a ConfigMap, or replaces the one that a ComponentsWriter has written before if that has another content.
func (w *ComponentsWriter) put(ctx context.Context, cm *corev1.ConfigMap) error {
	key := client.ObjectKeyFromObject(cm)
	existing := &corev1.ConfigMap{}

	err := w.Client.Get(ctx, key, existing)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ConfigMap %s: %w", key, err)
	}

	switch {
	case err != nil:
	case isSame(existing, cm):
		return nil
	case !IsWritten(existing) && serves(existing, cm):
		return nil
	case !IsWritten(existing):
		return refused(cm, "it exists, and something else has created it; rename or delete it, and fetch the version "+
			"again with the annotation %s", v1alpha2.ReconcileRequestAnnotation)
	default:
		// Deleting and creating takes no more permissions than storing charts.
		if err := w.delete(ctx, existing); err != nil {
			return err
		}
	}

	if err := w.Client.Create(ctx, cm, client.FieldOwner(v1alpha2.FieldOwner)); err != nil {
		return fmt.Errorf("create ConfigMap %s: %w", key, err)
	}

	return nil
}

// isSame reports whether a ConfigMap is as it should be. It may have more labels and annotations.
func isSame(existing, wanted *corev1.ConfigMap) bool {
	return hasAll(existing.Labels, wanted.Labels) && hasAll(existing.Annotations, wanted.Annotations) &&
		equality.Semantic.DeepEqual(existing.OwnerReferences, wanted.OwnerReferences) &&
		maps.Equal(existing.Data, wanted.Data) && equality.Semantic.DeepEqual(existing.BinaryData, wanted.BinaryData)
}

// serves reports whether programs find a ConfigMap in place of the wanted one. That is so for those that
// cluster-api-operator and `kubectl operator preload` have written for the same version.
func serves(existing, wanted *corev1.ConfigMap) bool {
	searched := maps.Clone(wanted.Labels)
	delete(searched, v1alpha2.ManagedByLabel)

	return hasAll(existing.Labels, searched)
}

// hasAll reports whether labels or annotations include the wanted ones.
func hasAll(existing, wanted map[string]string) bool {
	for key, value := range wanted {
		if got, exists := existing[key]; !exists || got != value {
			return false
		}
	}

	return true
}

// prune deletes the ConfigMaps of a resource whose versions are no longer needed, as the store does with charts.
func (w *ComponentsWriter) prune(ctx context.Context, provider v1alpha2.Provider, version string) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))

	err := w.Client.List(ctx, list, client.InNamespace(provider.GetNamespace()), client.MatchingLabels{
		v1alpha2.ConfigMapTypeLabel: provider.ProviderType().Name(),
		v1alpha2.ConfigMapNameLabel: provider.GetName(),
		v1alpha2.ManagedByLabel:     v1alpha2.FieldOwner,
	})
	if err != nil {
		return fmt.Errorf("list ConfigMaps in namespace %s: %w", provider.GetNamespace(), err)
	}

	needed := neededVersions(provider.GetStatus()).Insert(version)

	for i := range list.Items {
		old := &list.Items[i]
		if !IsWritten(old) || needed.Has(old.Labels[v1alpha2.ConfigMapVersionLabel]) {
			continue
		}

		if err := w.delete(ctx, old); err != nil {
			return err
		}
	}

	return nil
}

// neededVersions returns the versions that are installed or in the release's history.
func neededVersions(status *v1alpha2.ProviderStatus) sets.Set[string] {
	versions := sets.New[string]()
	if status.InstalledVersion != nil {
		versions.Insert(*status.InstalledVersion)
	}

	for _, revision := range status.History {
		versions.Insert(revision.Version)
	}

	return versions
}

// delete deletes a ConfigMap, unless another one has taken its name.
func (w *ComponentsWriter) delete(ctx context.Context, o metav1.Object) error {
	uid := o.GetUID()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}}

	err := w.Client.Delete(ctx, cm, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete ConfigMap %s: %w", client.ObjectKeyFromObject(cm), err)
	}

	return nil
}
