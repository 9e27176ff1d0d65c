package clustertemplate

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/store"
)

// FromCluster takes the templates out of the chart that the operator keeps in the management
// cluster. Where the name is left open there must be one infrastructure provider; where the version
// is, the installed one is meant.
func FromCluster(ctx context.Context, c client.Client, want Infrastructure) (*Set, error) {
	provider, err := installedProvider(ctx, c, want.Name)
	if err != nil {
		return nil, err
	}

	want.Name = provider.Name
	if want.Version == "" && provider.Status.InstalledVersion != nil {
		want.Version = *provider.Status.InstalledVersion
	}

	if want.Version == "" {
		return nil, &source.NotFoundError{
			Message: fmt.Sprintf(
				"InfrastructureProvider %s is not installed yet; see its conditions, or name a version",
				client.ObjectKeyFromObject(provider),
			),
		}
	}

	stored, err := storedChart(ctx, c, provider, want.Version)
	if err != nil {
		return nil, fmt.Errorf("InfrastructureProvider %s: %w", client.ObjectKeyFromObject(provider), err)
	}

	return FromChart(stored, want)
}

// installedProvider is the infrastructure provider of that name, or the only one there is.
func installedProvider(ctx context.Context, c client.Client, name string) (*v1alpha2.InfrastructureProvider, error) {
	list := &v1alpha2.InfrastructureProviderList{}

	err := c.List(ctx, list)
	if meta.IsNoMatchError(err) {
		return nil, &source.NotFoundError{
			Message: "the management cluster knows no InfrastructureProviders; install Capstan there, or name a chart or a folder to read the templates from",
		}
	}

	if err != nil {
		return nil, fmt.Errorf("list InfrastructureProviders of the management cluster: %w", err)
	}

	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
		if names[i] == name || name == "" && len(names) == 1 {
			return &list.Items[i], nil
		}
	}

	switch {
	case len(names) == 0:
		return nil, &source.NotFoundError{
			Message: "the management cluster has no InfrastructureProvider; create one, or name a chart or a folder to read the templates from",
		}
	case name == "":
		return nil, &source.NotFoundError{
			Message: "the management cluster has several infrastructure providers; choose one: " + strings.Join(names, ", "),
		}
	default:
		return nil, &source.NotFoundError{
			Message: fmt.Sprintf(
				"the management cluster has no InfrastructureProvider %s; there is %s",
				name,
				strings.Join(names, ", "),
			),
		}
	}
}

// storedChart reads the provider's stored chart of a version. Of several that were made of
// different bytes under one version, it is the one that the provider's status names, else the
// newest.
func storedChart(
	ctx context.Context,
	c client.Client,
	provider *v1alpha2.InfrastructureProvider,
	version string,
) (*chart.Chart, error) {
	charts := &store.Cluster{Client: c}

	versions, err := charts.Versions(ctx, provider.Namespace, v1alpha2.Label(provider))
	if err != nil {
		return nil, err
	}

	if len(versions) == 0 {
		return nil, &source.NotFoundError{
			Message: "the cluster keeps no chart of it; its status tells where the chart is, pull it from there and give the .tgz",
		}
	}

	release, err := source.Pick(source.ParseVersions(versions), version, "")
	if err != nil {
		return nil, err
	}

	query := store.FindOptions{Namespace: provider.Namespace, Provider: v1alpha2.Label(provider), Version: release.Name}
	if provider.Status.Chart != nil {
		query.PreferDigest = provider.Status.Chart.Digest
	}

	stored, err := charts.Find(ctx, query)
	if err != nil {
		return nil, err
	}

	return stored.Chart, nil
}
