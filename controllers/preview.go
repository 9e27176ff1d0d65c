package controllers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/store"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/values"
)

// Previewer goes the way of a reconcile up to the point where something would be changed. It serves
// people at a command line: it knows no operator, changes nothing, and asks the API server itself
// for all it needs.
type Previewer struct {
	client   client.Client
	releases *release.Engine
	charts   *Charts
	crds     *crds.Applier

	imageRegistry string
}

// PreviewOptions configure a previewer like the operator whose work it previews.
type PreviewOptions struct {
	Releases *release.Engine
	// Registry is the operator's access to registries.
	Registry *fetch.Registry
	// ImageRegistry replaces the registry of every image; empty leaves them.
	ImageRegistry string
	// Config is the operator's configuration.
	Config *fetch.ConfigFile
}

// Preview is what a resource asks for.
type Preview struct {
	// Version of the provider that spec.version comes to.
	Version string
	// Release is what the record of the release's next revision would be.
	Release *release.Record
	// NewCRDs and ChangedCRDs are names of CRDs that would be applied, before and beside the
	// release.
	NewCRDs, ChangedCRDs []string
	// Warnings tell what of the spec has no effect.
	Warnings []string
}

// NewPreviewer returns a previewer for a cluster. The scheme of c must have the provider kinds.
func NewPreviewer(config *rest.Config, c client.Client, options PreviewOptions) (*Previewer, error) {
	scheme := runtime.NewScheme()
	if err := crds.AddToScheme(scheme); err != nil {
		return nil, err
	}

	definitions, err := client.New(config, client.Options{Scheme: scheme, Mapper: c.RESTMapper()})
	if err != nil {
		return nil, err
	}

	reader := readOnly{c}
	resolver := &fetch.Resolver{Metadata: reader, Reader: reader, Config: options.Config, Registry: options.Registry}

	var charts store.Store = &store.Cluster{Client: reader}
	if options.Registry.Charts != nil {
		charts = &store.Layered{
			Cluster:  charts,
			ReadOnly: true,
			Registry: &store.Registry{Client: options.Registry.Client, Repository: *options.Registry.Charts},
		}
	}

	return &Previewer{
		client:        reader,
		releases:      options.Releases,
		charts:        &Charts{Sources: resolver, Store: charts, Events: &listener{}},
		crds:          crds.NewApplier(crds.Clients{Reader: definitions}),
		imageRegistry: options.ImageRegistry,
	}, nil
}

// Preview looks at what would be installed if the resource were applied as it is given, which need
// not be as it is in the cluster. Errors are those of a reconcile.
func (p *Previewer) Preview(ctx context.Context, given v1alpha2.Provider) (*Preview, error) {
	provider := given.DeepCopyObject().(v1alpha2.Provider)
	heard := &listener{}
	r := &Reconciler{
		Client: p.client,
		Live:   p.client,
		Type:   provider.ProviderType(),
		Charts: p.charts,
		Target: &clusters.Target{Cluster: p.client, Reader: p.client, Releases: p.releases},
		Events: heard,

		ImageRegistry: p.imageRegistry,
	}

	chart, err := r.chart(ctx, provider)
	if err != nil {
		return nil, err
	}

	variables, err := values.Variables(ctx, r.Live, provider)
	if err != nil {
		return nil, err
	}

	if err := p.charts.Sources.AddImages(variables); err != nil {
		return nil, err
	}

	provider.GetStatus().ObservedGeneration = -1 // or warnings would be told only once

	desired, err := r.desired(ctx, provider, chart, variables)
	if err != nil {
		return nil, err
	}

	preview := &Preview{Version: chart.Chart.Metadata.AppVersion}
	if preview.Release, err = p.releases.Render(ctx, desired); err != nil {
		return nil, err
	}

	plan, err := p.crds.Plan(ctx, r.crdsRequest(provider, chart.Chart))
	if err != nil {
		return nil, err
	}

	preview.NewCRDs, preview.ChangedCRDs = plan.Changes()
	preview.Warnings = heard.warnings

	return preview, nil
}

// Offer is a version that a provider's source has.
type Offer struct {
	Version, Contract string
}

// Offers lists all versions that the provider's source has, newest first, with their contracts as
// the newest knows them.
func (p *Previewer) Offers(ctx context.Context, provider v1alpha2.Provider) ([]Offer, error) {
	from, err := p.charts.Sources.Source(provider)
	if err != nil {
		return nil, err
	}

	releases, err := from.Releases(ctx)
	if err != nil {
		return nil, err
	}

	newest, err := source.Pick(releases, "", "")
	if err != nil {
		return nil, err
	}

	b, err := from.Fetch(ctx, newest)
	if err != nil {
		return nil, err
	}

	metadata, err := bundle.ParseMetadata(b.Metadata)
	if err != nil {
		return nil, err
	}

	var offers []Offer

	for _, r := range releases {
		// one that it does not list can never be installed
		if contract, err := metadata.Contract(r.Version); err == nil {
			offers = append(offers, Offer{Version: r.Version, Contract: contract})
		}
	}

	return offers, nil
}

// ReleaseName is the name of a provider's Helm release.
func ReleaseName(provider v1alpha2.Provider) string { return releaseName(v1alpha2.Label(provider)) }

// listener hears the events of a reconcile that nobody else is to see.
type listener struct{ warnings []string }

// Eventf keeps what would be an event.
func (l *listener) Eventf(_, _ runtime.Object, _, _, _, note string, args ...any) {
	l.warnings = append(l.warnings, fmt.Sprintf(note, args...))
}

// readOnly is a client whose writes succeed and do nothing.
type readOnly struct{ client.Client }

func (readOnly) Create(context.Context, client.Object, ...client.CreateOption) error { return nil }
func (readOnly) Update(context.Context, client.Object, ...client.UpdateOption) error { return nil }
func (readOnly) Delete(context.Context, client.Object, ...client.DeleteOption) error { return nil }
func (readOnly) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return nil
}
func (readOnly) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return nil
}
