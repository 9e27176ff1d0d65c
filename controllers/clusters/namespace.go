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

// LabelNamespace adds labels to a namespace of the cluster. Labels that are there already stay as they
// are. In a remote cluster, a missing namespace is created: the namespace of the resource exists, but not
// necessarily there.
func (t *Target) LabelNamespace(ctx context.Context, name string, labels map[string]string) error {
	if len(labels) == 0 && !t.Remote {
		return nil
	}

	namespace := &corev1.Namespace{}

	err := t.Client.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsNotFound(err) && t.Remote {
		namespace.Name = name
		namespace.Labels = labels

		if err := t.Client.Create(ctx, namespace, client.FieldOwner(v1alpha2.FieldOwner)); err != nil {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}

		return nil
	}

	if err != nil {
		return fmt.Errorf("read namespace %s: %w", name, err)
	}

	before := namespace.DeepCopy()
	namespace.Labels = maps.Clone(labels)
	maps.Copy(namespace.Labels, before.Labels)

	if len(namespace.Labels) == len(before.Labels) {
		return nil
	}

	patch := client.MergeFrom(before)
	if err := t.Client.Patch(ctx, namespace, patch, client.FieldOwner(v1alpha2.FieldOwner)); err != nil {
		return fmt.Errorf("label namespace %s: %w", name, err)
	}

	return nil
}
