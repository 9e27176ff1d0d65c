package removal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/usage"
)

// DeleteCRDs deletes the provider's CRDs, including those of older versions, unless objects would be lost. Call it
// after the release is uninstalled, when the provider's manager can no longer create objects.
func (r *Removal) DeleteCRDs(ctx context.Context) error {
	label := v1alpha2.Label(r.Provider)

	// A resource that was installed itself shares the CRDs with no resource that was not.
	duplicates, err := r.others(ctx, func(p v1alpha2.Provider) bool {
		return v1alpha2.Label(p) == label && (p.GetStatus().Release != nil || !r.ours)
	})
	if err != nil || len(duplicates) > 0 {
		return err // the CRDs are the other resource's too
	}

	definitions, err := r.deletableCRDs(ctx)
	if err != nil || len(definitions) == 0 {
		return err
	}

	found, err := r.usage(ctx, usage.Query{Provider: label, CRDs: r.Provider.GetSpec().CRDs})
	if err != nil {
		return err
	}

	if !found.Unused() {
		return blocked(
			"the provider is uninstalled, but its CustomResourceDefinitions are not deleted: %s; "+
				"delete them first, or remove the annotation %s to keep the CustomResourceDefinitions",
			found.Message(), v1alpha2.DeleteCRDsAnnotation)
	}

	gvr := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	resource := r.Target.CRDs.Metadata.Resource(gvr)

	for i := range definitions {
		d := &definitions[i]
		if !d.DeletionTimestamp.IsZero() {
			continue
		}

		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &d.UID}}
		if err := resource.Delete(ctx, d.Name, options); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete CustomResourceDefinition %s: %w", d.Name, err)
		}
	}

	return waitForCRDs(definitions)
}

// deletableCRDs lists the provider's CRDs that the operator has applied, whatever has the provider's label. A resource
// that has not installed the provider may have applied some, and the others belong to whatever has installed it.
func (r *Removal) deletableCRDs(ctx context.Context) ([]apiextensionsv1.CustomResourceDefinition, error) {
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	ofProvider := client.MatchingLabels{v1alpha2.ClusterctlProviderLabel: v1alpha2.Label(r.Provider)}

	if err := r.Target.CRDs.Client.List(ctx, list, ofProvider); err != nil {
		return nil, fmt.Errorf("list the provider's CustomResourceDefinitions: %w", err)
	}

	return slices.DeleteFunc(list.Items, func(d apiextensionsv1.CustomResourceDefinition) bool {
		others := !r.ours && !crds.IsAppliedFor(&d, r.Provider.GetUID())

		return others || !DeletesCRD(r.Provider, &d)
	}), nil
}

// DeletesCRD reports whether the operator deletes a CRD with the label of a provider: Capstan has applied it, and the
// spec allows the deletion.
func DeletesCRD(p v1alpha2.Provider, definition metav1.Object) bool {
	spec, name := p.GetSpec().CRDs, definition.GetName()
	if !crds.IsApplied(definition) {
		return false
	}

	return spec == nil || spec.Policy != v1alpha2.CRDsNone && !slices.Contains(spec.Unmanaged, name)
}

// waitForCRDs reports that CRDs are being deleted, and why one of them is not; the watch tells when
// they are gone.
func waitForCRDs(definitions []apiextensionsv1.CustomResourceDefinition) error {
	const waiting = "waiting for the API server to delete the provider's CustomResourceDefinitions"

	for _, d := range definitions {
		for _, c := range d.Status.Conditions {
			terminating := c.Type == apiextensionsv1.Terminating && c.Status == apiextensionsv1.ConditionTrue
			if terminating && c.Reason == "InstanceDeletionFailed" {
				return blocked(
					"%s; %s is held by its objects: %s; remove their finalizers", waiting, d.Name, c.Message)
			}
		}

		if others := crds.OtherFinalizers(&d); len(others) > 0 {
			return blocked(
				"%s; %s is held by its finalizers %s, which their owner must remove",
				waiting, d.Name, strings.Join(others, ", "))
		}
	}

	return awaiting("%s", waiting)
}
