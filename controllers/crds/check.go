package crds

import (
	"context"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/capstan-project/capstan/controllers/crds/trial"
	"github.com/capstan-project/capstan/controllers/crds/versions"
)

// CheckChanges checks whether the changes of existing CRDs are safe for the existing objects, and whether there are
// objects of those that are dropped. Allow names CRDs that a user allows to break objects; see trial.AllowedCRDs. The
// report is nil if no existing CRD changes. An error says nothing about the changes; try again.
func (a *Applier) CheckChanges(ctx context.Context, p *Plan, allow []string) (*trial.Report, error) {
	if _, updated := p.Changes(); len(updated)+len(p.dropped) == 0 {
		return nil, nil
	}

	all, err := a.tryDropped(ctx, p)
	if err != nil {
		return nil, err
	}

	// Most CRDs have no objects, which takes a request each to find out.
	breaks := make([]bool, len(p.changes))
	_ = forEach(p.changes, func(i int, c *change) error {
		breaks[i] = a.canBreak(ctx, p.request.Label, c)

		return nil
	})

	// One change after the other is in memory: the schemas of a CRD with 400 kB of text take several megabytes.
	for i, c := range p.changes {
		if !breaks[i] {
			continue
		}

		findings, err := a.try(ctx, p.request.Label, c)
		if err != nil {
			return nil, err
		}

		// If objects were written in a version that is removed since the last migration, they need another one.
		if slices.ContainsFunc(findings, func(f trial.Finding) bool {
			return f.Affected > 0 && slices.Contains(c.retired, f.Version)
		}) {
			a.update(c.name, func(r *remembered) { r.migration = migration{} })
		}

		all = append(all, findings...)
	}

	return trial.NewReport(all, allow), nil
}

// canBreak reports whether a CRD exists, and there are objects or other providers that the change of it by a provider
// could break.
func (a *Applier) canBreak(ctx context.Context, label string, c *change) bool {
	return c.live != nil && (len(a.users(label, c.name)) > 0 || !a.hasNone(ctx, c.live))
}

// try returns what the change of a CRD by a provider would break.
func (a *Applier) try(ctx context.Context, label string, c *change) ([]trial.Finding, error) {
	live, err := a.getComplete(ctx, c.name)
	if err != nil || live == nil {
		return nil, err
	}

	desired, err := c.parse()
	if err != nil {
		return nil, err
	}

	desired.Spec.Versions = append(desired.Spec.Versions, pickVersions(live, c.kept)...)

	return trial.Run(ctx, trial.Change{Live: live, Desired: desired, Users: a.users(label, c.name)}, a.Objects)
}

// hasNone reports whether a CRD is known to have no objects.
func (a *Applier) hasNone(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) bool {
	stored := versions.Preferred(crd)
	if stored == nil {
		return false
	}

	for first, err := range a.Objects.All(ctx, versions.Resource(crd, stored.Name)) {
		return first == nil && err == nil // an error does not say that there are none
	}

	return true
}
