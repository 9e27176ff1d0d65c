package controllers

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// labelNamespace puts the labels of the provider's Namespace on the release's, pod-security levels
// among them. A label that is there already stays as it is: a person has decided. In a remote
// cluster the namespace is made if it is missing.
func (r *Reconciler) labelNamespace(ctx context.Context, name string, c *chart.Chart) error {
	labels, err := chartgen.NamespaceLabels(c)
	if err != nil || len(labels) == 0 && !r.Remote {
		return err
	}

	namespace := &corev1.Namespace{}

	err = r.APIReader.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsNotFound(err) && r.Remote { // where nobody has made it by creating the resource
		namespace.Name, namespace.Labels = name, labels
		err = r.Target.Client.Create(ctx, namespace, client.FieldOwner(v1alpha2.FieldOwner))
	}

	if err != nil {
		return fmt.Errorf("read namespace %s: %w", name, err)
	}

	before := namespace.DeepCopy()
	maps.Copy(labels, before.Labels)

	if namespace.Labels = labels; len(labels) == len(before.Labels) {
		return nil
	}

	if err := r.Target.Client.Patch(
		ctx,
		namespace,
		client.MergeFrom(before),
		client.FieldOwner(v1alpha2.FieldOwner),
	); err != nil {
		return fmt.Errorf("label namespace %s: %w", name, err)
	}

	return nil
}
