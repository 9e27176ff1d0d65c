// Package fetch finds where a provider's releases come from: what its resource says, and without
// that the catalog of providers. Making a source reads no Secret and asks nobody: that happens only
// when something must be fetched.
package fetch

import (
	"fmt"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/catalog"
	"github.com/capstan-project/capstan/chartgen/supply/source"
)

// Resolver makes sources.
type Resolver struct {
	// Metadata reads the metadata of ConfigMaps and Secrets from the watch, Reader reads from the
	// API server itself.
	Metadata, Reader client.Reader
	// Config is the operator's configuration.
	Config *ConfigFile
	// Registry is the operator's access to registries.
	Registry *Registry
}

// ConfigError says that spec.fetchConfig does not lead to a source.
type ConfigError struct{ message string }

func (e *ConfigError) Error() string { return e.message }

// UnknownProviderError says that the catalog lacks a provider.
type UnknownProviderError struct {
	Type v1alpha2.ProviderType
	Name string
}

func (e *UnknownProviderError) Error() string {
	return fmt.Sprintf(
		"%s %s is in neither clusterctl's list of providers nor the operator's configuration; correct its name, or say in spec.fetchConfig where its components are",
		e.Type,
		e.Name,
	)
}

// Source is where a provider's releases come from. Its error is a *ConfigError, a
// *source.AddressError or an *UnknownProviderError, or says why the operator's configuration cannot
// be read.
func (r *Resolver) Source(provider v1alpha2.Provider) (source.Source, error) {
	identity := source.Provider(provider.ProviderType(), provider.GetName())

	fetch := provider.GetSpec().FetchConfig
	switch {
	case fetch != nil && fetch.Selector != nil:
		return &source.ConfigMaps{
			Client:    r.Metadata,
			APIReader: r.Reader,
			Namespace: provider.GetNamespace(),
			Selector:  fetch.Selector,
			Provider:  identity,
		}, nil
	case fetch != nil && fetch.Directory != "":
		return source.NewDirectory(filepath.Join(fetch.Directory, identity.Label))
	case fetch != nil && (fetch.OCI != "" || fetch.Image != ""):
		return r.fromRegistry(provider, identity)
	}

	known, err := r.Config.Catalog()
	if err != nil {
		return nil, err
	}

	if fetch != nil && (fetch.URL != "" || fetch.HTTP != "") {
		return source.NewWebsite(fetch.URL+fetch.HTTP, identity, known.WebOptions(r.credentials(provider, known.PublicToken)))
	}

	return r.listed(provider, known, identity)
}

// listed is the source of a provider that names none: the repository with charts, if there is one,
// and what the catalog has.
func (r *Resolver) listed(
	provider v1alpha2.Provider,
	known *catalog.Catalog,
	identity bundle.Provider,
) (source.Source, error) {
	charts := r.Registry.Charts != nil

	entry, found := known.Find(provider.ProviderType(), provider.GetName())
	if !found && !charts {
		return nil, &UnknownProviderError{Type: provider.ProviderType(), Name: provider.GetName()}
	}

	if !found {
		return r.fromCharts(identity, nil)
	}

	published, err := known.Open(entry, r.credentials(provider, nil))
	if err != nil || !charts {
		return published, err
	}

	return r.fromCharts(identity, published)
}

// Digest is what the components' file must have by the resource; empty when it may have any. Of
// artifacts and images it is the manifest's digest, which their sources know by themselves.
func Digest(provider v1alpha2.Provider) string {
	fetch := provider.GetSpec().FetchConfig
	if fetch == nil || fetch.OCI != "" || fetch.Image != "" {
		return ""
	}

	return fetch.Digest
}
