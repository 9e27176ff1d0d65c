// Package fetch finds the source of a provider's versions: in its resource, or else in the provider catalog. Creating a
// source reads no Secret and sends no request; fetching does both.
package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/catalog"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/controllers/access"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/seats"
	"github.com/capstan-project/capstan/controllers/values"
)

// Resolver creates the sources of providers.
type Resolver struct {
	// Readers read ConfigMaps, Secrets and ServiceAccounts.
	Readers *access.Readers
	// Catalog reads the operator's configuration.
	Catalog Catalog
	// Registry is the operator's access to registries.
	Registry *Registry
	// Policy restricts sources; nil for no restriction.
	Policy *Policy
	// Watched finds ConfigMaps and Secrets without a request, as they were a moment ago; nil to list them.
	Watched source.Find
	// Metadata returns the metadata of a version that was read for a provider before, and nil for others; nil if none is
	// kept.
	Metadata func(v1alpha2.Provider, source.Version) []byte
	// Seats bound how many workers wait for sources that the resources of each kind name; none for no bound.
	Seats map[v1alpha2.ProviderType]*seats.Seats
}

// Catalog reads the operator's configuration, in clusterctl's format.
type Catalog func() (*catalog.Catalog, error)

// DefaultConfigFile is the path of cluster-api-operator's configuration, which is also read if no
// file is configured.
const DefaultConfigFile = "/config/clusterctl.yaml"

// CatalogFile returns a Catalog that reads a file each time, because a mounted ConfigMap may change. Only the file at
// DefaultConfigFile is optional.
func CatalogFile(path string) Catalog {
	return func() (*catalog.Catalog, error) {
		configured, err := catalog.Load(path)
		if errors.Is(err, fs.ErrNotExist) && path == DefaultConfigFile {
			return catalog.Parse(nil)
		}

		if err != nil {
			return nil, fmt.Errorf("the operator's configuration: %w", err)
		}

		return configured, nil
	}
}

// refuse returns the problem of a spec.fetchConfig that cannot be used.
func refuse(format string, args ...any) error {
	return problem.Refuse(v1alpha2.FetchConfigValidationErrorReason, format, args...)
}

// UnknownProviderError reports that the catalog does not list a provider.
type UnknownProviderError struct {
	Type v1alpha2.ProviderType
	Name string
	// Similar is the name of a listed provider that may be meant; empty if there is none.
	Similar string
}

func (e *UnknownProviderError) Error() string {
	fix := "correct its name (`capstan providers` lists all)"
	if e.Similar != "" {
		fix = "name it " + e.Similar
	}

	return fmt.Sprintf(
		"%s %s is neither in clusterctl's list of providers nor in the operator's configuration; %s, "+
			"or set spec.fetchConfig to where its components are",
		e.Type, e.Name, fix)
}

// Message is the error without the provider, if others may have the same.
func (e *UnknownProviderError) Message() string {
	if e.Similar != "" {
		return e.Error()
	}

	return "neither clusterctl's list of providers nor the operator's configuration has a source; " +
		"set spec.fetchConfig to where the components are"
}

// similar returns the name of a listed provider for one that repeats its type, such as infrastructure-docker, or is
// misspelt; empty if there is none.
func similar(configured *catalog.Catalog, t v1alpha2.ProviderType, name string) string {
	short := strings.TrimSuffix(strings.TrimPrefix(name, t.Name()+"-"), "-"+t.Name())
	if t == v1alpha2.CoreProviderType {
		short = v1alpha2.CoreProviderName
	}

	if _, listed := configured.Find(t, short); listed {
		return short
	}

	var names []string

	for _, e := range configured.Entries {
		if e.Type == t {
			names = append(names, e.Name)
		}
	}

	return values.MostSimilar(name, names)
}

// Source returns the source of a provider. The error is a *problem.Error, an *UnknownProviderError, or
// of the kind transport.Refused if the resource is at fault, and any other error if the operator's
// configuration cannot be read.
func (r *Resolver) Source(provider v1alpha2.Provider) (*source.Source, error) {
	in, err := r.newInputs(provider)
	if err != nil {
		return nil, err
	}

	from, err := r.source(in)
	if err != nil {
		return nil, err
	}

	from.Digest = Digest(provider)

	if namesServer(provider) {
		from.Admit = func() (func(), error) {
			return r.Seats[provider.ProviderType()].Take(provider.GetNamespace())
		}
	}

	return from, nil
}

