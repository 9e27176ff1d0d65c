package adopt

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// newItem returns the item of a provider in the inventory, as clusterctl writes it.
func newItem(p v1alpha2.Provider, version string) *unstructured.Unstructured {
	item := &unstructured.Unstructured{Object: map[string]any{
		"providerName": p.GetName(), "type": string(p.ProviderType()), "version": version,
	}}
	item.SetGroupVersionKind(clusterctlv1.GroupVersion.WithKind("Provider"))
	item.SetNamespace(p.GetNamespace())
	item.SetName(v1alpha2.Label(p))
	item.SetLabels(map[string]string{
		v1alpha2.ClusterctlLabel:         "",
		v1alpha2.ClusterctlProviderLabel: v1alpha2.Label(p),
		clusterctlv1.ClusterctlCoreLabel: clusterctlv1.ClusterctlCoreLabelInventoryValue,
	})

	if manager := p.GetSpec().Manager; manager != nil && manager.CacheNamespace != "" {
		item.Object["watchedNamespace"] = manager.CacheNamespace
	}

	return item
}

const (
	// itemTimeout is how long the operator may take to change its item of a provider.
	itemTimeout  = 10 * time.Second
	itemInterval = 200 * time.Millisecond
)

// awaitHandover waits until the operator's item of a provider says that the provider stays installed. The operator
// leaves such an item to clusterctl when the resource is gone, also if this program is interrupted. It is no error if
// the operator does not write that: it may keep no inventory.
func awaitHandover(ctx context.Context, cluster *cli.Cluster, item *unstructured.Unstructured) error {
	existing := item.DeepCopy()

	err := wait.PollUntilContextTimeout(ctx, itemInterval, itemTimeout, true, func(ctx context.Context) (bool, error) {
		err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(item), existing)

		return err != nil || !isKept(existing) || existing.GetAnnotations()[v1alpha2.KeepInstalledAnnotation] == "true", err
	})
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || ctx.Err() == nil && wait.Interrupted(err) {
		return nil
	}

	return err
}

// isKept reports whether the operator keeps an item.
func isKept(item *unstructured.Unstructured) bool {
	return item.GetLabels()[v1alpha2.ManagedByLabel] == v1alpha2.FieldOwner
}

// restoreItem makes sure that the inventory has an item that is clusterctl's. The operator releases its own when the
// resource is gone; until then, a new one would be mistaken for it.
func restoreItem(ctx context.Context, cluster *cli.Cluster, item *unstructured.Unstructured) error {
	existing := item.DeepCopy()

	err := wait.PollUntilContextTimeout(ctx, itemInterval, itemTimeout, true, func(ctx context.Context) (bool, error) {
		err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(item), existing)

		return err != nil || !isKept(existing), err
	})

	switch {
	case meta.IsNoMatchError(err):
		return nil // it was installed without an inventory
	case client.IgnoreNotFound(err) == nil && err != nil:
		return cluster.Client.Create(ctx, item, cli.FieldOwner)
	case err == nil:
		return nil // the operator keeps no inventory
	case wait.Interrupted(err):
		return fmt.Errorf("the operator has not released its item %s/%s; correct the item's labels", item.GetNamespace(),
			item.GetName())
	}

	return err
}
