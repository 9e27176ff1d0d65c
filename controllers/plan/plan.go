// Package plan finds out what a provider resource asks for: from its spec, the version, the chart,
// the values, the desired release and the changes of CRDs. A Planner writes nothing, neither to the
// cluster nor to the resource, so the operator and the command line share it: the operator carries
// a plan out, and `capstan diff` shows it.
package plan

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/controllers/access"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/managers"
	"github.com/capstan-project/capstan/controllers/manifest"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/values"
)

// sourceTimeout limits each of the two times that a plan asks a source: for its versions, and for the content of one.
// A reconcile occupies a worker meanwhile, which other providers may wait for.
const sourceTimeout = 30 * time.Second

// Planner plans releases. It may be used by many goroutines.
type Planner struct {
	// Cache lists provider resources by the field preflight.NameField.
	Cache client.Reader
	// Cluster tells the clusters of providers apart.
	Cluster preflight.ClusterOf
	// Readers read Secrets and ConfigMaps.
	Readers *access.Readers
	Sources *fetch.Resolver
	Charts  *Charts
	// ImageRegistry replaces the registry of every image; empty for none.
	ImageRegistry string
	// Managers are settings for the managers of all providers; nil for none.
	Managers *managers.Settings
	// Environment holds variables for resources that do not set them.
	Environment Environment
	// AwaitCore chooses no version from several before core's contract is known. A preview does not wait:
	// core may be about to be created with the provider.
	AwaitCore bool
	// Metrics measures the steps; it may be nil.
	Metrics *metrics.Recorder
}

// Request asks for the plan of a resource.
type Request struct {
	// Provider is only read.
	Provider v1alpha2.Provider
	// Scope knows which kinds of the target cluster are namespaced.
	Scope manifest.Scope
	// Selected is the version that the range of the resource resolves to; empty for that of the status.
	Selected string
	// Refresh reads the source again even if the chart is in the store.
	Refresh bool
	// Salt of the digests, see release.Spec.
	Salt string
	// Asking is called before the source is asked, if that is over the network; it may be nil.
	Asking func()
}

// Plan is what a resource asks for.
type Plan struct {
	// Version that spec.version resolved to, with its "v".
	Version string
	// Chart of that version.
	Chart *Chart
	// Patched is the installable chart, with the CRDs as the resource patches them.
	Patched *chart.Chart
	// MissingVariables have neither a value nor a default, sorted.
	MissingVariables []string
	// Release that the resource asks for.
	Release release.Spec
	// Warnings are about parts of the spec that have no effect on this version, and flags that it may not have.
	Warnings values.Warnings
}

// Plan plans the release that a resource asks for. If it fails, the plan may still contain Version and Chart. The error
// is a *problem.Error, or comes from the packages fetch, source, bundle, values or patches.
func (p *Planner) Plan(ctx context.Context, request Request) (Plan, error) {
	var plan Plan

	if err := p.planChart(ctx, request, &plan); err != nil {
		return plan, err
	}

	return plan, p.planRelease(ctx, request, &plan)
}

// planChart resolves the version and finds its chart. The version in the status pins that of a
// range, so that a range resolves to another version only when the spec changes.
func (p *Planner) planChart(ctx context.Context, request Request, plan *Plan) error {
	provider := request.Provider
	defer p.Metrics.TimeStep(provider.ProviderType(), metrics.StepChart)()

	asking, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()

	from, err := p.Sources.Source(provider)
	if err != nil {
		return p.keepChart(ctx, request, plan, err)
	}

	from.Asking = request.Asking

	version, err := from.Resolve(asking, source.Request{
		Version: provider.GetSpec().Version,
		Pinned:  cmp.Or(request.Selected, pinned(provider)),
		Choice:  func(ctx context.Context) (source.Condition, error) { return p.choice(ctx, provider) },
	})
	if err != nil {
		return p.keepChart(ctx, request, plan, err)
	}

	plan.Version = version.Name
	plan.Chart, err = p.Charts.Find(ctx, provider, from, version, request.Refresh)

	return err
}

// pinned returns the version that the range of a resource was resolved to; empty if that is not known. A lost status
// does not resolve it again.
func pinned(provider v1alpha2.Provider) string {
	return cmp.Or(provider.GetStatus().DesiredVersion, provider.GetAnnotations()[v1alpha2.ResolvedVersionAnnotation])
}

// choice returns what a version of a provider must fulfill to be chosen from several: it has to work with
// core or, if the provider is core, with all others.
func (p *Planner) choice(ctx context.Context, provider v1alpha2.Provider) (source.Condition, error) {
	checker := &preflight.Checker{Client: p.Cache, Cluster: p.Cluster}

	if p.AwaitCore {
		if err := checker.Choice(ctx, provider); err != nil {
			return nil, err
		}
	}

	return func(contract string) error { return checker.Contract(ctx, provider, contract) }, nil
}

