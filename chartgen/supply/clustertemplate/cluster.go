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

// FromCluster returns the templates in the chart that the operator stores in the management cluster.
// If want has no name, there must be exactly one infrastructure provider; if it has no version, the
// installed version is used.
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

// installedProvider returns the infrastructure provider with a name, or the only one if the name is
// empty.
func installedProvider(ctx context.Context, c client.Client, name string) (*v1alpha2.InfrastructureProvider, error) {
	list := &v1alpha2.InfrastructureProviderList{}

	err := c.List(ctx, list)
	if meta.IsNoMatchError(err) {
		return nil, &source.NotFoundError{
			Message: "the management cluster knows no InfrastructureProviders; " +
				"install Capstan there, or name a chart or a folder to read the templates from",
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
			Message: "the management cluster has no InfrastructureProvider; " +
				"create one, or name a chart or a folder to read the templates from",
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

// storedChart reads the stored chart of a provider's version. If there are several, since files of the
// version changed, it is the one in use, or else the newest. As for the operator, only the charts that
// the status records count.
func storedChart(
	ctx context.Context,
	c client.Client,
	provider *v1alpha2.InfrastructureProvider,
	version string,
) (*chart.Chart, error) {
	records := provider.Status.StoredCharts
	if len(records) == 0 {
		return nil, &source.NotFoundError{
			Message: "the cluster keeps no chart of it; pull the chart from the place in its status and give the .tgz",
		}
	}

	versions := make([]string, len(records))
	for i, record := range records {
		versions[i] = record.Version
	}

	picked, err := source.Pick(source.ParseVersions(versions), version, "")
	if err != nil {
		return nil, err
	}

	options := store.FindOptions{Namespace: provider.Namespace, Provider: v1alpha2.Label(provider), Version: picked.Name}

	for _, record := range records {
		isInUse := provider.Status.Chart != nil && provider.Status.Chart.Digest == record.Digest
		if record.Version == picked.Name && (options.Digest == "" || isInUse) {
			options.Digest = record.Digest
		}
	}

	stored, err := (&store.Cluster{Client: c}).Find(ctx, options)
	if err != nil {
		return nil, err
	}

	return stored.Chart, nil
}
