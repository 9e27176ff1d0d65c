package lanes

import "github.com/capstan-project/capstan/api/v1alpha2"

// Of returns the lane of a provider: that of its remote cluster, or that of its namespace if it has a
// source of its own that can delay a reconcile. It is empty for all other providers.
func Of(provider v1alpha2.Provider) string {
	if cluster := v1alpha2.Cluster(provider); cluster != "" {
		return "cluster " + cluster
	}

	fetch := provider.GetSpec().FetchConfig
	if fetch != nil && (fetch.URL != "" || fetch.HTTP != "" || fetch.OCI != "" || fetch.Image != "") {
		return "namespace " + provider.GetNamespace()
	}

	return ""
}
