package lint

import (
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/contract"
)

// controlPlane is the resource that runs the control plane of a Cluster. Its fields follow
// internal/contract/controlplane.go of Cluster API.
var controlPlane = &resource{
	Name:       "ControlPlane",
	Area:       "control-plane",
	Page:       contract.Pages + "control-plane",
	Definition: "controlplane-controlplanelist-resource-definition",
	suffix:     "ControlPlane",
	group:      "controlplane.cluster.x-k8s.io",
	provider:   v1alpha2.ControlPlaneProviderType,
	Template: &resourceTemplate{
		Section:  "controlplanetemplate-controlplanetemplatelist-resource-definition",
		Strength: should,
		Why:      "No ClusterClass can use the control plane.",
		Verbs:    templateVerbs,
	},
	Requirements: []requiredFields{
		{
			Name:    "initialized",
			Section: "controlplane-initialization-completed",
			Text: "A control plane has status.initialized in v1beta1, and " +
				"status.initialization.controlPlaneInitialized in v1beta2.",
			Why: "Clusters remain in the phase Provisioning, and no worker joins.",
			Fields: map[string][]field{
				"v1beta1": {{Path: "status.initialized", Type: "boolean"}},
				"v1beta2": {{Path: "status.initialization.controlPlaneInitialized", Type: "boolean"}},
			},
		},
		{
			Name:     "ready",
			Section:  "controlplane-initialization-completed",
			Strength: should,
			Text:     "A control plane has status.ready in v1beta1.",
			Why:      "In versions of Cluster API with that contract, Clusters never report that their control plane is ready.",
			Fields:   map[string][]field{"v1beta1": {{Path: "status.ready", Type: "boolean"}}},
		},
		{
			Name:    "replicas",
			Section: "controlplane-replicas",
			Text:    "A control plane with replicas has spec.replicas, an integer.",
			Why:     "A Cluster's topology cannot set the number of replicas: the API server rejects the control plane.",
			Fields:  bothContracts(field{Path: "spec.replicas", Type: "integer"}),
			applies: both((*crdVersion).HasTemplate, (*crdVersion).HasReplicas),
		},
		{
			Name:     "replica-counters",
			Section:  "controlplane-replicas",
			Strength: should,
			Text:     "A control plane with replicas counts them in the fields of its contract, such as status.readyReplicas.",
			Why:      "The status of a Cluster does not show the numbers of control plane replicas.",
			Fields: map[string][]field{
				"v1beta1": fieldsOf("integer", "status.", "replicas", "readyReplicas", "updatedReplicas", "unavailableReplicas"),
				"v1beta2": fieldsOf("integer", "status.", "replicas", "readyReplicas", "upToDateReplicas", "availableReplicas"),
			},
			applies: (*crdVersion).HasReplicas,
		},
		{
			Name:     "selector",
			Section:  "controlplane-replicas",
			Strength: should,
			Text:     "A control plane with replicas has status.selector, a string.",
			Why:      "The scale subresource, and tools that use it, cannot find the Machines.",
			Fields:   bothContracts(field{Path: "status.selector", Type: "string"}),
			applies:  (*crdVersion).HasReplicas,
		},
		{
			Name:    "version",
			Section: "controlplane-version",
			Text:    "A control plane's spec.version is a string.",
			Why:     "Cluster API can neither read nor set the Kubernetes version.",
			Fields:  bothContracts(field{Path: "spec.version", Type: "string", Optional: true}),
		},
		{
			Name:    "machine-template",
			Section: "controlplane-machines",
			Text: "A control plane with Machines has spec.machineTemplate.infrastructureRef in v1beta1, and " +
				"spec.machineTemplate.spec.infrastructureRef in v1beta2.",
			Why: "A ClusterClass sets the field, so the API server rejects the control plane.",
			Fields: map[string][]field{
				"v1beta1": fieldsOf("string", "spec.machineTemplate.infrastructureRef.", "apiVersion", "kind", "name"),
				"v1beta2": fieldsOf("string", "spec.machineTemplate.spec.infrastructureRef.", "apiGroup", "kind", "name"),
			},
			applies: both((*crdVersion).HasTemplate, (*crdVersion).HasMachines),
		},
		{
			Name:    "machine-metadata",
			Section: "controlplane-machines",
			Text:    "A control plane with Machines has their labels and annotations in spec.machineTemplate.metadata.",
			Why:     "A ClusterClass sets labels there, so the API server rejects the control plane, or drops them.",
			Fields:  bothContracts(fieldsOf(mapOfStrings, "spec.machineTemplate.metadata.", "labels", "annotations")...),
			applies: both((*crdVersion).HasTemplate, (*crdVersion).HasMachines),
		},
		{
			Name:     "machine-timeouts",
			Section:  "controlplane-machines",
			Strength: should,
			Text:     "A control plane with Machines has the timeouts of their deletion in the fields of its contract.",
			Why:      "If a Cluster's topology or its ClusterClass has a timeout, the API server rejects the control plane.",
			Fields: map[string][]field{
				"v1beta1": fieldsOf("string", "spec.machineTemplate.",
					"nodeDrainTimeout", "nodeVolumeDetachTimeout", "nodeDeletionTimeout"),
				"v1beta2": fieldsOf("integer", "spec.machineTemplate.spec.deletion.",
					"nodeDrainTimeoutSeconds", "nodeVolumeDetachTimeoutSeconds", "nodeDeletionTimeoutSeconds"),
			},
			applies: both((*crdVersion).HasTemplate, (*crdVersion).HasMachines),
		},
		optionalFields(
			endpointFields,
			fieldsOf("object", "spec.", "machineTemplate"),
			fieldsOf("array", "status.", "versions"),
		),
	},
}

// both returns a condition that combines two others.
func both(a, b func(*crdVersion) bool) func(*crdVersion) bool {
	return func(v *crdVersion) bool { return a(v) && b(v) }
}

// HasTemplate reports whether ClusterClasses can use the kind, because it has a template.
func (v *crdVersion) HasTemplate() bool { return v.hasTemplate }

// HasReplicas reports whether a control plane has replicas.
func (v *crdVersion) HasReplicas() bool {
	return v.Has("spec.replicas") || v.Has("status.replicas") || v.Subresource("scale") != nil
}

// HasMachines reports whether a control plane consists of Machines: it has fields for them, in the place
// of the contract or in another one such as spec.infrastructureTemplate. Managed control planes keep an
// empty machineTemplate for old versions of Cluster API that required it.
func (v *crdVersion) HasMachines() bool {
	template, _ := v.Property("spec.machineTemplate")
	if len(bundle.NestedMap(template, "properties")) > 0 {
		return true
	}

	spec, _ := v.Property("spec")
	for name := range bundle.NestedMap(spec, "properties") {
		if strings.HasPrefix(name, "infrastructure") && v.Has("spec."+name+".kind") {
			return true
		}
	}

	return false
}
