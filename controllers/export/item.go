package export

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// isOwn reports whether Capstan keeps an item.
func isOwn(item *clusterctlv1.Provider) bool {
	return item.Labels[v1alpha2.ManagedByLabel] == v1alpha2.FieldOwner
}

// wantedItem returns the item of a provider, as clusterctl would write it; nil if it should have none: the
// provider is not installed in the cluster of its resource, or an item that is gone is that of a provider
// that is being removed. The current item, which is nil if there is none, is not changed.
func wantedItem(p v1alpha2.Provider, current *clusterctlv1.Provider) *clusterctlv1.Provider {
	if !isInstalled(p) {
		return nil
	}

	version := deployedVersion(p.GetStatus())
	removed := !p.GetDeletionTimestamp().IsZero()

	if current == nil && (version == "" || removed) {
		return nil
	}

	item := &clusterctlv1.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: p.GetNamespace(), Name: v1alpha2.Label(p)}}
	if current != nil {
		item = current.DeepCopy()
	}

	if item.Labels == nil {
		item.Labels = map[string]string{}
	}

	item.Labels[v1alpha2.ClusterctlLabel] = ""
	item.Labels[v1alpha2.ClusterctlProviderLabel] = v1alpha2.Label(p)
	item.Labels[clusterctlv1.ClusterctlCoreLabel] = clusterctlv1.ClusterctlCoreLabelInventoryValue
	item.Labels[v1alpha2.ManagedByLabel] = v1alpha2.FieldOwner

	if v1alpha2.Asks(p, v1alpha2.KeepInstalledAnnotation) {
		metav1.SetMetaDataAnnotation(&item.ObjectMeta, v1alpha2.KeepInstalledAnnotation, "true")
	} else {
		delete(item.Annotations, v1alpha2.KeepInstalledAnnotation)
	}

	item.ProviderName = p.GetName()
	item.Type = string(p.ProviderType())
	item.WatchedNamespace = watchedNamespace(p.GetSpec()) //nolint:staticcheck // deprecated, but part of the inventory

	if version != "" {
		item.Version = version
	}

	return item
}

// isInstalled reports whether the resource has installed its provider in the cluster that it is in.
func isInstalled(p v1alpha2.Provider) bool {
	release := p.GetStatus().Release

	return release != nil && release.Status != string(state.StatusUninstalled) && p.GetSpec().KubeConfig == nil
}

// watchedNamespace returns the only namespace that a provider's manager watches; empty if it watches all of them.
func watchedNamespace(spec *v1alpha2.ProviderSpec) string {
	if spec.Manager == nil {
		return ""
	}

	return spec.Manager.CacheNamespace
}

// deployedVersion returns the version that the release holds; empty while none is deployed.
func deployedVersion(status *v1alpha2.ProviderStatus) string {
	for _, revision := range status.History {
		if revision.Status == string(state.StatusDeployed) {
			return revision.Version
		}
	}

	return ""
}
