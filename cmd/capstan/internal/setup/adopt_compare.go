package setup

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/objectdiff"
	"github.com/capstan-project/capstan/controllers/plan"
)

// difference is what the adoption of a provider would change.
type difference struct {
	// changes are those of objects, apart from Helm's label and annotations, which marked counts the objects for.
	changes []objectdiff.Change
	marked  int

	// recreated says of objects why they would be. They are disrupted, like those whose pods would restart, and the
	// Secrets whose content would change.
	recreated, disrupted []string

	newCRDs, changedCRDs []string
	// crds are the fields of changed CRDs that would become others.
	crds []crds.Difference
}

// compare finds out what the adoption would change.
func (a *adoption) compare(ctx context.Context, cluster *cli.Cluster, planner *cli.Planner) error {
	// The Secret does not exist yet.
	planned := a.resource.DeepCopyObject().(v1alpha2.Provider)
	if secret := a.secret(); secret != nil {
		planned.GetSpec().Variables = secret.StringData
	}

	preview, err := planner.Plan(ctx, planned)
	if err != nil {
		return err
	}

	a.warnings = preview.Warnings.All()

	adopted, err := cluster.Releases.PreviewAdoption(ctx, plan.ReleaseKey(planned), preview.Rendered.Objects)
	if err != nil {
		return err
	}

	a.newCRDs, a.changedCRDs, a.crds = preview.NewCRDs, preview.ChangedCRDs, preview.CRDDifferences

	var before, after []*unstructured.Unstructured

	for _, o := range adopted {
		if o.Before != nil {
			before = append(before, withoutMarks(o.Before))
			a.marked++

			if o.Outcome == apply.Replaced {
				a.recreated = append(a.recreated, o.Object.String()+" would be deleted and recreated: "+o.Reason)
			}

			if o.Outcome == apply.Replaced || disrupts(o.Before, o.After) {
				a.disrupted = append(a.disrupted, o.Object.String())
			}
		}

		after = append(after, withoutMarks(o.After))
	}

	masker := view.Masker(a.resource, preview.Rendered)
	a.changes, err = objectdiff.Compare(masker.Objects(before), masker.Objects(after), view.ContextLines)

	return err
}

// disrupts reports whether an object gets another pod template, or is a Secret that gets other content.
func disrupts(before, after *unstructured.Unstructured) bool {
	var field []string

	switch kind := after.GroupVersionKind().GroupKind(); {
	case kind.Group == appsv1.GroupName:
		field = []string{"spec", "template"}
	case kind == corev1.SchemeGroupVersion.WithKind("Secret").GroupKind():
		field = []string{"data"}
	default:
		return false
	}

	old, _, _ := unstructured.NestedFieldNoCopy(before.Object, field...)
	changed, _, _ := unstructured.NestedFieldNoCopy(after.Object, field...)

	return !equality.Semantic.DeepEqual(old, changed)
}

// withoutMarks returns an object without what the API server maintains, and without the label and annotations that
// every object of a Helm release has.
func withoutMarks(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()

	unstructured.RemoveNestedField(o.Object, "status")

	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
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

// maxFields is how many fields of a CRD are printed.
const maxFields = 20

// print prints the changes of objects in full, and those of CRDs by field.
func (d difference) print(printer *cli.Printer) {
	cli.PrintChanges(printer, d.changes)

	for _, line := range d.recreated {
		printer.Printf("%s", printer.Paint(cli.Yellow, "  "+line))
	}

	for _, name := range d.newCRDs {
		printer.Printf("%s", printer.Paint(cli.Yellow, "  CustomResourceDefinition "+name+" would be created"))
	}

	for _, c := range d.crds {
		printer.Printf("%s", printer.Paint(cli.Yellow, "  CustomResourceDefinition "+c.Name+" would be changed: "+
			object.List(c.Fields, maxFields)))
	}

	summary := "no changes"
	if n := len(d.changes) + len(d.newCRDs) + len(d.crds); n > 0 {
		summary = object.Count(n, "object") + " to change or to create"
	}

	printer.Printf("  %s; %s get the label and annotations of Helm releases, and %s those of Capstan",
		summary, object.Count(d.marked, "object"), object.Count(len(d.changedCRDs), "CustomResourceDefinition"))
}
