package clusters

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// MarkNamespace adds labels and annotations to a namespace of the cluster. Those that are there already stay
// as they are. In a remote cluster, a missing namespace is created: the namespace of the resource exists, but not
// necessarily there.
func (t *Target) MarkNamespace(ctx context.Context, name string, labels, annotations map[string]string) error {
	if len(labels)+len(annotations) == 0 && !t.Remote {
		return nil
	}

	namespace := &corev1.Namespace{}

	err := t.Client.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsNotFound(err) && t.Remote {
		namespace.Name = name
		namespace.Labels = labels
		namespace.Annotations = annotations

		if err := t.Client.Create(ctx, namespace, client.FieldOwner(v1alpha2.FieldOwner)); err != nil {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}

		return nil
	}

	if err != nil {
		return fmt.Errorf("read namespace %s: %w", name, err)
	}

	before := namespace.DeepCopy()
	namespace.Labels = added(before.Labels, labels)
	namespace.Annotations = added(before.Annotations, annotations)

	if len(namespace.Labels) == len(before.Labels) && len(namespace.Annotations) == len(before.Annotations) {
		return nil
	}

	patch := client.MergeFrom(before)
	if err := t.Client.Patch(ctx, namespace, patch, client.FieldOwner(v1alpha2.FieldOwner)); err != nil {
		return fmt.Errorf("label and annotate namespace %s: %w", name, err)
	}

	return nil
}

// added returns the entries that are there and, of the others, those with new keys.
func added(there, others map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, others)
	maps.Copy(all, there)

	return all
}
