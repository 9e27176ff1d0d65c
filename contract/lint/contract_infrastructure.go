package lint

import (
	"maps"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/contract"
)

const infrastructureGroup = "infrastructure.cluster.x-k8s.io"

// endpointFields are the fields of the endpoint of a Cluster's API server.
var endpointFields = []field{
	{Path: "spec.controlPlaneEndpoint.host", Type: "string"},
	{Path: "spec.controlPlaneEndpoint.port", Type: "integer"},
}

// infraCluster is the infrastructure that the Machines of a Cluster share.
var infraCluster = &resource{
	Name:       "InfraCluster",
	Area:       "infra-cluster",
	Page:       contract.Pages + "infra-cluster",
	Definition: "infracluster-infraclusterlist-resource-definition",
	suffix:     "Cluster",
	group:      infrastructureGroup,
	provider:   v1alpha2.InfrastructureProviderType,
	Template: &resourceTemplate{
		Section:  "infraclustertemplate-infraclustertemplatelist-resource-definition",
		Strength: should,
		Why:      "No ClusterClass can use the infrastructure.",
		Verbs:    templateVerbs,
	},
	Requirements: []requiredFields{
		provisioned("infracluster-initialization-completed", "Clusters remain in the phase Provisioning."),
		failureDomains(optionalFields(endpointFields)),
	},
}

// infraMachine is a host of a Machine.
var infraMachine = &resource{
	Name:          "InfraMachine",
	Area:          "infra-machine",
	Page:          contract.Pages + "infra-machine",
	Definition:    "inframachine-inframachinelist-resource-definition",
	suffix:        "Machine",
	group:         infrastructureGroup,
	provider:      v1alpha2.InfrastructureProviderType,
	needsTemplate: true, // so kinds without one are hosts, or parts of a machine pool
	Requirements: []requiredFields{
		{
			Name:    "provider-id",
			Section: "inframachine-provider-id",
			Text:    "An InfraMachine has spec.providerID, a string.",
			Why:     "Cluster API cannot find the Node of a Machine, which remains in the phase Provisioning.",
			Fields:  bothContracts(field{Path: "spec.providerID", Type: "string"}),
		},
		provisioned("inframachine-initialization-completed", "Machines remain in the phase Provisioning."),
		optionalFields(
			fieldsOf("string", "", "spec.failureDomain", "status.failureDomain"),
			fieldsOf("array", "status.", "addresses"),
		),
	},
	Template: &resourceTemplate{
		Section:  "inframachinetemplate-inframachinetemplatelist-resource-definition",
		Strength: should,
		Why:      "No MachineDeployment, MachineSet or control plane can create Machines with the infrastructure.",
		Verbs:    allVerbs,
	},
}

// infraMachinePool is a group of hosts that a service of the infrastructure manages.
var infraMachinePool = &resource{
	Name:       "InfraMachinePool",
	Area:       "infra-machinepool",
	Page:       contract.Pages + "infra-machinepool",
	Definition: "inframachinepool-inframachinepoollist-resource-definition",
	suffix:     "MachinePool",
	group:      infrastructureGroup,
	provider:   v1alpha2.InfrastructureProviderType,
	Template: &resourceTemplate{
		Section:  "inframachinepooltemplate-inframachinetemplatepoollist-resource-definition",
		Strength: may,
		Why:      "No ClusterClass can use the machine pool.",
		Verbs:    allVerbs,
	},
	Requirements: []requiredFields{
		{
			Name:    "provider-id-list",
			Section: "inframachinepool-provideridlist",
			Text:    "An InfraMachinePool has spec.providerIDList, a list.",
			Why:     "Cluster API cannot find the Nodes of a MachinePool, and does not delete those that are gone.",
			Fields:  bothContracts(field{Path: "spec.providerIDList", Type: "array"}),
		},
		{
			Name:    "ready",
			Section: "inframachinepool-initialization-completed",
			Text:    "An InfraMachinePool has status.ready, also in v1beta2 for core up to 1.14.",
			Why:     "MachinePools remain in the phase Provisioning.",
			Fields:  bothContracts(field{Path: "status.ready", Type: "boolean"}),
		},
		{
			Name:     "provisioned",
			Section:  "inframachinepool-initialization-completed",
			Strength: should,
			Text:     "An InfraMachinePool also has status.initialization.provisioned in v1beta2.",
			Why:      "A later version of Cluster API's core will not see when the infrastructure is complete.",
			Fields: map[string][]field{
				"v1beta2": {{Path: "status.initialization.provisioned", Type: "boolean"}},
			},
		},
		{
			Name:     "replicas",
			Section:  "inframachinepool-replicas",
			Strength: should,
			Text:     "An InfraMachinePool has status.replicas, an integer.",
			Why:      "MachinePools never report how many replicas they have.",
			Fields:   bothContracts(field{Path: "status.replicas", Type: "integer"}),
		},
		optionalFields(fieldsOf("string", "status.", "infrastructureMachineKind")),
	},
}

// provisioned returns the requirement for the field that reports that infrastructure is complete.
func provisioned(section, why string) requiredFields {
	return requiredFields{
		Name:    "provisioned",
		Section: section,
		Text:    "Infrastructure has status.ready in v1beta1, and status.initialization.provisioned in v1beta2.",
		Why:     why,
		Fields: map[string][]field{
			"v1beta1": {{Path: "status.ready", Type: "boolean"}},
			"v1beta2": {{Path: "status.initialization.provisioned", Type: "boolean"}},
		},
	}
}

// failureDomains adds the failure domains of an InfraCluster to a requirement. They are a map in
// v1beta1, and a list in v1beta2.
func failureDomains(r requiredFields) requiredFields {
	r.Fields = maps.Clone(r.Fields)
	for contract, typ := range map[string]string{"v1beta1": "object", "v1beta2": "array"} {
		r.Fields[contract] = append(optional(fieldsOf(typ, "status.", "failureDomains")), r.Fields[contract]...)
	}

	return r
}
