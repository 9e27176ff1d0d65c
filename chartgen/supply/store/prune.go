package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Prune deletes a provider's charts in a namespace that nobody needs: those made before a time
// whose digests are not among those to keep. The caller names the digests of the chart in use and
// of every revision in the release's history.
func (s *Cluster) Prune(ctx context.Context, namespace, provider string, keep []string, before time.Time) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))

	err := s.Client.List(ctx, list, client.InNamespace(namespace),
		client.MatchingLabels{labelComponent: componentChart, v1alpha2.ProviderLabel: v1alpha2.LabelValue(provider)})
	if err != nil {
		return fmt.Errorf("list stored charts of %s in namespace %s: %w", provider, namespace, err)
	}

	for i := range list.Items {
		if isUnneeded(&list.Items[i], list.Items, keep, before) {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: list.Items[i].Name}}
			if err := s.Client.Delete(
				ctx,
				cm,
				client.Preconditions{UID: &list.Items[i].UID},
			); err != nil &&
				!apierrors.IsNotFound(err) {
				return fmt.Errorf("delete ConfigMap %s/%s with a chart that is no longer needed: %w", namespace, cm.Name, err)
			}
		}
	}

	return nil
}

// unneeded reports whether a ConfigMap is of a chart that may go, or of one that is not whole.
func isUnneeded(
	o *metav1.PartialObjectMetadata,
	all []metav1.PartialObjectMetadata,
	keep []string,
	before time.Time,
) bool {
	if !o.CreationTimestamp.Time.Before(before) {
		return false
	}

	head := slices.IndexFunc(all, func(h metav1.PartialObjectMetadata) bool {
		return h.Annotations[annotationChunks] != "" && (h.Name == o.Name || strings.HasPrefix(o.Name, h.Name+"-"))
	})

	return head < 0 || !slices.Contains(keep, all[head].Annotations[annotationDigest])
}
