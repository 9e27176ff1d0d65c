package lint

import (
	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/contract"
)

// ipPool is a pool of IP addresses. Only IPAddressClaims refer to it, which its own provider reads.
var ipPool = &resource{
	Name:       "IP address pool",
	Area:       "ipam",
	Page:       contract.Pages + "ipam",
	Definition: "data-types",
	External:   true,
	suffix:     "Pool",
	group:      "ipam.cluster.x-k8s.io",
	provider:   v1alpha2.IPAMProviderType,
	Requirements: []requiredFields{{
		Name:     "conditions",
		Section:  "data-types",
		Strength: may,
		Text:     "An IP address pool has status.conditions, a list.",
		Why:      "Users and tools cannot see whether a pool works.",
		Fields:   bothContracts(field{Path: "status.conditions", Type: "array"}),
	}},
}