// namesServer reports whether a resource names the server of its source. Others are the administrator's choice, or in
// the cluster.
func namesServer(provider v1alpha2.Provider) bool {
	config := cmp.Or(provider.GetSpec().FetchConfig, &v1alpha2.FetchConfiguration{})

	return cmp.Or(config.OCI, config.Image, config.URL, config.HTTP) != ""
}

// source returns the source of a provider, which may have any content.
func (r *Resolver) source(in *inputs) (*source.Source, error) {
	provider := in.provider

	identity := source.Provider(provider.ProviderType(), provider.GetName())
	config := cmp.Or(provider.GetSpec().FetchConfig, &v1alpha2.FetchConfiguration{})

	switch {
	case config.Selector != nil:
		versions := &source.ConfigMaps{
			Reader: in.reader, Namespace: provider.GetNamespace(), Selector: config.Selector,
		}
		if !in.tenant { // what the operator sees is not for accounts
			versions.Watched = r.Watched
		}

		return versions.Source(identity), nil
	case config.Directory != "":
		return source.NewDirectory(filepath.Join(config.Directory, identity.Label))
	case config.OCI != "" || config.Image != "":
		address := cmp.Or(config.OCI, config.Image)
		if err := r.checkNamed(address); err != nil {
			return nil, err
		}

		if err := r.Policy.checkRegistry(address, config); err != nil {
			return nil, err
		}

		return in.registrySource(identity)
	}

	configured, err := r.Catalog()
	if err != nil {
		return nil, err
	}

	if url := cmp.Or(config.URL, config.HTTP); url != "" {
		if err := r.checkNamed(url); err != nil {
			return nil, err
		}

		if err := r.Policy.checkURL(url); err != nil {
			return nil, err
		}

		own := configured.PublicToken
		if in.tenant {
			own = nil
		}

		return source.NewWebsite(url, identity, in.webOptions(own))
	}

	if r.Registry.Charts != nil {
		return r.Registry.chartSource(identity)
	}

	return in.catalogSource(configured)
}

// checkNamed returns an error for the source that a resource names if only the chart repository may be contacted.
func (r *Resolver) checkNamed(address string) error {
	if r.Registry.Charts == nil || r.Policy.listsHosts() {
		return nil
	}

	return refuse("the source %s is not allowed: providers come from the chart repository %s; remove "+
		"spec.fetchConfig, or allow the source's host with the operator's flag --allowed-source-hosts",
		address, r.Registry.Charts)
}

// catalogSource returns the source of a provider in the catalog.
func (in *inputs) catalogSource(configured *catalog.Catalog) (*source.Source, error) {
	providerType, name := in.provider.ProviderType(), in.provider.GetName()
	entry, listed := configured.Find(providerType, name)

	if !listed {
		return nil, &UnknownProviderError{Type: providerType, Name: name, Similar: similar(configured, providerType, name)}
	}

	published, err := configured.Open(entry, catalog.Access{
		Web: in.webOptions(nil), Registry: in.catalogAccess,
	})
	if err != nil {
		return nil, err
	}

	if err := in.Policy.checkEntry(entry); err != nil {
		return nil, err
	}

	return published, nil
}

// List lists the versions of a provider's source, as its List does.
func (r *Resolver) List(
	ctx context.Context, provider v1alpha2.Provider,
) ([]source.Version, *clusterctlv1.Metadata, error) {
	from, err := r.Source(provider)
	if err != nil {
		return nil, nil, err
	}

	if r.Metadata != nil {
		from.Metadata = func(version source.Version) []byte { return r.Metadata(provider, version) }
	}

	return from.List(ctx)
}

// ImageOverrides returns the image overrides of the operator's configuration, YAML in clusterctl's
// format.
func (r *Resolver) ImageOverrides() (string, error) {
	configured, err := r.Catalog()
	if err != nil {
		return "", err
	}

	return configured.Images, nil
}

// Digest returns the digest that the resource requires of the components file; empty if it requires none. For artifacts
// and images, the resource gives the digest of the manifest, which their sources check.
func Digest(provider v1alpha2.Provider) string {
	config := provider.GetSpec().FetchConfig
	if config == nil || config.OCI != "" || config.Image != "" {
		return ""
	}

	return config.Digest
}
