package crds

import (
	"encoding/json"
	"fmt"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/capstan-project/capstan/controllers/objectdiff"
)

// Difference is the change that a plan makes to an existing CRD. It contains no values.
type Difference struct {
	// Name of the CRD.
	Name string
	// Fields of the labels and the spec that would change, as JSON pointers, sorted.
	Fields []string
}

// Differences returns the changes that a plan makes to existing CRDs. The applier that made the plan must read complete
// CRDs.
func (a *Applier) Differences(p *Plan) ([]Difference, error) {
	var differences []Difference

	for _, c := range p.changes {
		if c.live == nil {
			continue
		}

		fields, err := c.changedFields(p.request)
		if err != nil {
			return nil, fmt.Errorf("compare CustomResourceDefinition %s: %w", c.name, err)
		}

		if len(fields) > 0 {
			differences = append(differences, Difference{Name: c.name, Fields: fields})
		}
	}

	return differences, nil
}

// changedFields returns the fields in which a live CRD will differ after the change.
func (c *change) changedFields(request Request) ([]string, error) {
	object, err := c.prepare(request, pickVersions(c.live, c.kept))
	if err != nil {
		return nil, err
	}

	body, err := json.Marshal(object.Object)
	if err != nil {
		return nil, err
	}

	live, err := json.Marshal(c.live)
	if err != nil {
		return nil, err
	}

	// Like an apply, this keeps what others have added, and replaces lists.
	merged, err := jsonpatch.MergePatch(live, body)
	if err != nil {
		return nil, err
	}

	changed := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(merged, changed); err != nil {
		return nil, err
	}

	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.live)
	if err != nil {
		return nil, err
	}

	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(changed)
	if err != nil {
		return nil, err
	}

	labels, _, _ := unstructured.NestedFieldNoCopy(before, "metadata", "labels")
	wanted, _, _ := unstructured.NestedFieldNoCopy(after, "metadata", "labels")

	fields := objectdiff.Fields("/spec", before["spec"], after["spec"])
	fields = append(fields, objectdiff.Fields("/metadata/labels", labels, wanted)...)
	slices.Sort(fields)

	return fields, nil
}
