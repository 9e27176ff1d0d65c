package conformance

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// createOwned creates the Cluster, and the objects of the provider that it owns, in a namespace of their own, which it
// returns.
func (c *check) createOwned(ctx context.Context) (namespace string, err error) {
	if namespace, err = c.createNamespace(ctx); err != nil {
		return "", err
	}

	cluster, err := c.createCluster(ctx, namespace)
	if err != nil {
		return "", err
	}

	for _, o := range c.topology.others {
		if err := c.create(ctx, o.DeepCopy(), namespace); err != nil {
			return "", err
		}
	}

	for _, o := range c.topology.referenced {
		o = o.DeepCopy()
		o.SetLabels(labels.Merge(o.GetLabels(), labels.Set{clusterv1.ClusterNameLabel: cluster.GetName()}))
		o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(cluster, cluster.GroupVersionKind())})

		if err := c.create(ctx, o, namespace); err != nil {
			return "", err
		}
	}

	return namespace, nil
}

// createCluster creates the Cluster, which has all that a control plane waits for but an endpoint.
func (c *check) createCluster(ctx context.Context, namespace string) (*unstructured.Unstructured, error) {
	cluster := c.topology.cluster.DeepCopy()
	unstructured.RemoveNestedField(cluster.Object, "spec", "controlPlaneEndpoint")

	if err := c.create(ctx, cluster, namespace); err != nil {
		return nil, err
	}

	cluster.Object["status"] = map[string]any{
		"infrastructureReady": true, // v1beta1
		"initialization":      map[string]any{"infrastructureProvisioned": true},
	}

	return cluster, c.client.Status().Update(ctx, cluster)
}

// createUnowned creates the same objects without the Cluster in another namespace, which it returns.
func (c *check) createUnowned(ctx context.Context) (namespace string, err error) {
	if namespace, err = c.createNamespace(ctx); err != nil {
		return "", err
	}

	for _, o := range c.topology.referenced {
		if err := c.create(ctx, o.DeepCopy(), namespace); err != nil {
			return "", err
		}
	}

	return namespace, nil
}

// createNamespace creates a namespace and returns its name.
func (c *check) createNamespace(ctx context.Context) (string, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "conformance-"}}
	err := c.client.Create(ctx, namespace)

	return namespace.Name, err
}

// create creates an object of the topology in a namespace. The API server may call webhooks for a moment after
// their configuration has been deleted, and fails then.
func (c *check) create(ctx context.Context, o *unstructured.Unstructured, namespace string) error {
	o.SetNamespace(namespace)

	var failure error

	_, err := c.poll(ctx, func(ctx context.Context) (bool, error) {
		failure = c.client.Create(ctx, o)
		return !apierrors.IsInternalError(failure), nil
	})
	if err == nil && failure != nil {
		err = fmt.Errorf("create %s %s of %s: %w", o.GetKind(), o.GetName(), c.options.Manager.Cluster, failure)
	}

	return err
}

// deleteObjects deletes a namespace with the objects of the topology, whatever finalizers the manager has set.
func (c *check) deleteObjects(ctx context.Context, namespace string) error {
	for _, o := range slices.Concat(c.topology.referenced, c.topology.others) {
		o = o.DeepCopy()
		o.SetNamespace(namespace)

		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := c.client.Patch(ctx, o, patch); client.IgnoreNotFound(err) != nil {
			return err
		}
	}

	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := c.client.Delete(ctx, o); err != nil {
		return err
	}

	gone, err := c.poll(ctx, func(ctx context.Context) (bool, error) {
		err := c.client.Get(ctx, client.ObjectKeyFromObject(o), o)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err == nil && !gone {
		err = fmt.Errorf("namespace %s is not deleted: %v", namespace, o.Status.Conditions)
	}

	return err
}
