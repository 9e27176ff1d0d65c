package adopt

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/foreign"
	"github.com/capstan-project/capstan/controllers/predecessor"
)

// clusterctl finds the providers of `clusterctl init` by its inventory, or else by their labels.
type clusterctl struct{}

var _ Source = clusterctl{}

// Name returns the value of --installer.
func (clusterctl) Name() string { return "clusterctl" }

// Find reads the inventory. Only if the cluster has none are providers found by the labels of their Deployments.
func (clusterctl) Find(ctx context.Context, cluster *cli.Cluster) (*Found, error) {
	items := &unstructured.UnstructuredList{}
	items.SetGroupVersionKind(clusterctlv1.GroupVersion.WithKind("ProviderList"))

	err := cluster.Client.List(ctx, items, client.InNamespace(cluster.Namespace))
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("list clusterctl's inventory: %w", err)
	}

	found := &Found{}

	if len(items.Items) == 0 {
		found.Installations, err = labeled(ctx, cluster)
	} else {
		found.Installations, err = listed(items.Items)
		found.Managed = len(items.Items) - len(found.Installations)
	}

	slices.SortStableFunc(found.Installations, func(a, b Installation) int { return order(a) - order(b) })

	return found, err
}

// order returns the rank of a provider's type in clusterctl's order of installation.
func order(i Installation) int {
	return slices.Index(v1alpha2.ProviderTypes(), i.Provider.ProviderType())
}

// listed returns the installations that the inventory has. What Capstan has installed itself is left out.
func listed(items []unstructured.Unstructured) ([]Installation, error) {
	var installations []Installation

	for _, item := range items {
		if isKept(&item) {
			continue
		}

		field := func(name string) string {
			value, _, _ := unstructured.NestedString(item.Object, name)
			return value
		}

		provider := v1alpha2.ProviderType(field("type")).New()
		if provider == nil {
			return nil, fmt.Errorf("item %s/%s of the inventory has an unknown type %q",
				item.GetNamespace(), item.GetName(), field("type"))
		}

		provider.SetNamespace(item.GetNamespace())
		provider.SetName(field("providerName"))
		provider.GetSpec().Version = field("version")

		installation := Installation{Provider: provider}

		if namespace := field("watchedNamespace"); namespace != "" {
			manager := &v1alpha2.ManagerSpec{}
			manager.CacheNamespace = namespace
			provider.GetSpec().Manager = manager
		}

		installations = append(installations, installation)
	}

	return installations, nil
}

// labeled returns the installations that Deployments with clusterctl's labels show, without those of Helm releases and
// of cluster-api-operator, which also have the labels. The version is the tag of an image.
func labeled(ctx context.Context, cluster *cli.Cluster) ([]Installation, error) {
	deployments := &appsv1.DeploymentList{}

	err := cluster.Client.List(ctx, deployments, client.InNamespace(cluster.Namespace),
		client.HasLabels{v1alpha2.ClusterctlLabel, v1alpha2.ClusterctlProviderLabel})
	if err != nil {
		return nil, fmt.Errorf("list Deployments: %w", err)
	}

	var installations []Installation

	for _, d := range deployments.Items {
		label := d.Labels[v1alpha2.ClusterctlProviderLabel]
		known := slices.ContainsFunc(installations, func(i Installation) bool { return v1alpha2.Label(i.Provider) == label })

		if known || d.Annotations[v1alpha2.HelmReleaseNameAnnotation] != "" || predecessor.Owns(&d) {
			continue
		}

		kind, name := v1alpha2.ParseLabel(label)
		provider := kind.New()
		provider.SetNamespace(d.Namespace)
		provider.SetName(name)

		provider.GetSpec().Version = foreign.ImageVersion(&d)
		if provider.GetSpec().Version == "" {
			return nil, fmt.Errorf("the version of %s is unknown: clusterctl's inventory has no item of it, and no image of "+
				"Deployment %s/%s has a version as its tag; create the resource with the right version yourself", label,
				d.Namespace, d.Name)
		}

		installations = append(installations, Installation{Provider: provider, Warnings: []string{fmt.Sprintf(
			"clusterctl has no inventory here; version %s is the tag of an image of Deployment %s",
			provider.GetSpec().Version, d.Name)}})
	}

	return installations, nil
}