// planRelease computes the values and the post-renderer for the chart.
func (p *Planner) planRelease(ctx context.Context, request Request, plan *Plan) error {
	provider, chart := request.Provider, plan.Chart
	defer p.Metrics.TimeStep(provider.ProviderType(), metrics.StepValues)()

	crds, err := p.Charts.patch(provider, chart.Digest, chart.Chart.CRDs)
	if err != nil {
		return err
	}

	plan.Patched = withCRDs(chart.Chart, crds)

	reader, err := p.Readers.For(provider)
	if err != nil {
		return err
	}

	own, err := values.Variables(ctx, reader, provider)
	if err != nil {
		return err
	}

	variables := p.withEnvironment(provider, own)

	overrides, err := p.Sources.ImageOverrides()
	if err != nil {
		return err
	}

	plan.MissingVariables = values.Missing(chart.Schema.Required, variables)

	chosen, warnings, err := chart.Schema.Values(values.Input{
		Spec: provider.GetSpec(), Variables: variables, ImageOverrides: overrides,
		HighAvailability: p.Managers != nil && p.Managers.HighAvailability,
	})
	if err != nil {
		return err
	}

	plan.Warnings = warnings

	if p.ImageRegistry != "" {
		chosen["imageRegistry"] = p.ImageRegistry
	}

	plan.Release = release.Spec{
		Release:      ReleaseKey(provider),
		Chart:        chart.Chart,
		ChartDigest:  chart.Digest,
		Values:       chosen,
		Paused:       provider.GetSpec().Paused,
		HistoryLimit: HistoryLimit(provider.GetSpec()),
		PatchedCRDs:  crds.Summary,
		Salt:         request.Salt,
	}

	additional, err := manifest.ReadAdditional(ctx, reader, provider)
	if err != nil {
		return err
	}

	plan.Release.PostRenderer, err = p.postRenderer(request, additional, variables, crds)
	if err != nil {
		return err
	}

	inManifests, err := additional.Variables()
	if err != nil {
		return err
	}

	plan.Warnings.Ignored = append(plan.Warnings.Ignored, values.Unknown(
		provider.GetSpec().Variables, plan.Version, slices.Concat(chart.Schema.Variables, inManifests))...)

	plan.Release.Inputs, err = plan.inputs(provider, own, additional, inManifests, request.Salt)

	return err
}

// postRenderer returns what changes the rendered objects; nil if the resource asks for nothing.
func (p *Planner) postRenderer(
	request Request, additional *manifest.Additional, variables map[string]string, crds *manifest.CRDs,
) (*manifest.Renderer, error) {
	provider, spec := request.Provider, request.Provider.GetSpec()

	return manifest.New(manifest.Input{
		Namespace:       provider.GetNamespace(),
		Label:           v1alpha2.Label(provider),
		Additional:      additional,
		Variables:       variables,
		Scope:           request.Scope,
		Patches:         spec.Patches,
		ManifestPatches: spec.ManifestPatches,
		CRDs:            crds,
		Managers:        p.Managers,
		Policies:        spec.Policies,
		Paused:          spec.Paused,
	})
}

// ReleaseKey returns the namespace and name of a provider's release.
func ReleaseKey(provider v1alpha2.Provider) types.NamespacedName {
	return types.NamespacedName{Namespace: provider.GetNamespace(), Name: v1alpha2.ReleaseName(provider)}
}

// Asked returns what a resource asks for, as it is recorded with the revision that results from it.
func Asked(provider v1alpha2.Provider) v1alpha2.RevisionRequest {
	return v1alpha2.RevisionRequest{
		UID:         string(provider.GetUID()),
		Generation:  provider.GetGeneration(),
		RequestedAt: v1alpha2.LabelValue(provider.GetAnnotations()[v1alpha2.ReconcileRequestAnnotation]),
	}
}

// ReleaseSpec returns spec.release; empty if it is not set.
func ReleaseSpec(spec *v1alpha2.ProviderSpec) v1alpha2.ReleaseSpec {
	if spec.Release == nil {
		return v1alpha2.ReleaseSpec{}
	}

	return *spec.Release
}

// defaultTimeout is the default of spec.release.timeout that the API documents.
const defaultTimeout = 5 * time.Minute

// Timeout returns how long a revision of the release may take to become healthy.
func Timeout(spec *v1alpha2.ProviderSpec) time.Duration {
	if timeout := ReleaseSpec(spec).Timeout; timeout != nil {
		return timeout.Duration
	}

	return defaultTimeout
}

// HistoryLimit returns how many revisions of the release are kept.
func HistoryLimit(spec *v1alpha2.ProviderSpec) int {
	if limit := ReleaseSpec(spec).HistoryLimit; limit != nil {
		return int(*limit)
	}

	return release.DefaultHistoryLimit
}
