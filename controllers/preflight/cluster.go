package preflight

import "github.com/capstan-project/capstan/api/v1alpha2"

// ClusterOf returns an identifier of the cluster that a provider is installed into; equal ones mean the same
// cluster. A nil ClusterOf knows clusters only by the way to them, see v1alpha2.Cluster.
type ClusterOf func(v1alpha2.Provider) string

// Same reports whether two providers are installed into the same cluster.
func (f ClusterOf) Same(a, b v1alpha2.Provider) bool {
	if f == nil {
		f = v1alpha2.Cluster
	}

	return f(a) == f(b)
}
