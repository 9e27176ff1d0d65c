package crds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// Served reports whether the API server serves the CRDs of a chart, and what has to be done before it will serve one of
// them; the obstacle is empty if waiting is enough. If the names of one are taken by another CRD, the error is a
// *RefusedError.
func (a *Applier) Served(ctx context.Context, files []chart.File) (served bool, obstacle string, err error) {
	served = true

	for _, f := range files {
		live, err := a.getCached(ctx, crdName(f))
		if err != nil {
			return false, "", err
		}

		if live == nil {
			served = false
			continue
		}

		if conflict := nameConflict(live); conflict != "" && live.DeletionTimestamp.IsZero() {
			return false, "", &RefusedError{Name: live.Name, Err: errors.New(conflict)}
		}

		if !live.DeletionTimestamp.IsZero() || !IsEstablished(live) {
			served = false
			obstacle = cmp.Or(obstacle, obstacleOf(live))
		}
	}

	return served, obstacle, nil
}

// IsEstablished reports whether the API server serves a CRD.
func IsEstablished(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established)
}

// obstacleOf returns why the API server will not serve a CRD before something else is done; empty if waiting is
// enough.
func obstacleOf(crd *apiextensionsv1.CustomResourceDefinition) string {
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

// nameConflict returns which name of a CRD another one has, and what to do; empty if the API server accepts all names,
// or has not decided yet.
func nameConflict(crd *apiextensionsv1.CustomResourceDefinition) string {
	accepted := apihelpers.FindCRDCondition(crd, apiextensionsv1.NamesAccepted)
	if accepted == nil || accepted.Status != apiextensionsv1.ConditionFalse {
		return ""
	}

	return fmt.Sprintf("%s; find the other CustomResourceDefinition by kubectl api-resources --api-group=%s, and delete "+
		"it if nothing needs it any more", accepted.Message, crd.Spec.Group)
}
