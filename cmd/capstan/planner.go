package main

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/store"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/fetch"
	providerplan "github.com/capstan-project/capstan/controllers/plan"
)

// previewer plans what resources ask for, and writes nothing.
type previewer struct {
	*providerplan.Planner
	management *management
	crds       *crds.Applier
}

// preview connects what shows a resource's consequences.
func (m *management) preview() (*previewer, error) {
	scheme := runtime.NewScheme()
	if err := crds.AddToScheme(scheme); err != nil {
		return nil, err
	}

	definitions, err := client.New(m.config, client.Options{Scheme: scheme, Mapper: m.client.RESTMapper()})
	if err != nil {
		return nil, err
	}

	registry, err := fetch.NewRegistry("", "", "")
	if err != nil {
		return nil, err
	}

	reader := readOnly{m.client}
	sources := &fetch.Resolver{
		Metadata: reader, Reader: reader,
		Config:   &fetch.ConfigFile{Path: fetch.DefaultConfigFile},
		Registry: registry,
	}

	return &previewer{
		Planner: &providerplan.Planner{
			Cache: reader, APIReader: reader, Sources: sources,
			Charts: &providerplan.Charts{Store: &store.Cluster{Client: reader}},
		},
		management: m,
		crds:       crds.NewApplier(crds.Clients{Reader: definitions}),
	}, nil
}

// Preview plans what would be installed if the resource were applied as given.
func (p *previewer) Preview(ctx context.Context, provider v1alpha2.Provider) (*providerplan.Preview, error) {
	request := providerplan.Request{Provider: provider, Scope: p.management.client}
	return p.Planner.Preview(ctx, request, p.management.releases, p.crds)
}

// readOnly is a client whose writes succeed and do nothing.
type readOnly struct{ client.Client }

// Create does nothing.
func (readOnly) Create(context.Context, client.Object, ...client.CreateOption) error { return nil }
