package crds

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/capstan-project/capstan/controllers/objectdiff"
)

// Difference is what a plan would change about a CRD that exists. It contains no values.
type Difference struct {
	// Name of the CRD.
	Name string
	// Fields that would change, as JSON pointers in which versions have their names, sorted. What Capstan records in
	// annotations is left out.
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

		facts, err := a.facts(c.definition)
		if err != nil {
			return nil, err
		}

		fields, err := facts.driftOf(c.live)
		if err != nil {
			return nil, err
		}

		versions, err := c.changedVersions()
		if err != nil {
			return nil, err
		}

		fields = append(slices.DeleteFunc(fields, func(field string) bool { return field == versionsPointer }), versions...)
		slices.Sort(fields)

		if len(fields) > 0 {
			differences = append(differences, Difference{Name: c.name, Fields: fields})
		}
	}

	return differences, nil
}

// versionsPointer is the JSON pointer of the versions of a CRD.
const versionsPointer = "/spec/versions"

// changedVersions returns the pointers of the fields in which the versions of the definition and of the live CRD
// differ. Those that the live CRD keeps are left out.
func (c *change) changedVersions() ([]string, error) {
	wanted, err := c.parse()
	if err != nil {
		return nil, err
	}

	before, err := versionsByName(c.live)
	if err != nil {
		return nil, err
	}

	for _, name := range c.kept {
		delete(before, name)
	}

	after, err := versionsByName(wanted)

	return objectdiff.Fields(versionsPointer, before, after), err
}

// versionsByName returns the versions of a CRD as JSON objects.
func versionsByName(crd *apiextensionsv1.CustomResourceDefinition) (map[string]any, error) {
	versions := map[string]any{}

	for i := range crd.Spec.Versions {
		version := &crd.Spec.Versions[i]

		content, err := contentOf(crd, version)
		if err != nil {
			return nil, err
		}

		versions[version.Name] = content
	}

	return versions, nil
}
