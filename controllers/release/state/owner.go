package state

import "k8s.io/apimachinery/pkg/types"

// Owner identifies the resource that a release was installed for. Its fields are empty if they are unknown.
type Owner struct {
	// Resource is the UID of the resource.
	Resource types.UID
	// Home is the cluster that the resource is in, and Cluster the one that the release is in. Clusters
	// are identified by the UID of their namespace kube-system.
	Home, Cluster types.UID
}

// Excludes reports whether a release with this owner must be left to it by another resource of the same
// provider, for which the release has the same name.
//
// In one cluster, only one resource has the name, so an owner from there no longer exists if it is not that
// resource. The same is true of records that were copied from another cluster, such as those from a backup.
func (o Owner) Excludes(other Owner) bool {
	known := o.Home != "" && other.Home != ""

	return known && o.Home != other.Home && o.Cluster == other.Cluster
}
