package crds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/controllers/crds/safety"
)

// Check judges the changes of CRDs that exist, by the objects that exist. allow names CRDs whose
// stops a person allowed. The report is nil when no CRD that exists changes. An error says nothing
// about the changes: try again.
func (a *Applier) Check(ctx context.Context, p *Plan, allow []string) (*safety.Report, error) {
	var changes []safety.Change
	for _, c := range p.changes {
		if c.live == nil {
			continue
		}

		live, err := a.whole(ctx, c.name)
		if err != nil {
			return nil, err
		}

		if live == nil {
			continue // it was deleted just now, and comes back
		}

		desired, err := c.typed()
		if err != nil {
			return nil, err
		}

		desired.Spec.Versions = append(desired.Spec.Versions, keep(live, c.kept)...)
		changes = append(changes, safety.Change{Live: live, Desired: desired})
	}

	if len(changes) == 0 {
		return nil, nil
	}

	report, err := safety.Check(ctx, safety.Input{Changes: changes, Objects: a.Objects, Allow: allow})
	if err != nil || !report.HasErrors() {
		return report, err
	}
	// Objects may have come since a migration was over that would have mended them.
	return report, each(p.changes, func(_ int, c *change) error {
		if c.live == nil || c.live.Annotations[migrationAnnotation] == "" {
			return nil
		}

		return a.forget(ctx, c.name)
	})
}

// UnsatisfiedError says that a CRD that is left alone does not do for the provider.
type UnsatisfiedError struct {
	// Name of the CRD.
	Name string
	// Version of the provider that wants it, and Newer the one that the CRD came with if it stays
	// because it is newer.
	Version, Newer string
	Report         *safety.Report
}

func (e *UnsatisfiedError) Error() string {
	if e.Newer != "" {
		return fmt.Sprintf(
			"%s cannot replace %s: CustomResourceDefinitions never go back, and its managers cannot work with those of %s: %s",
			e.Version,
			e.Newer,
			e.Newer,
			e.Report.Message(),
		)
	}

	return fmt.Sprintf(
		"CustomResourceDefinition %s is not managed here, and does not do for %s: %s",
		e.Name,
		e.Version,
		e.Report.Message(),
	)
}

// Suffices makes sure that the CRDs that are left alone do for the provider. If not, the error is
// an *UnsatisfiedError.
func (a *Applier) Suffices(ctx context.Context, p *Plan) error {
	for _, l := range p.left {
		live, err := a.live(ctx, l.name)
		if err != nil {
			return err
		}

		report, err := a.verdict(ctx, l.definition, live)
		if err != nil {
			return err
		}

		if !report.HasErrors() {
			continue
		}

		if l.newer != "" && live != nil && onlyFields(report) {
			if used, err := a.used(ctx, live); err != nil || !used {
				if err != nil {
					return err
				}

				continue
			}
		}

		return &UnsatisfiedError{Name: l.name, Version: p.request.Version, Newer: l.newer, Report: report}
	}

	return nil
}

// onlyFields reports whether all that stops is about fields. Managers of an older version lose these
// only when they have objects to set them on.
func onlyFields(report *safety.Report) bool {
	return !slices.ContainsFunc(
		report.Findings,
		func(f safety.Finding) bool { return f.Level == safety.Error && f.Path == "" },
	)
}

// used reports whether there are objects of a CRD's kind.
func (a *Applier) used(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (bool, error) {
	resource := schema.GroupVersionResource{Group: crd.Spec.Group, Version: storage(crd), Resource: crd.Spec.Names.Plural}

	list, err := a.Writer.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", crd.Name, err)
	}

	return len(list.Items) > 0, nil
}

// verdict judges one CRD, once for each of its states.
func (a *Applier) verdict(
	ctx context.Context,
	d definition,
	live *apiextensionsv1.CustomResourceDefinition,
) (*safety.Report, error) {
	type state struct {
		uid        types.UID
		generation int64
		stored     string
		digest     string
	}

	type verdict struct {
		state  state
		report *safety.Report
	}

	now := state{digest: d.digest}
	if live != nil {
		now = state{live.UID, live.Generation, strings.Join(live.Status.StoredVersions, ","), d.digest}
	}

	if known, ok := a.verdicts.Load(d.name); ok && known.(verdict).state == now {
		return known.(verdict).report, nil
	}

	need, err := d.typed()
	if err != nil {
		return nil, err
	}

	if live != nil {
		if live, err = a.whole(ctx, d.name); err != nil {
			return nil, err
		}
	}

	report := safety.CheckCompatibility(need, live)
	a.verdicts.Store(d.name, verdict{now, report})

	return report, nil
}
