package plan

import (
	"context"

	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/release"
)

// Preview is a plan with everything that it would change.
type Preview struct {
	Plan
	// Rendered is the record that the release's next revision would have.
	Rendered *release.Record
	// NewCRDs and ChangedCRDs are the names of the CRDs that would be applied, before the release.
	NewCRDs, ChangedCRDs []string
	// CRDDifferences are the fields of changed CRDs that would become others.
	CRDDifferences []crds.Difference
	// DroppedCRDs are the names of the CRDs that the installed version includes, and this one does not. They are kept.
	DroppedCRDs []string
	// CRDs has the changes of CRDs, for Applier.CheckChanges.
	CRDs *crds.Plan
}

// Preview plans what would be installed if the resource were applied as given, which may differ from
// the resource in the cluster. The errors are those of Plan, CRDs and release.Engine.Render. With that of CRDs, the
// preview has all but these.
func (p *Planner) Preview(
	ctx context.Context, request Request, releases *release.Engine, applier *crds.Applier,
) (*Preview, error) {
	planned, err := p.Plan(ctx, request)
	if err != nil {
		return nil, err
	}

	rendered, err := releases.Render(planned.Release)
	if err != nil {
		return nil, err
	}

	changes, err := p.CRDs(ctx, applier, request.Provider, planned.Patched)
	if err != nil {
		return &Preview{Plan: planned, Rendered: rendered}, err
	}

	preview := &Preview{Plan: planned, Rendered: rendered, CRDs: changes}
	preview.NewCRDs, preview.ChangedCRDs = changes.Changes()
	preview.DroppedCRDs = changes.Dropped()
	preview.CRDDifferences, err = applier.Differences(changes)

	return preview, err
}
