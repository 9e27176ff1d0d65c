package adopt

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/controllers/objectdiff"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/predecessor"
)

// difference is what the adoption would change.
type difference struct {
	// objects would change in more than Helm's label and annotations; marked is how many get only these.
	objects []objectdiff.Change
	marked  int

	newCRDs, changedCRDs []string
	// crds are the fields of changed CRDs that would become others.
	crds []crds.Difference
}

// compare finds out what the adoption would change. It leaves the difference empty if variables are missing.
func (p *proposer) compare(ctx context.Context, result *proposal) error {
	if len(result.missing()) > 0 {
		return nil
	}

	// The Secret does not exist yet.
	planned := result.Provider.DeepCopyObject().(v1alpha2.Provider)
	if result.secret != nil {
		planned.GetSpec().SecretName = ""
		planned.GetSpec().Variables = maps.Clone(result.secret.StringData)
	}

	preview, err := p.planner.Plan(ctx, planned)
	if err != nil {
		return err
	}

	result.Warnings = append(result.Warnings, preview.Warnings.All()...)

	adoptions, err := p.cluster.Releases.PreviewAdoption(ctx, plan.ReleaseKey(planned), preview.Rendered.Objects)
	if err != nil {
		return err
	}

	result.difference.newCRDs, result.difference.changedCRDs = preview.NewCRDs, preview.ChangedCRDs
	result.difference.crds = preview.CRDDifferences

	var before, after []*unstructured.Unstructured

	for _, a := range adoptions {
		if a.Before != nil {
			before = append(before, withoutMarks(a.Before))
			result.difference.marked++
		}

		after = append(after, withoutMarks(a.After))
	}

	masker := facts.Masker(result.Provider, preview.Rendered)
	result.difference.objects, err = objectdiff.Compare(masker.Objects(before), masker.Objects(after), p.contextLines)

	return err
}

// withoutMarks returns an object without what the API server maintains, and without the label and annotations that
// every object of a Helm release has.
func withoutMarks(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	unstructured.RemoveNestedField(o.Object, "status")

	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}

	if predecessor.Owns(o) {
		o.SetOwnerReferences(nil)
	}

	o.SetLabels(without(o.GetLabels(), v1alpha2.ManagedByLabel))
	o.SetAnnotations(without(o.GetAnnotations(),
		v1alpha2.HelmReleaseNameAnnotation, v1alpha2.HelmReleaseNamespaceAnnotation))

	return o
}

// without returns a map without keys; nil if nothing is left.
func without(m map[string]string, keys ...string) map[string]string {
	for _, key := range keys {
		delete(m, key)
	}

	if len(m) == 0 {
		return nil
	}

	return m
}
