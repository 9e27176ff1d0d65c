package reconcile

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/controllers/release"
)

// labelNamespace adds the labels of the provider's Namespace, pod security levels among them, to the
// release's. Labels that are there already stay as they are. In a remote cluster, a missing namespace
// is created: the namespace of the resource exists, but not necessarily there.
func (r *run) labelNamespace(ctx context.Context, desired release.Spec) error {
	labels, err := chartgen.NamespaceLabels(desired.Chart)
	if err != nil || len(labels) == 0 && !r.target.Remote {
		return err
	}

	name := desired.Release.Namespace
	namespace := &corev1.Namespace{}

	err = r.target.Client.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsNotFound(err) && r.target.Remote {
		namespace.Name = name
		namespace.Labels = labels

		if err := r.target.Client.Create(ctx, namespace, client.FieldOwner(v1alpha2.FieldOwner)); err != nil {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}

		return nil
	}

	if err != nil {
		return fmt.Errorf("read namespace %s: %w", name, err)
	}

	before := namespace.DeepCopy()
	maps.Copy(labels, before.Labels)
	namespace.Labels = labels

	if len(labels) == len(before.Labels) {
		return nil
	}

	patch := client.MergeFrom(before)
	if err := r.target.Client.Patch(ctx, namespace, patch, client.FieldOwner(v1alpha2.FieldOwner)); err != nil {
		return fmt.Errorf("label namespace %s: %w", name, err)
	}

	return nil
}
