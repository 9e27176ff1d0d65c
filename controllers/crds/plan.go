package crds

import (
	"context"
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// Request is what a provider wants of its CRDs.
type Request struct {
	// Label of the provider, e.g. "infrastructure-aws", and the Version that the files come from,
	// e.g. "v2.11.1".
	Label, Version string
	// Namespace of its release, where its conversion webhooks are.
	Namespace string
	// Files are the CRDs of the provider's chart.
	Files []chart.File
	// Policy and Unmanaged are the resource's spec.crds; an empty policy is Upgrade.
	Policy    v1alpha2.CRDsPolicy
	Unmanaged []string
	// Brings reports whether the provider of another label is installed by Capstan too and still
	// brings a CRD.
	Brings func(ctx context.Context, label, crd string) (bool, error)
}

// Plan is what is to be done about a provider's CRDs. It holds for the moment that it was made in.
type Plan struct {
	request Request
	// changes are to be applied.
	changes []*change
	// managed are the live CRDs that are the provider's, those that change included.
	managed []*change
	// left are checked and otherwise left alone.
	left []left
	// Deleting are being deleted by somebody; they are made anew once they are gone.
	Deleting []*apiextensionsv1.CustomResourceDefinition
	// Orphaned are CRDs of the provider that its chart no longer has, sorted. They stay.
	Orphaned []string
}

// change is one CRD as it is and as it is to be.
type change struct {
	definition
	// live is the CRD without schemas; nil when the cluster does not have it.
	live *apiextensionsv1.CustomResourceDefinition
	// kept are live versions that the definition does not have and that objects may be stored in.
	kept []string
	// retired are versions that live serves and that will be gone, so no object's managedFields may
	// name them. They name heir then, which stays; it is empty when no version does.
	retired []string
	heir    string
}

// left is a CRD that is not applied.
type left struct {
	definition
	// newer is the provider's version that the live CRD came with, if that is why.
	newer string
}

// Changed reports whether anything is to be applied.
func (p *Plan) Changed() bool { return len(p.changes) > 0 }

// Changes are the names of those that are new, and of those that change.
func (p *Plan) Changes() (created, changed []string) {
	for _, c := range p.changes {
		if c.live == nil {
			created = append(created, c.name)
		} else {
			changed = append(changed, c.name)
		}
	}

	return created, changed
}

// Plan finds out what is to be done. Nothing but the watch is read. The error is an *OwnedError
// when a CRD is somebody else's.
func (a *Applier) Plan(ctx context.Context, r Request) (*Plan, error) {
	p := &Plan{request: r}
	for _, f := range r.Files {
		a.interested(crdName(f), r.Label)

		if err := a.plan(ctx, p, newDefinition(f, r.Namespace)); err != nil {
			return nil, err
		}
	}

	return p, a.orphans(ctx, p)
}

func (a *Applier) plan(ctx context.Context, p *Plan, d definition) error {
	live, err := a.live(ctx, d.name)
	if err != nil {
		return err
	}

	if !p.request.manages(d.name, live) {
		p.left = append(p.left, left{definition: d})
		return nil
	}

	if live == nil {
		p.changes = append(p.changes, &change{definition: d})
		return nil
	}

	if !live.DeletionTimestamp.IsZero() {
		p.Deleting = append(p.Deleting, live)
		return nil
	}

	c := &change{definition: d, live: live}
	if live.Annotations[digestAnnotation] == d.digest && live.Labels[v1alpha2.ClusterctlProviderLabel] == p.request.Label {
		p.managed = append(p.managed, c)
		return nil
	}

	if err := p.request.arbitrate(ctx, live); err != nil {
		return err
	}

	if newer := live.Annotations[versionAnnotation]; isNewer(newer, p.request.Version) {
		p.left = append(p.left, left{definition: d, newer: newer})
		return nil
	}

	p.managed = append(p.managed, c)
	if err := a.compare(c); err != nil {
		return err
	}

	if live.Annotations[digestAnnotation] != c.keeping(c.kept) {
		p.changes = append(p.changes, c)
	}

	return nil
}

// manages reports whether a CRD is Capstan's to apply.
func (r Request) manages(name string, live *apiextensionsv1.CustomResourceDefinition) bool {
	switch {
	case slices.Contains(r.Unmanaged, name), r.Policy == v1alpha2.CRDsNone:
		return false
	case r.Policy == v1alpha2.CRDsCreateOnly:
		return live == nil
	}

	return true
}

// isNewer reports whether a version is above another. One that is not known, because something else
// applied the CRD, is not.
func isNewer(version, than string) bool {
	a, errA := semver.NewVersion(version)
	b, errB := semver.NewVersion(than)

	return errA == nil && errB == nil && a.GreaterThan(b)
}

// compare finds the versions that the definition does not have and that must not simply go.
func (a *Applier) compare(c *change) error {
	all, served, err := a.versions(c.definition)
	if err != nil {
		return err
	}

	c.kept = missing(c.live.Status.StoredVersions, all)
	slices.Sort(c.kept)

	for _, v := range c.live.Spec.Versions {
		stays := slices.Contains(served, v.Name)
		if stays && v.Served && (c.heir == "" || v.Storage) {
			c.heir = v.Name
		}

		gone := !slices.Contains(all, v.Name) || v.Served && !stays
		if gone && !slices.Contains(c.kept, v.Name) {
			c.retired = append(c.retired, v.Name)
		}
	}

	return nil
}

// versions are the names of a definition's versions. The file is parsed once: it can have hundreds
// of kilobytes.
func (a *Applier) versions(d definition) (all, served []string, err error) {
	type names struct{ all, served []string }
	if known, ok := a.parsed.Load(d.digest); ok {
		return known.(names).all, known.(names).served, nil
	}

	crd, err := d.typed()
	if err != nil {
		return nil, nil, err
	}

	for _, v := range crd.Spec.Versions {
		all = append(all, v.Name)
		if v.Served {
			served = append(served, v.Name)
		}
	}

	a.parsed.Store(d.digest, names{all, served})

	return all, served, nil
}

// orphans finds the CRDs that were applied for the provider and that its chart does not have.
func (a *Applier) orphans(ctx context.Context, p *Plan) error {
	list := &apiextensionsv1.CustomResourceDefinitionList{}

	of := client.MatchingLabels{v1alpha2.ClusterctlProviderLabel: p.request.Label}
	if err := a.Reader.List(ctx, list, of, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the CustomResourceDefinitions of %s: %w", p.request.Label, err)
	}

	for i := range list.Items {
		name := list.Items[i].Name

		inChart := slices.ContainsFunc(p.request.Files, func(f chart.File) bool { return crdName(f) == name })
		if !inChart && list.Items[i].Annotations[digestAnnotation] != "" {
			p.Orphaned = append(p.Orphaned, name)
		}
	}

	slices.Sort(p.Orphaned)

	return nil
}
