package lint

import (
	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/contract"
)

// bootstrapConfig generates the data with which a host becomes a Node.
var bootstrapConfig = &resource{
	Name:       "BootstrapConfig",
	Area:       "bootstrap-config",
	Page:       contract.Pages + "bootstrap-config",
	Definition: "bootstrapconfig-bootstrapconfiglist-resource-definition",
	suffix:     "Config",
	group:      "bootstrap.cluster.x-k8s.io",
	provider:   v1alpha2.BootstrapProviderType,
	Template: &resourceTemplate{
		Section:  "bootstrapconfigtemplate-bootstrapconfigtemplatelist-resource-definition",
		Strength: should,
		Why:      "No MachineDeployment or MachineSet can create Machines with the configuration.",
		Verbs:    allVerbs,
	},
	Requirements: []requiredFields{
		{
			Name:    "data-secret",
			Section: "bootstrapconfig-data-secret",
			Text:    "A BootstrapConfig has status.dataSecretName, a string.",
			Why:     "Cluster API cannot find the bootstrap data, so no Machine gets any.",
			Fields:  bothContracts(field{Path: "status.dataSecretName", Type: "string"}),
		},
		{
			Name:    "data-secret-created",
			Section: "bootstrapconfig-initialization-completed",
			Text:    "A BootstrapConfig has status.ready in v1beta1, and status.initialization.dataSecretCreated in v1beta2.",
			Why:     "Machines wait for their bootstrap data.",
			Fields: map[string][]field{
				"v1beta1": {{Path: "status.ready", Type: "boolean"}},
				"v1beta2": {{Path: "status.initialization.dataSecretCreated", Type: "boolean"}},
			},
		},
		optionalFields(),
	},
}
