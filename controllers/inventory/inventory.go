// Package inventory keeps clusterctl's inventory, which tells clusterctl the installed providers and their versions: an
// object for each provider that is installed in the operator's own cluster.
package inventory

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Inventory writes the items of providers. A nil Inventory has none.
type Inventory struct {
	// Client asks the API server. Its scheme has clusterctl's kinds.
	Client client.Client
	// Wake enqueues a resource after a delay.
	Wake func(label, namespace string, after time.Duration)
}

// retry is when an item that could not be written is written again.
const retry = time.Minute

// Lists reports whether a provider has an item: it is installed in the cluster that its resource is in.
func Lists(p v1alpha2.Provider) bool {
	release := p.GetStatus().Release

	return release != nil && release.Status != v1alpha2.RevisionUninstalled && p.GetSpec().KubeConfig == nil
}

// Update brings the item of a provider up to date at the end of a reconcile. listed is set if the provider had one
// when that began. That of a deleted resource goes with its finalizer. A problem is only logged, and updated is false:
// the provider does not need its item.
func (i *Inventory) Update(ctx context.Context, p v1alpha2.Provider, listed bool) (updated bool) {
	if i == nil || !p.GetDeletionTimestamp().IsZero() {
		return true
	}

	var err error

	switch version := Version(p); {
	case ctx.Err() != nil:
		return false
	case !Lists(p) && listed:
		err = i.Remove(ctx, p)
	case Lists(p) && version != "": // while nothing is deployed, the last version stays
		err = i.write(ctx, p, version, listed)
	}

	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot update the provider in clusterctl's inventory; correct the cause, or "+
			"disable the inventory with --clusterctl-inventory=false")
		i.Wake(v1alpha2.Label(p), p.GetNamespace(), retry)
	}

	return err == nil
}

// write creates or changes the item of a provider. One that was not listed usually has none.
func (i *Inventory) write(ctx context.Context, p v1alpha2.Provider, version string, listed bool) error {
	writer := client.WithFieldOwner(i.Client, v1alpha2.FieldOwner)

	var err error

	if !listed {
		item := itemOf(p)
		describe(item, p, version)
		err = writer.Create(ctx, item)
	}

	if listed || apierrors.IsAlreadyExists(err) {
		item := itemOf(p)
		_, err = controllerutil.CreateOrPatch(ctx, writer, item, func() error {
			describe(item, p, version)
			return nil
		})
	}

	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}

	return ignoreAbsent(err)
}

// describe sets what the item of a provider says.
func describe(item *clusterctlv1.Provider, p v1alpha2.Provider, version string) {
	for label, value := range map[string]string{
		v1alpha2.ClusterctlLabel:         "",
		v1alpha2.ClusterctlProviderLabel: v1alpha2.Label(p),
		clusterctlv1.ClusterctlCoreLabel: clusterctlv1.ClusterctlCoreLabelInventoryValue,
		v1alpha2.ManagedByLabel:          v1alpha2.FieldOwner,
	} {
		metav1.SetMetaDataLabel(&item.ObjectMeta, label, value)
	}

	item.ProviderName = p.GetName()
	item.Type = string(p.ProviderType())
	item.Version = version
	item.WatchedNamespace = watchedNamespace(p.GetSpec()) //nolint:staticcheck // deprecated, but part of the inventory
}

// Remove deletes the item of a provider, unless clusterctl has written it. That of a provider which stays installed
// without its resource becomes clusterctl's.
func (i *Inventory) Remove(ctx context.Context, p v1alpha2.Provider) error {
	if i == nil || p.GetSpec().KubeConfig != nil {
		return nil
	}

	item := itemOf(p)
	if err := i.Client.Get(ctx, client.ObjectKeyFromObject(item), item); err != nil {
		return ignoreAbsent(err)
	}

	if item.Labels[v1alpha2.ManagedByLabel] != v1alpha2.FieldOwner {
		return nil
	}

	if !p.GetDeletionTimestamp().IsZero() && v1alpha2.Asks(p, v1alpha2.KeepInstalledAnnotation) {
		before := item.DeepCopy()
		delete(item.Labels, v1alpha2.ManagedByLabel)

		return ignoreAbsent(i.Client.Patch(ctx, item, client.MergeFrom(before), client.FieldOwner(v1alpha2.FieldOwner)))
	}

	return ignoreAbsent(i.Client.Delete(ctx, item, client.Preconditions{UID: &item.UID}))
}

func itemOf(p v1alpha2.Provider) *clusterctlv1.Provider {
	return &clusterctlv1.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: p.GetNamespace(), Name: v1alpha2.Label(p)}}
}

// ignoreAbsent returns nil for the error about an item, or a kind of items, that does not exist.
func ignoreAbsent(err error) error {
	if meta.IsNoMatchError(err) {
		return nil
	}

	return client.IgnoreNotFound(err)
}

// watchedNamespace returns the only namespace that a provider's manager watches; empty if it watches all of them.
func watchedNamespace(spec *v1alpha2.ProviderSpec) string {
	if spec.Manager == nil {
		return ""
	}

	return spec.Manager.CacheNamespace
}

// Version returns the version that the release of a provider holds; empty while none is deployed.
func Version(p v1alpha2.Provider) string {
	for _, revision := range p.GetStatus().History {
		if revision.Status == v1alpha2.RevisionDeployed {
			return revision.Version
		}
	}

	return ""
}
