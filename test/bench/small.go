package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

// smallNamespaces is the number of namespaces of the small providers.
const smallNamespaces = 20

// smallProviders returns the first n small providers: core, and infrastructure providers.
func smallProviders(n int) []*harness.Release {
	releases := make([]*harness.Release, n)
	for i := range releases {
		providerType, name, object := v1alpha2.InfrastructureProviderType, fmt.Sprintf("s-%03d", i), fmt.Sprintf("s%03d", i)
		if i == 0 {
			providerType, name = v1alpha2.CoreProviderType, v1alpha2.CoreProviderName
		}

		key := types.NamespacedName{Namespace: fmt.Sprintf("scale-%02d", i%smallNamespaces), Name: name}
		releases[i] = harness.Small(providerType, key, object, "v1.0.0")
	}

	return releases
}
