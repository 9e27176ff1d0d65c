package crds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// Request describes the CRDs that a provider needs.
type Request struct {
	// Label of the provider, e.g. "infrastructure-aws".
	Label string
	// Version of the provider that the files are from, e.g. "v2.11.1".
	Version string
	// Namespace of the provider's release, where its conversion webhooks run, and Release its name.
	Namespace, Release string
	// Resource is the UID of the provider resource.
	Resource types.UID
	// Files are the CRDs of the provider's chart.
	Files []chart.File
	// Installed are the CRDs of the chart of the installed revision; none if nothing is installed. InstalledUnknown is
	// set if that chart cannot be read.
	Installed        []chart.File
	InstalledUnknown bool
	// Policy and Unmanaged are those of the resource's spec.crds. An empty policy is Upgrade.
	Policy    v1alpha2.CRDsPolicy
	Unmanaged []string
	// Includes reports whether another provider, given its label, is installed by Capstan as well
	// and its chart includes a CRD.
	Includes func(ctx context.Context, label, crd string) (bool, error)
}

// Plan is what has to be done about a provider's CRDs at the time when it was made.
type Plan struct {
	request Request
	// changes have to be applied.
	changes []*change
	// managed are the existing CRDs that belong to the provider, including those that change.
	managed []*change
	// Drifted are the CRDs without changes that another program has changed since they were applied.
	Drifted []Drift
	// unmanaged are not applied, but have to be compatible.
	unmanaged []unmanagedCRD
	// Deleting are CRDs that something else is deleting. They are created again afterwards.
	Deleting []*apiextensionsv1.CustomResourceDefinition
	// Orphaned are CRDs of the provider that its chart no longer includes, sorted. They are kept.
	Orphaned []string
	// dropped are the existing CRDs that the chart of the installed revision includes, and that of the plan does not.
	dropped []*apiextensionsv1.CustomResourceDefinition
	// Unmigrated describes CRDs that were applied for the provider, that the plan does not manage, and whose objects may
	// be stored in other versions than the storage version.
	Unmigrated []string
}

// change is the change of one CRD.
type change struct {
	definition
	// live is the CRD without schemas; nil if it does not exist.
	live *apiextensionsv1.CustomResourceDefinition
	// kept are live versions that the definition does not have, but that objects may be stored in.
	kept []string
	// retired are served versions that will be removed, so managedFields of objects must not name
	// them any longer. They are replaced by successor, which is empty if no served version stays.
	retired   []string
	successor string
}

// unmanagedCRD is a CRD that is not applied.
type unmanagedCRD struct {
	definition
	// newerVersion is the version of the provider that the live CRD was applied for, if that is the
	// reason.
	newerVersion string
}

// Version returns the version of the provider that the CRDs are planned for.
func (p *Plan) Version() string { return p.request.Version }

// HasChanges reports whether there is anything to apply.
func (p *Plan) HasChanges() bool { return len(p.changes) > 0 }

// Changes returns the names of the CRDs to create and of the CRDs to update.
func (p *Plan) Changes() (created, updated []string) {
	for _, c := range p.changes {
		if c.live == nil {
			created = append(created, c.name)
		} else {
			updated = append(updated, c.name)
		}
	}

	return created, updated
}

// Plan returns what has to be done. It reads from the cache only. If a CRD belongs to something
// else, the error is a *problem.Error.
func (a *Applier) Plan(ctx context.Context, r Request) (*Plan, error) {
	a.rememberCRDs(r.Label, r.Files)

	p := &Plan{request: r}

	for _, f := range r.Files {
		if err := a.planCRD(ctx, p, newDefinition(f, r.Namespace)); err != nil {
			return nil, err
		}
	}

	if err := a.findOrphans(ctx, p); err != nil {
		return nil, err
	}

	return p, a.findDropped(ctx, p)
}

// planCRD adds one CRD to a plan.
func (a *Applier) planCRD(ctx context.Context, p *Plan, d definition) error {
	live, err := a.getCached(ctx, d.name)
	if err != nil {
		return err
	}

	switch {
	case !p.request.manages(d.name, live):
		p.unmanaged = append(p.unmanaged, unmanagedCRD{definition: d})
		return nil
	case live == nil:
		p.changes = append(p.changes, &change{definition: d})
		return nil
	case !live.DeletionTimestamp.IsZero():
		p.Deleting = append(p.Deleting, live)
		return nil
	default:
		return a.planUpdate(ctx, p, &change{definition: d, live: live})
	}
}

