package plan

import (
	"context"
	"errors"
	"slices"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/store"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// CRDs plans the changes of the cluster's CRDs that a chart of the provider needs. The error is a
// *problem.Error when a CRD belongs to another provider.
func (p *Planner) CRDs(
	ctx context.Context, applier *crds.Applier, provider v1alpha2.Provider, c *chart.Chart,
) (*crds.Plan, error) {
	request := crds.Request{
		Label:     v1alpha2.Label(provider),
		Version:   c.Metadata.AppVersion,
		Namespace: provider.GetNamespace(),
		Release:   v1alpha2.ReleaseName(provider),
		Resource:  provider.GetUID(),
		Files:     c.CRDs,
		Includes:  p.includes(provider),
	}

	var err error

	request.Installed, err = p.installedCRDs(ctx, provider)
	if request.InstalledUnknown = errors.Is(err, store.ErrNotFound); err != nil && !request.InstalledUnknown {
		return nil, err
	}

	if spec := provider.GetSpec().CRDs; spec != nil {
		request.Policy = spec.Policy
		request.Unmanaged = spec.Unmanaged
	}

	return applier.Plan(ctx, request)
}

// installedCRDs returns the CRDs of the chart of a provider's newest revision; none if there is no revision, or another
// program has made it. They usually are in memory, because the provider was cared for with them.
func (p *Planner) installedCRDs(ctx context.Context, provider v1alpha2.Provider) ([]chart.File, error) {
	history := provider.GetStatus().History
	if len(history) == 0 || history[0].ChartDigest == "" {
		return nil, nil
	}

	installed, err := p.Charts.Installed(ctx, provider, history[0].ChartDigest)
	if err != nil {
		return nil, err
	}

	return installed.CRDs, nil
}

// includes returns a function that reports whether the provider of a label is installed in the same
// cluster and its chart contains a CRD.
func (p *Planner) includes(
	provider v1alpha2.Provider,
) func(ctx context.Context, label, crd string) (bool, error) {
	return func(ctx context.Context, label, crd string) (bool, error) {
		t, name := v1alpha2.ParseLabel(label)
		checker := &preflight.Checker{Client: p.Cache, Cluster: p.Cluster}

		found, err := checker.Named(ctx, provider, t, name)
		if err != nil {
			return false, err
		}

		return slices.ContainsFunc(found, func(other v1alpha2.Provider) bool {
			return !slices.Contains(other.GetStatus().OrphanedCRDs, crd)
		}), nil
	}
}
