package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// inventory has the resources that adopt the providers of clusterctl's inventory: with their names, their namespaces
// and the installed versions, core first.
type inventory struct {
	installed []v1alpha2.Provider
	// managed are those that Capstan manages already.
	managed []v1alpha2.Provider
}

// readInventory reads clusterctl's inventory.
func readInventory(ctx context.Context, cluster *cli.Cluster) (*inventory, error) {
	items := &unstructured.UnstructuredList{}
	items.SetGroupVersionKind(clusterctlv1.GroupVersion.WithKind("ProviderList"))

	err := cluster.Client.List(ctx, items, client.InNamespace(cluster.Namespace))
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("list clusterctl's inventory: %w", err)
	}

	if len(items.Items) == 0 {
		return nil, errors.New("clusterctl's inventory has no providers; select another cluster with --kubeconfig or " +
			"--context, or create the resources yourself, with the versions that are installed")
	}

	found := &inventory{}

	for _, item := range items.Items {
		provider, err := listed(&item)
		if err != nil {
			return nil, err
		}

		if item.GetLabels()[v1alpha2.ManagedByLabel] == v1alpha2.FieldOwner {
			found.managed = append(found.managed, provider)
		} else {
			found.installed = append(found.installed, provider)
		}
	}

	slices.SortStableFunc(found.installed, func(a, b v1alpha2.Provider) int { return order(a) - order(b) })

	return found, nil
}

// order returns the rank of a provider's type in clusterctl's order of installation.
func order(p v1alpha2.Provider) int { return slices.Index(v1alpha2.ProviderTypes(), p.ProviderType()) }

// listed returns the resource for an item of the inventory.
func listed(item *unstructured.Unstructured) (v1alpha2.Provider, error) {
	field := func(name string) string {
		value, _, _ := unstructured.NestedString(item.Object, name)
		return value
	}

	kind := v1alpha2.ProviderType(field("type"))

	provider := kind.New()
	if provider == nil {
		return nil, fmt.Errorf("item %s/%s of the inventory has an unknown type %q",
			item.GetNamespace(), item.GetName(), kind)
	}

	provider.GetObjectKind().SetGroupVersionKind(kind.GroupVersionKind())
	provider.SetNamespace(item.GetNamespace())
	provider.SetName(field("providerName"))
	provider.GetSpec().Version = field("version")

	if namespace := field("watchedNamespace"); namespace != "" {
		provider.GetSpec().Manager = &v1alpha2.ManagerSpec{}
		provider.GetSpec().Manager.CacheNamespace = namespace
	}

	return provider, nil
}

// selected returns the installed providers that the arguments name; all if there are none. Those that Capstan manages
// already are left out, so that the same command can be repeated.
func (i *inventory) selected(arguments []string) ([]v1alpha2.Provider, error) {
	if len(arguments) == 0 {
		return i.installed, nil
	}

	named, err := cli.Named(slices.Concat(i.installed, i.managed), arguments)

	return slices.DeleteFunc(named, func(p v1alpha2.Provider) bool { return slices.Contains(i.managed, p) }), err
}