// planUpdate adds a CRD that exists to a plan.
func (a *Applier) planUpdate(ctx context.Context, p *Plan, c *change) error {
	annotations := c.live.Annotations

	upToDate := annotations[digestAnnotation] == c.digest &&
		c.live.Labels[v1alpha2.ClusterctlProviderLabel] == p.request.Label
	if upToDate {
		p.managed = append(p.managed, c)
		return a.findDrift(p, c)
	}

	if err := a.checkOwnership(ctx, p.request, c.live); err != nil {
		return err
	}

	if isNewer(annotations[versionAnnotation], p.request.Version) {
		newer := unmanagedCRD{definition: c.definition, newerVersion: annotations[versionAnnotation]}
		p.unmanaged = append(p.unmanaged, newer)

		return nil
	}

	p.managed = append(p.managed, c)

	if err := a.findRemovedVersions(c); err != nil {
		return err
	}

	if annotations[digestAnnotation] != c.digestWith(c.kept) {
		p.changes = append(p.changes, c)
		return nil
	}

	return a.findDrift(p, c)
}

// includes reports whether the provider's chart includes a CRD.
func (r Request) includes(name string) bool {
	return slices.ContainsFunc(r.Files, func(f chart.File) bool { return crdName(f) == name })
}

// manages reports whether Capstan applies a CRD.
func (r Request) manages(name string, live *apiextensionsv1.CustomResourceDefinition) bool {
	switch {
	case slices.Contains(r.Unmanaged, name), r.Policy == v1alpha2.CRDsNone:
		return false
	case r.Policy == v1alpha2.CRDsCreateOnly:
		return live == nil
	default:
		return true
	}
}

// isNewer reports whether a version is higher than another. The version of a CRD that Capstan did
// not apply is unknown and not newer.
func isNewer(version, than string) bool {
	a, errA := semver.NewVersion(version)
	b, errB := semver.NewVersion(than)

	return errA == nil && errB == nil && a.GreaterThan(b)
}

// findRemovedVersions finds the live versions that the definition of a change removes.
func (a *Applier) findRemovedVersions(c *change) error {
	served, err := a.servedVersions(c.definition)
	if err != nil {
		return err
	}

	c.kept = slices.DeleteFunc(slices.Clone(c.live.Status.StoredVersions), func(name string) bool {
		_, stays := served[name]
		return stays
	})
	slices.Sort(c.kept)

	c.retired = nil

	for _, v := range c.live.Spec.Versions {
		staysServed, stays := served[v.Name]

		if staysServed && v.Served && (c.successor == "" || v.Storage) {
			c.successor = v.Name
		}

		removed := !stays || v.Served && !staysServed
		if removed && !slices.Contains(c.kept, v.Name) {
			c.retired = append(c.retired, v.Name)
		}
	}

	return nil
}

// servedVersions is served of a definition, which it remembers.
func (a *Applier) servedVersions(d definition) (map[string]bool, error) {
	if served := a.factsOf(d).served; served != nil {
		return served, nil
	}

	served, err := d.served()
	if err != nil {
		return nil, err
	}

	a.learn(d, func(f *facts) { f.served = served })

	return served, nil
}

// findOrphans finds the CRDs that were applied for the provider and that its chart does not include.
func (a *Applier) findOrphans(ctx context.Context, p *Plan) error {
	applied, err := a.applied(ctx, p.request.Label)
	if err != nil {
		return err
	}

	for i := range applied {
		name := applied[i].Name
		if !p.request.includes(name) {
			p.Orphaned = append(p.Orphaned, name)
		}

		if old := oldStoredVersions(&applied[i]); len(old) > 0 && !p.migrates(&applied[i]) {
			p.Unmigrated = append(p.Unmigrated, fmt.Sprintf("%s (in %s; applied for %s)",
				name, strings.Join(old, ", "), applied[i].Annotations[versionAnnotation]))
		}
	}

	slices.Sort(p.Orphaned)
	slices.Sort(p.Unmigrated)

	return nil
}

// migrates reports whether the objects of a CRD are rewritten, or are being deleted with it.
func (p *Plan) migrates(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return !crd.DeletionTimestamp.IsZero() ||
		slices.ContainsFunc(p.managed, func(c *change) bool { return c.name == crd.Name })
}
