package crds

import (
	"bytes"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/controllers/objectdiff"
)

// Drift is how another program has changed a CRD since it was applied. It contains no values.
type Drift struct {
	// Name of the CRD.
	Name string
	// Fields that others have changed, as JSON pointers, sorted.
	Fields []string

	change *change
}

// Correction returns the plan that applies a CRD that has drifted. It is migrated, checked and applied like
// any other change.
func (p *Plan) Correction(d Drift) *Plan {
	return &Plan{request: p.request, changes: []*change{d.change}}
}

// findDrift adds a CRD that is as up to date as its annotations say to the plan's drifted ones, if another
// program has changed it. It makes no request: the API server takes a field away from its owners when another
// program writes another value.
func (a *Applier) findDrift(p *Plan, c *change) error {
	// The cache may not show yet what was applied last.
	if a.of(c.name).replaced == c.live.ResourceVersion {
		return nil
	}

	applied, err := a.appliedFields(c.definition, p.request)
	if err != nil {
		return err
	}

	owned, err := ownedFields(c.live)
	if err != nil {
		return err
	}

	lost := applied.Difference(owned)
	if lost.Empty() {
		c.file.DropJSON() // nothing is left to do with the file

		return nil
	}

	// The versions may be other ones now.
	if err := a.findRemovedVersions(c); err != nil {
		return err
	}

	p.Drifted = append(p.Drifted, Drift{Name: c.name, Fields: pointers(lost), change: c})

	return nil
}

// appliedFields returns the fields that applying a definition makes Capstan's.
func (a *Applier) appliedFields(d definition, request Request) (*fieldpath.Set, error) {
	if applied := a.factsOf(d).applied; applied != nil {
		return applied, nil
	}

	object, err := d.prepare(request, nil)
	if err != nil {
		return nil, err
	}

	return a.learnFields(d, object)
}

// learnFields remembers the fields that applying a definition makes Capstan's. The object is what is applied, and is
// changed.
func (a *Applier) learnFields(d definition, object *unstructured.Unstructured) (*fieldpath.Set, error) {
	// No field manager owns what identifies an object, and cert-manager replaces the CA.
	for _, field := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}} {
		unstructured.RemoveNestedField(object.Object, field...)
	}

	bundle.RemoveCABundle(object.Object)

	content, err := typed.DeducedParseableType.FromUnstructured(object.Object)
	if err != nil {
		return nil, Refused(d.name, err)
	}

	fields, err := content.ToFieldSet()
	if err != nil {
		return nil, Refused(d.name, err)
	}

	applied := fields.Leaves()

	a.learn(d, func(f *facts) { f.applied = applied })

	return applied, nil
}

// appliedEntry returns the entry of a live CRD's managedFields for the fields that Capstan has applied; nil if there is
// none.
func appliedEntry(live *apiextensionsv1.CustomResourceDefinition) *metav1.FieldsV1 {
	i := slices.IndexFunc(live.ManagedFields, isApplyByCapstan)
	if i < 0 {
		return nil
	}

	return live.ManagedFields[i].FieldsV1
}

func isApplyByCapstan(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == v1alpha2.FieldOwner && entry.Operation == metav1.ManagedFieldsOperationApply &&
		entry.Subresource == ""
}

// ownedFields returns the fields of a live CRD that still have the values that Capstan has applied.
func ownedFields(live *apiextensionsv1.CustomResourceDefinition) (*fieldpath.Set, error) {
	owned := &fieldpath.Set{}

	entry := appliedEntry(live)
	if entry == nil {
		return owned, nil
	}

	if err := owned.FromJSON(bytes.NewReader(entry.GetRawBytes())); err != nil {
		return nil, fmt.Errorf("read the managedFields of CustomResourceDefinition %s: %w", live.Name, err)
	}

	return owned, nil
}

// pointers returns fields as JSON pointers, sorted.
func pointers(fields *fieldpath.Set) []string {
	var all []string

	for path := range fields.All() {
		pointer := ""

		for _, element := range path {
			if element.FieldName != nil {
				pointer = objectdiff.Child(pointer, *element.FieldName)
			}
		}

		all = append(all, pointer)
	}

	slices.Sort(all)

	return all
}
