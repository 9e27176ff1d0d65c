package lint

import "strings"

// field is a field that a contract requires of a control plane.
type field struct {
	path     string
	kind     string // the type in the CRD's schema
	optional bool   // may be missing, but must not have another type
}

// fieldRules are the rules about the fields of a control plane, by contract. They follow
// internal/contract/controlplane.go of Cluster API.
var fieldRules = []Rule{
	fieldRule(Rule{
		Name:     "control-plane/initialized",
		Level:    Error,
		Contract: controlPlaneContract + "#controlplane-initialization-completed",
		Requirement: "A control plane reports that it has been initialized, with status.initialized in v1beta1, and " +
			"status.initialization.controlPlaneInitialized in v1beta2.",
		Why: "Clusters remain in the phase Provisioning, and no worker joins.",
	}, controlPlane.always, map[string][]field{
		"v1beta1": {{path: "status.initialized", kind: "boolean"}},
		"v1beta2": {{path: "status.initialization.controlPlaneInitialized", kind: "boolean"}},
	}),
	fieldRule(Rule{
		Name:        "control-plane/ready",
		Level:       Error,
		Contract:    controlPlaneContract + "#controlplane-initialization-completed",
		Requirement: "A control plane has status.ready in v1beta1.",
		Why:         "Clusters never report that their control plane is ready.",
	}, controlPlane.always, map[string][]field{
		"v1beta1": {{path: "status.ready", kind: "boolean"}},
	}),
	fieldRule(Rule{
		Name:        "control-plane/replicas",
		Level:       Error,
		Contract:    controlPlaneContract + "#controlplane-replicas",
		Requirement: "A control plane with replicas has spec.replicas, an integer.",
		Why:         "Cluster API cannot scale the control plane, and cannot detect that it is being scaled.",
	}, controlPlane.usesReplicas, both(field{path: "spec.replicas", kind: "integer"})),
	fieldRule(Rule{
		Name:     "control-plane/replica-counters",
		Level:    Error,
		Contract: controlPlaneContract + "#controlplane-replicas",
		Requirement: "A control plane with replicas counts them in status.replicas and status.readyReplicas, in v1beta1 " +
			"also in updatedReplicas and unavailableReplicas, and in v1beta2 in upToDateReplicas and availableReplicas.",
		Why: "Cluster API assumes that the control plane is being scaled, and waits.",
	}, controlPlane.usesReplicas, map[string][]field{
		"v1beta1": fieldsOf("integer", "status.", "replicas", "readyReplicas", "updatedReplicas", "unavailableReplicas"),
		"v1beta2": fieldsOf("integer", "status.", "replicas", "readyReplicas", "upToDateReplicas", "availableReplicas"),
	}),
	fieldRule(Rule{
		Name:        "control-plane/selector",
		Level:       Error,
		Contract:    controlPlaneContract + "#controlplane-replicas",
		Requirement: "A control plane with replicas has status.selector, a string.",
		Why:         "The scale subresource, and tools that use it, cannot find the Machines.",
	}, controlPlane.usesReplicas, both(field{path: "status.selector", kind: "string"})),
	fieldRule(Rule{
		Name:        "control-plane/version",
		Level:       Error,
		Contract:    controlPlaneContract + "#controlplane-version",
		Requirement: "The field spec.version of a control plane is a string.",
		Why:         "Cluster API cannot set the Kubernetes version.",
	}, controlPlane.usesVersion, both(field{path: "spec.version", kind: "string"})),
	fieldRule(Rule{
		Name:     "control-plane/machine-template",
		Level:    Error,
		Contract: controlPlaneContract + "#controlplane-machines",
		Requirement: "A control plane with Machines refers to their infrastructure, with " +
			"spec.machineTemplate.infrastructureRef in v1beta1, and spec.machineTemplate.spec.infrastructureRef in v1beta2.",
		Why: "A ClusterClass sets a field that does not exist, so the Machines have no infrastructure.",
	}, controlPlane.usesMachines, map[string][]field{
		"v1beta1": fieldsOf("string", "spec.machineTemplate.infrastructureRef.", "apiVersion", "kind", "name"),
		"v1beta2": fieldsOf("string", "spec.machineTemplate.spec.infrastructureRef.", "apiGroup", "kind", "name"),
	}),
	fieldRule(Rule{
		Name:        "control-plane/machine-metadata",
		Level:       Error,
		Contract:    controlPlaneContract + "#controlplane-machines",
		Requirement: "A control plane with Machines has their labels and annotations in spec.machineTemplate.metadata.",
		Why:         "The labels and annotations of a Cluster's topology are lost.",
	}, controlPlane.usesMachines, both(
		field{path: "spec.machineTemplate.metadata.labels", kind: "object"},
		field{path: "spec.machineTemplate.metadata.annotations", kind: "object"},
	)),
	fieldRule(Rule{
		Name:     "control-plane/machine-timeouts",
		Level:    Warning,
		Contract: controlPlaneContract + "#controlplane-machines",
		Requirement: "A control plane with Machines has the timeouts for deleting them, as durations in " +
			"spec.machineTemplate in v1beta1, and as seconds in spec.machineTemplate.spec.deletion in v1beta2.",
		Why: "The timeouts of a Cluster's topology have no effect.",
	}, controlPlane.usesMachines, map[string][]field{
		"v1beta1": fieldsOf("string", "spec.machineTemplate.",
			"nodeDrainTimeout", "nodeVolumeDetachTimeout", "nodeDeletionTimeout"),
		"v1beta2": fieldsOf("integer", "spec.machineTemplate.spec.deletion.",
			"nodeDrainTimeoutSeconds", "nodeVolumeDetachTimeoutSeconds", "nodeDeletionTimeoutSeconds"),
	}),
	fieldRule(Rule{
		Name:        "control-plane/optional-fields",
		Level:       Error,
		Contract:    controlPlaneContract,
		Requirement: "Optional fields of the contract have the types of the contract.",
		Why:         "Cluster API cannot read the control plane.",
	}, controlPlane.always, both(
		field{path: "spec.controlPlaneEndpoint.host", kind: "string", optional: true},
		field{path: "spec.controlPlaneEndpoint.port", kind: "integer", optional: true},
		field{path: "status.failureReason", kind: "string", optional: true},
		field{path: "status.failureMessage", kind: "string", optional: true},
		field{path: "status.externalManagedControlPlane", kind: "boolean", optional: true},
		field{path: "status.conditions", kind: "array", optional: true},
		field{path: "status.versions", kind: "array", optional: true},
	)),
}

// fieldRule completes a rule that requires fields, by contract, of the control planes to which it
// applies.
func fieldRule(rule Rule, applies func(controlPlane) bool, fields map[string][]field) Rule {
	rule.Remedy = "Add the field to the Go type of the API, and regenerate the CRD."
	rule.check = eachControlPlane(func(v controlPlane, report reporter) {
		if !applies(v) {
			return
		}

		var problems []string

		for _, f := range fields[v.contract] {
			if problem := v.problem(f); problem != "" {
				problems = append(problems, problem)
			}
		}

		if problems != nil {
			report(v.location, "version %s, which implements contract %s, lacks %s",
				v.name, v.contract, strings.Join(problems, ", "))
		}
	})

	return rule
}

// both requires the same fields in v1beta1 and v1beta2.
func both(fields ...field) map[string][]field {
	return map[string][]field{"v1beta1": fields, "v1beta2": fields}
}

// fieldsOf returns fields of one type with a common prefix.
func fieldsOf(kind, prefix string, names ...string) []field {
	fields := make([]field, 0, len(names))
	for _, name := range names {
		fields = append(fields, field{path: prefix + name, kind: kind})
	}

	return fields
}
