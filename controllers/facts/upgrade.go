package facts

import (
	"context"
	"fmt"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds/safety"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release"
)

// CRDChange is how a plan would change a CRD.
type CRDChange struct {
	Name string `json:"name"`
	// Created means that the CRD does not exist yet.
	Created bool `json:"created,omitempty"`
	// Fields of an existing CRD that would change, as JSON pointers, sorted.
	Fields []string `json:"fields,omitempty"`
}

// CRDFinding is a problem with a change of a CRD, without values of objects.
type CRDFinding struct {
	// Level is Error if the change would be refused, or Warning.
	Level string `json:"level"`
	CRD   string `json:"crd"`
	Text  string `json:"text"`
}

// CompareUpgrade compares the newest revision of a provider's release with a plan. The report is that of the plan's
// CRDs; it may be nil.
func (r *Reader) CompareUpgrade(
	ctx context.Context, p v1alpha2.Provider, planned *plan.Preview, report *safety.Report,
) (Comparison, error) {
	if p.GetSpec().KubeConfig != nil {
		return Comparison{}, fmt.Errorf("the release of %s is in another cluster, whose objects are not read",
			v1alpha2.FullName(p))
	}

	observed, err := r.Releases.Observe(ctx, plan.ReleaseKey(p))
	if err != nil {
		return Comparison{}, err
	}

	before := compared{record: &release.Record{}}

	if newest, exists := observed.Newest(); exists {
		if before, err = r.compared(ctx, p, observed, newest.Number); err != nil {
			return Comparison{}, err
		}
	}

	after := compared{nextRevision, planned.Rendered, planned.Rendered.Objects}

	c, err := compare(p, before, after, upgradeContext)
	c.Warnings = planned.Warnings.All()
	c.addCRDs(planned, report)
	c.withhold(p, observed)

	return c, err
}

// upgradeContext is the number of unchanged lines around changes.
const upgradeContext = 3

// addCRDs adds the changes of CRDs and the findings about them.
func (c *Comparison) addCRDs(planned *plan.Preview, report *safety.Report) {
	for _, name := range planned.NewCRDs {
		c.CRDs = append(c.CRDs, CRDChange{Name: name, Created: true})
	}

	for _, name := range planned.ChangedCRDs {
		change := CRDChange{Name: name}

		for _, d := range planned.CRDDifferences {
			if d.Name == name {
				change.Fields = d.Fields
			}
		}

		c.CRDs = append(c.CRDs, change)
	}

	for _, f := range report.Problems() {
		c.Findings = append(c.Findings, CRDFinding{Level: string(f.Level), CRD: f.CRD, Text: f.String()})
	}
}
