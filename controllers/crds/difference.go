package crds

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/capstan-project/capstan/controllers/objectdiff"
)

// Difference is what a plan would change about a CRD that exists. It contains no values.
type Difference struct {
	// Name of the CRD.
	Name string
	// Fields of the labels and the spec that would change, as JSON pointers in which versions have their names, sorted.
	Fields []string
}

// Differences returns what a plan would change about CRDs that exist. The applier that has made the plan must read
// complete CRDs.
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
	body, err := c.body(request, pickVersions(c.live, c.kept))
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

	after := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(merged, after); err != nil {
		return nil, err
	}

	before, err := comparable(c.live)
	if err != nil {
		return nil, err
	}

	changed, err := comparable(after)

	return objectdiff.Fields("", before, changed), err
}

// comparable returns the labels and the spec of a CRD as a JSON object, with the versions by their names.
func comparable(crd *apiextensionsv1.CustomResourceDefinition) (content map[string]any, err error) {
	named := map[string]any{}
	for _, v := range crd.Spec.Versions {
		named[v.Name] = v
	}

	spec := crd.Spec
	spec.Versions = nil

	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": crd.Labels}, "spec": spec, "named": named})
	if err != nil {
		return nil, err
	}

	if err := json.Unmarshal(data, &content); err != nil {
		return nil, err
	}

	content["spec"].(map[string]any)["versions"] = content["named"]
	delete(content, "named")

	return content, nil
}
