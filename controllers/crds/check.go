package crds

import (
	"context"

	"github.com/capstan-project/capstan/controllers/crds/safety"
)

// CheckChanges checks whether the changes of existing CRDs are safe for the existing objects. Errors
// about the CRDs in allow become warnings. The report is nil if no existing CRD changes. An error
// says nothing about the changes; try again.
func (a *Applier) CheckChanges(ctx context.Context, p *Plan, allow []string) (*safety.Report, error) {
	changes, err := a.safetyChanges(ctx, p)
	if err != nil || len(changes) == 0 {
		return nil, err
	}

	report, err := safety.Check(ctx, safety.Input{Changes: changes, Objects: a.Objects, Allow: allow})
	if err != nil || !report.HasErrors() {
		return report, err
	}

	return report, a.restartMigrations(ctx, p)
}

// safetyChanges returns the changes of existing CRDs with their schemas.
func (a *Applier) safetyChanges(ctx context.Context, p *Plan) ([]safety.Change, error) {
	var changes []safety.Change

	for _, c := range p.changes {
		if c.live == nil {
			continue
		}

		live, err := a.getComplete(ctx, c.name)
		if err != nil {
			return nil, err
		}

		if live == nil {
			continue // deleted in the meantime; it will be created
		}

		desired, err := c.parse()
		if err != nil {
			return nil, err
		}

		desired.Spec.Versions = append(desired.Spec.Versions, pickVersions(live, c.kept)...)
		changes = append(changes, safety.Change{Live: live, Desired: desired})
	}

	return changes, nil
}

// restartMigrations makes finished migrations of the CRDs that change start again: objects that need
// one may have been created since.
func (a *Applier) restartMigrations(ctx context.Context, p *Plan) error {
	return forEach(p.changes, func(_ int, c *change) error {
		if c.live == nil || c.live.Annotations[migrationAnnotation] == "" {
			return nil
		}

		return a.resetMigration(ctx, c.name)
	})
}
