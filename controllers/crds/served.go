package crds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// Unserved is a CRD that the API server does not serve.
type Unserved struct {
	Name string
	// Obstacle is why the API server will not serve it before something else is done; empty if waiting is enough.
	Obstacle string
}

// NotServed returns those of a chart's CRDs that the API server does not serve yet. If the names of
// one are taken by another CRD, the error is a *RefusedError.
func (a *Applier) NotServed(ctx context.Context, files []chart.File) ([]Unserved, error) {
	var unserved []Unserved

	for _, f := range files {
		name := crdName(f)

		live, err := a.getCached(ctx, name)
		if err != nil {
			return nil, err
		}

		if live == nil {
			unserved = append(unserved, Unserved{Name: name})
			continue
		}

		if conflict := nameConflict(live); conflict != "" && live.DeletionTimestamp.IsZero() {
			holder, err := a.holderOfNames(ctx, live)
			if err != nil {
				return nil, err
			}

			return nil, &RefusedError{Name: name, Err: errors.New(conflict + holder)}
		}

		if !live.DeletionTimestamp.IsZero() || !IsEstablished(live) {
			unserved = append(unserved, Unserved{Name: name, Obstacle: obstacle(live)})
		}
	}

	return unserved, nil
}

// IsEstablished reports whether the API server serves a CRD.
func IsEstablished(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established)
}

// obstacle returns why the API server will not serve a CRD before something else is done; empty if waiting is
// enough.
func obstacle(crd *apiextensionsv1.CustomResourceDefinition) string {
	if !crd.DeletionTimestamp.IsZero() {
		return fmt.Sprintf("CustomResourceDefinition %s is being deleted, and is created again once it is gone; %s",
			crd.Name, deletionWaitsFor(crd))
	}

	established := apihelpers.FindCRDCondition(crd, apiextensionsv1.Established)
	if established == nil || established.Reason != "InvalidCABundle" {
		return ""
	}

	return fmt.Sprintf("CustomResourceDefinition %s is not established: %s: %s; check that cert-manager's cainjector "+
		"runs, and that the Certificate exists that the annotation %s names",
		crd.Name, established.Reason, established.Message, v1alpha2.InjectCAAnnotation)
}

// deletionWaitsFor returns what keeps a CRD that is being deleted. It does not quote the condition Terminating, whose
// reason changes with each attempt of the API server.
func deletionWaitsFor(crd *apiextensionsv1.CustomResourceDefinition) string {
	if others := OtherFinalizers(crd); len(others) > 0 {
		return fmt.Sprintf("it is held by its finalizers %s, which their owner must remove", strings.Join(others, ", "))
	}

	return fmt.Sprintf("it waits for the deletion of its objects: remove the finalizers of those that "+
		"kubectl get %s --all-namespaces still lists", crd.Name)
}

// OtherFinalizers returns the finalizers of a CRD that are not the API server's own.
func OtherFinalizers(crd *apiextensionsv1.CustomResourceDefinition) []string {
	return slices.DeleteFunc(slices.Clone(crd.Finalizers), func(finalizer string) bool {
		return finalizer == apiextensionsv1.CustomResourceCleanupFinalizer
	})
}

// nameConflict returns why the API server does not accept the names of a CRD; empty if it does, or
// has not decided yet.
func nameConflict(crd *apiextensionsv1.CustomResourceDefinition) string {
	if !apihelpers.IsCRDConditionFalse(crd, apiextensionsv1.NamesAccepted) {
		return ""
	}

	return apihelpers.FindCRDCondition(crd, apiextensionsv1.NamesAccepted).Message
}

// holderOfNames names the CRD that has a name that another one wants, and says how to solve that; empty if there is
// none any more.
func (a *Applier) holderOfNames(ctx context.Context, wants *apiextensionsv1.CustomResourceDefinition) (string, error) {
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := a.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list CustomResourceDefinitions: %w", err)
	}

	for _, other := range list.Items {
		if other.Name != wants.Name && other.Spec.Group == wants.Spec.Group && sharesNames(&other, wants) {
			holder := fmt.Sprintf(" by CustomResourceDefinition %s; delete that one if nothing needs it any more", other.Name)
			if apihelpers.FindCRDCondition(wants, apiextensionsv1.NamesAccepted).Reason == "ShortNamesConflict" {
				holder += ", or remove the short name by spec.patches"
			}

			return holder, nil
		}
	}

	return "", nil
}

// sharesNames reports whether a CRD has a name that another one wants.
func sharesNames(holder, wants *apiextensionsv1.CustomResourceDefinition) bool {
	accepted, wanted := holder.Status.AcceptedNames, wants.Spec.Names

	return intersects(resourceNames(accepted), resourceNames(wanted)) ||
		intersects([]string{accepted.Kind, accepted.ListKind}, []string{wanted.Kind, wanted.ListKind})
}

// resourceNames returns the names by which requests can refer to a CRD's resource.
func resourceNames(names apiextensionsv1.CustomResourceDefinitionNames) []string {
	return append([]string{names.Plural, names.Singular}, names.ShortNames...)
}

func intersects(a, b []string) bool {
	return slices.ContainsFunc(a, func(name string) bool { return slices.Contains(b, name) })
}
