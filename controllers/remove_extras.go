package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/usage"
)

// deleteCRDs deletes the provider's CRDs, those of older versions too, if the resource asks for it
// and nothing is lost by it. It comes after the release, whose manager can make no more objects
// then.
func (r *removal) deleteCRDs(ctx context.Context) error {
	if !r.asked(v1alpha2.DeleteCRDsAnnotation) {
		return nil
	}

	twins, err := r.others(ctx, func(p v1alpha2.Provider) bool { return v1alpha2.Label(p) == v1alpha2.Label(r.provider) })
	if err != nil || len(twins) > 0 {
		return err // the CRDs are the other resource's, too
	}

	definitions, err := r.deletableCRDs(ctx)
	if err != nil || len(definitions) == 0 {
		return err
	}

	found, err := r.usage(ctx, usage.Query{Provider: v1alpha2.Label(r.provider)})
	if err != nil {
		return err
	}

	if !found.None() {
		return &blockedError{
			message: fmt.Sprintf(
				"the provider is uninstalled, but its CustomResourceDefinitions are not deleted: %s; delete them first, or remove the annotation %s to keep the CustomResourceDefinitions",
				found.Message(),
				v1alpha2.DeleteCRDsAnnotation,
			),
		}
	}

	resource := r.CRDs.Writer.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))

	for i := range definitions {
		d := &definitions[i]
		if !d.DeletionTimestamp.IsZero() {
			continue
		}

		err := resource.Delete(ctx, d.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &d.UID}})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete CustomResourceDefinition %s: %w", d.Name, err)
		}
	}

	return r.waitForCRDs(definitions)
}

// deletableCRDs are the provider's CRDs that the operator looks after.
func (r *removal) deletableCRDs(ctx context.Context) ([]apiextensionsv1.CustomResourceDefinition, error) {
	spec := r.provider.GetSpec().CRDs
	if spec != nil && spec.Policy == v1alpha2.CRDsNone {
		return nil, nil
	}

	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := r.CRDs.Reader.List(
		ctx,
		list,
		client.MatchingLabels{v1alpha2.ClusterctlProviderLabel: v1alpha2.Label(r.provider)},
	); err != nil {
		return nil, fmt.Errorf("list the provider's CustomResourceDefinitions: %w", err)
	}

	return slices.DeleteFunc(list.Items, func(d apiextensionsv1.CustomResourceDefinition) bool {
		return spec != nil && slices.Contains(spec.Unmanaged, d.Name)
	}), nil
}

// waitForCRDs says which CRDs are still on their way out, and why one does not go; the watch tells
// when they are gone.
func (r *removal) waitForCRDs(definitions []apiextensionsv1.CustomResourceDefinition) error {
	message := "waiting until the API server has deleted the provider's CustomResourceDefinitions"

	for _, d := range definitions {
		for _, c := range d.Status.Conditions {
			if c.Type == apiextensionsv1.Terminating && c.Status == apiextensionsv1.ConditionTrue &&
				c.Reason == "InstanceDeletionFailed" {
				return &blockedError{
					message: fmt.Sprintf("%s; %s is held by its objects: %s; remove their finalizers", message, d.Name, c.Message),
				}
			}
		}

		if other := slices.DeleteFunc(slices.Clone(d.Finalizers), isCleanup); len(other) > 0 {
			return &blockedError{
				message: fmt.Sprintf(
					"%s; %s is held by its finalizers %s, which their owner must take off",
					message,
					d.Name,
					strings.Join(other, ", "),
				),
			}
		}
	}

	return &blockedError{waiting: true, message: message}
}

// isCleanup reports whether a finalizer of a CRD is the API server's own.
func isCleanup(finalizer string) bool {
	return finalizer == apiextensionsv1.CustomResourceCleanupFinalizer
}

// deleteNamespace deletes the resource's namespace if it asks for it. Of several resources that go
// together the last one does: they let the one with the greatest UID be that.
func (r *removal) deleteNamespace(ctx context.Context) error {
	if r.vanishing || !r.asked(v1alpha2.DeleteNamespaceAnnotation) {
		return nil
	}

	neighbours, err := r.others(
		ctx,
		func(p v1alpha2.Provider) bool { return p.GetNamespace() == r.provider.GetNamespace() },
	)
	if err != nil {
		return err
	}

	for _, p := range neighbours {
		if p.GetAnnotations()[v1alpha2.DeleteNamespaceAnnotation] == "true" &&
			cmp.Compare(p.GetUID(), r.provider.GetUID()) > 0 {
			return nil
		}
	}

	if len(neighbours) > 0 {
		return &blockedError{
			waiting: true,
			message: "the namespace is deleted as soon as these are gone: " + namesOf(neighbours),
		}
	}

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.provider.GetNamespace()}}
	if err := r.Target.Client.Delete(ctx, namespace); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf(
			"delete namespace %s: %w; remove the annotation %s to keep it",
			namespace.Name,
			err,
			v1alpha2.DeleteNamespaceAnnotation,
		)
	}

	return nil
}
