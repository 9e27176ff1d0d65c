package crds

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/typed"
	"github.com/capstan-project/capstan/controllers/objectdiff"
)

// Drift is how another program has changed a CRD since it was applied. It contains no values.
type Drift struct {
	// Name of the CRD.
	Name string
	// Fields that differ, as JSON pointers, sorted.
	Fields []string

	change *change
}

// Correction returns the plan that applies a CRD that has drifted. It is migrated, checked and applied like
// any other change.
func (p *Plan) Correction(name string) *Plan {
	correction := &Plan{request: p.request}

	for _, d := range p.Drifted {
		if d.Name == name {
			correction.changes = append(correction.changes, d.change)
		}
	}

	return correction
}

// findDrift adds a CRD that is as up to date as its annotations say to the plan's drifted ones, if another
// program has changed it. It makes no request: whether the versions, which the cache does not have, were
// changed follows from managedFields, and everything else is compared.
func (a *Applier) findDrift(p *Plan, c *change) error {
	// The cache may not show yet what was applied last.
	if replaced, found := a.replaced.get(c.name); found && replaced == c.live.ResourceVersion {
		return nil
	}

	facts, err := a.facts(c.definition)
	if err != nil {
		return err
	}

	fields, err := facts.driftOf(c.live)
	if err != nil || len(fields) == 0 {
		return err
	}

	// The versions may be other ones now.
	if err := a.findRemovedVersions(c); err != nil {
		return err
	}

	p.Drifted = append(p.Drifted, Drift{Name: c.name, Fields: fields, change: c})

	return nil
}

// facts are what is known of a definition after its file was parsed, without the schemas.
type facts struct {
	versions versionNames
	// labels, and the annotation that names the certificate, in which drift matters.
	labels      map[string]string
	certificate string
	// spec is the definition's without versions, as a JSON object.
	spec map[string]any
}

// facts returns the facts of a definition. It parses each file only once, because they can have hundreds
// of kilobytes.
func (a *Applier) facts(d definition) (*facts, error) {
	if known, found := a.parsed.get(d.digest); found {
		return known, nil
	}

	parsed, err := d.parseFacts()
	if err != nil {
		return nil, err
	}

	a.parsed.add(d.digest, parsed)

	return parsed, nil
}

// parseFacts parses the file of a definition.
func (d definition) parseFacts() (*facts, error) {
	object, err := d.parseUnstructured()
	if err != nil {
		return nil, err
	}

	if err := typed.Check(object); err != nil {
		return nil, &RefusedError{Name: d.name, Err: err}
	}

	names := newVersionNames(object)

	bundle.MoveCRD(object, d.namespace)
	unstructured.RemoveNestedField(object.Object, "spec", "versions")
	bundle.RemoveCABundle(object.Object)

	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil {
		return nil, &RefusedError{Name: d.name, Err: err}
	}

	return &facts{
		versions:    names,
		labels:      object.GetLabels(),
		certificate: object.GetAnnotations()[v1alpha2.InjectCAAnnotation],
		spec:        spec,
	}, nil
}

// driftOf returns the fields in which a live CRD differs from the definition that was applied to it. What
// others have added is no difference.
func (f *facts) driftOf(live *apiextensionsv1.CustomResourceDefinition) ([]string, error) {
	spec := live.Spec
	spec.Versions = nil

	liveSpec, err := contentOf(live, spec)
	if err != nil {
		return nil, err
	}

	fields := differing("/spec", f.spec, liveSpec)

	if !ownsVersions(live) {
		fields = append(fields, versionsPointer)
	}

	for name, value := range f.labels {
		if live.Labels[name] != value {
			fields = append(fields, objectdiff.Child("/metadata/labels", name))
		}
	}

	if f.certificate != "" && live.Annotations[v1alpha2.InjectCAAnnotation] != f.certificate {
		fields = append(fields, objectdiff.Child("/metadata/annotations", v1alpha2.InjectCAAnnotation))
	}

	slices.Sort(fields)

	return fields, nil
}

// contentOf returns a part of a CRD as a JSON object.
func contentOf(crd *apiextensionsv1.CustomResourceDefinition, part any) (map[string]any, error) {
	data, err := json.Marshal(part)
	if err != nil {
		return nil, fmt.Errorf("compare CustomResourceDefinition %s: %w", crd.Name, err)
	}

	var content map[string]any
	if err := json.Unmarshal(data, &content); err != nil {
		return nil, fmt.Errorf("compare CustomResourceDefinition %s: %w", crd.Name, err)
	}

	return content, nil
}

// ownsVersions reports whether the versions of a live CRD are those that Capstan applied: the API server
// takes the field, a list that is replaced as a whole, away from its owners when another program writes
// another value. The entries must be those that StripSchemas keeps.
func ownsVersions(live *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(live.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == v1alpha2.FieldOwner && entry.Operation == metav1.ManagedFieldsOperationApply
	})
}

// differing returns the pointers of the values in wanted that live does not have. Lists are compared as a
// whole. The API server drops empty values.
func differing(pointer string, wanted, live any) []string {
	object, isObject := wanted.(map[string]any)
	if !isObject {
		if isEmpty(wanted) && live == nil || reflect.DeepEqual(wanted, live) {
			return nil
		}

		return []string{pointer}
	}

	liveObject, _ := live.(map[string]any)

	var fields []string
	for name, value := range object {
		fields = append(fields, differing(objectdiff.Child(pointer, name), value, liveObject[name])...)
	}

	return fields
}

// isEmpty reports whether a JSON value is null, false, empty or zero.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case []any:
		return len(value) == 0
	default:
		return value == false || value == "" || value == 0.0
	}
}
