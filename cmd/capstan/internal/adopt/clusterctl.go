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

// clusterctl finds the providers of `clusterctl init` by its inventory and by their labels.
type clusterctl struct{}

var _ Source = clusterctl{}

// Name returns the value of --installer.
func (clusterctl) Name() string { return "clusterctl" }

// Find reads the inventory. Providers that it does not have are found by the labels of their Deployments.
func (clusterctl) Find(ctx context.Context, cluster *cli.Cluster) (*Found, error) {
	items := &unstructured.UnstructuredList{}
	items.SetGroupVersionKind(clusterctlv1.GroupVersion.WithKind("ProviderList"))

	err := cluster.Client.List(ctx, items, client.InNamespace(cluster.Namespace))
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("list clusterctl's inventory: %w", err)
	}

	found := &Found{}

	for _, item := range items.Items {
		installation, err := listed(&item)
		if err != nil {
			return nil, err
		}

		if isKept(&item) {
			found.Managed = append(found.Managed, installation)
		} else {
			found.Installations = append(found.Installations, installation)
		}
	}

	others, err := labeled(ctx, cluster, slices.Concat(found.Installations, found.Managed))
	found.Installations = append(found.Installations, others...)

	slices.SortStableFunc(found.Installations, func(a, b Installation) int { return order(a) - order(b) })

	return found, err
}

// order returns the rank of a provider's type in clusterctl's order of installation.
func order(i Installation) int {
	return slices.Index(v1alpha2.ProviderTypes(), i.Provider.ProviderType())
}

// isKept reports whether the operator keeps an item.
func isKept(item *unstructured.Unstructured) bool {
	return item.GetLabels()[v1alpha2.ManagedByLabel] == v1alpha2.FieldOwner
}

// listed returns the installation of an item of the inventory.
func listed(item *unstructured.Unstructured) (Installation, error) {
	field := func(name string) string {
		value, _, _ := unstructured.NestedString(item.Object, name)
		return value
	}

	provider := v1alpha2.ProviderType(field("type")).New()
	if provider == nil {
		return Installation{}, fmt.Errorf("item %s/%s of the inventory has an unknown type %q",
			item.GetNamespace(), item.GetName(), field("type"))
	}

	provider.SetNamespace(item.GetNamespace())
	provider.SetName(field("providerName"))
	provider.GetSpec().Version = field("version")

	if namespace := field("watchedNamespace"); namespace != "" {
		manager := &v1alpha2.ManagerSpec{}
		manager.CacheNamespace = namespace
		provider.GetSpec().Manager = manager
	}

	return Installation{Provider: provider}, nil
}

// labeled returns the installations that Deployments with clusterctl's labels show and that are not known, without
// those of Helm releases and of cluster-api-operator, which also have the labels. The version is the tag of an image.
func labeled(ctx context.Context, cluster *cli.Cluster, known []Installation) ([]Installation, error) {
	deployments := &appsv1.DeploymentList{}

	err := cluster.Client.List(ctx, deployments, client.InNamespace(cluster.Namespace),
		client.HasLabels{v1alpha2.ClusterctlLabel, v1alpha2.ClusterctlProviderLabel})
	if err != nil {
		return nil, fmt.Errorf("list Deployments: %w", err)
	}

	var installations []Installation

	for _, d := range deployments.Items {
		label := d.Labels[v1alpha2.ClusterctlProviderLabel]
		isKnown := slices.ContainsFunc(slices.Concat(known, installations), func(i Installation) bool {
			return v1alpha2.Label(i.Provider) == label
		})

		if isKnown || d.Annotations[v1alpha2.HelmReleaseNameAnnotation] != "" || predecessor.Owns(&d) {
			continue
		}

		kind, name := v1alpha2.ParseLabel(label)
		provider := kind.New()
		provider.SetNamespace(d.Namespace)
		provider.SetName(name)

		installation := Installation{Provider: provider}

		if version := foreign.ImageVersion(&d); version != "" {
			provider.GetSpec().Version = version
			installation.Warnings = []string{fmt.Sprintf("clusterctl's inventory does not have it; version %s is the tag of an "+
				"image of Deployment %s", version, d.Name)}
		} else {
			installation.Problem = fmt.Errorf("the version of %s is unknown: clusterctl's inventory does not have it, and no "+
				"image of Deployment %s/%s has a version as its tag; create the resource with the right version yourself, or "+
				"name the providers to adopt", label, d.Namespace, d.Name)
		}

		installations = append(installations, installation)
	}

	return installations, nil
}
