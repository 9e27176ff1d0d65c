package crds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/crds/versions"
	"github.com/capstan-project/capstan/controllers/object"
)

// Serving is whether the API server serves the CRDs of a chart.
type Serving struct {
	// All is set if it serves all of them.
	All bool
	// Obstacle is what has to be done before it will serve one of them; empty if waiting is enough.
	Obstacle string
	// Remark is about CRDs that are served without names that they ask for; empty for none.
	Remark string
}

// Served returns whether the API server serves the CRDs of a chart. If it never will, because the names of one are
// taken by another CRD, the error is a *problem.Error.
func (a *Applier) Served(ctx context.Context, files []chart.File) (Serving, error) {
	found := Serving{All: true}

	var remarks []string

	for _, f := range files {
		live, err := a.getCached(ctx, crdName(f))
		if err != nil {
			return Serving{}, err
		}

		switch {
		case live == nil:
			found.All = false
		case !live.DeletionTimestamp.IsZero():
			found.All = false
			found.Obstacle = cmp.Or(found.Obstacle, obstacleOf(live))
		case isEstablished(live):
			if taken := takenNames(live); taken != nil && !hasItsNames(live) {
				remarks = append(remarks, fmt.Sprintf("CustomResourceDefinition %s is served without a new name, because %s",
					live.Name, taken.Message))
			}
		case takenNames(live) != nil:
			return Serving{}, Refused(live.Name, errors.New(whyNotServed(live)))
		default:
			found.All = false
			found.Obstacle = cmp.Or(found.Obstacle, obstacleOf(live))
		}
	}

	found.Remark = object.List(remarks, maxRemarks)

	return found, nil
}

// ServedVersions returns the versions that the API server serves of a CRD, given its name; none if it does not exist.
func (a *Applier) ServedVersions(ctx context.Context, name string) ([]string, error) {
	live, err := a.getCached(ctx, name)
	if err != nil || live == nil {
		return nil, err
	}

	return versions.Served(live), nil
}

// ServedByChart returns the versions that a CRD of a chart's files serves, sorted; none if there is no such file.
func ServedByChart(files []chart.File, name string) ([]string, error) {
	i := slices.IndexFunc(files, func(f chart.File) bool { return crdName(f) == name })
	if i < 0 {
		return nil, nil
	}

	served, err := definition{name: name, file: files[i]}.served()
	if err != nil {
		return nil, err
	}

	maps.DeleteFunc(served, func(_ string, isServed bool) bool { return !isServed })

	return slices.Sorted(maps.Keys(served)), nil
}

// maxRemarks bounds how many CRDs a remark names.
const maxRemarks = 3

// isEstablished reports whether the API server serves a CRD.
func isEstablished(crd *apiextensionsv1.CustomResourceDefinition) bool {
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

// takenNames returns the condition that names of a CRD are taken by another one; nil if the API server accepts all
// names, or has not decided yet.
func takenNames(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionCondition {
	accepted := apihelpers.FindCRDCondition(crd, apiextensionsv1.NamesAccepted)
	if accepted == nil || accepted.Status != apiextensionsv1.ConditionFalse {
		return nil
	}

	return accepted
}

// hasItsNames reports whether a CRD has all names that it asks for. The API server does not look at it again then, so
// the condition that names are taken stays, and so does what follows from it, if it asks for them no longer.
func hasItsNames(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return equality.Semantic.DeepEqual(crd.Spec.Names, crd.Status.AcceptedNames)
}

// whyNotServed returns why the API server does not serve a CRD, some of whose names were taken, and what to do.
func whyNotServed(crd *apiextensionsv1.CustomResourceDefinition) string {
	if hasItsNames(crd) {
		return "it has no taken names any more, but the API server does not notice that; delete it, to be created " +
			"again: it has no objects, because it was never served"
	}

	fix := "a cluster can have only one of the two: choose a version of the provider without it, or delete the other " +
		"one if it is left of a provider that is gone"

	taken := takenNames(crd)
	if taken.Reason == "ShortNamesConflict" {
		fix = "replace that short name in its spec.names.shortNames with spec.patches"
	}

	return fmt.Sprintf("%s, as kubectl api-resources --api-group=%s shows; %s", taken.Message, crd.Spec.Group, fix)
}
