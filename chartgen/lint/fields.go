package lint

import "strings"

// field is a field of a control plane that a contract asks for, by its path and type in the CRD's
// schema.
type field struct {
	path, kind string
	// optional fields may be missing, but not of another type.
	optional bool
}

// fieldRules are the fields of a control plane, by contract; their source is
// internal/contract/controlplane.go of Cluster API.
var fieldRules = []Rule{
	fieldRule(Rule{
		Name:        "control-plane/initialized",
		Level:       Error,
		Requirement: "002-15",
		Contract:    controlPlaneContract + "#controlplane-initialization-completed",
		Demand:      "A control plane reports that it has been initialized: status.initialized with v1beta1, status.initialization.controlPlaneInitialized with v1beta2.",
		Why:         "Clusters stay in provisioning, and no worker joins.",
	}, controlPlane.always, map[string][]field{
		"v1beta1": {{path: "status.initialized", kind: "boolean"}},
		"v1beta2": {{path: "status.initialization.controlPlaneInitialized", kind: "boolean"}},
	}),
	fieldRule(Rule{
		Name:        "control-plane/ready",
		Level:       Error,
		Requirement: "002-16",
		Contract:    controlPlaneContract + "#controlplane-initialization-completed",
		Demand:      "A control plane of contract v1beta1 has status.ready.",
		Why:         "Clusters never report that their control plane is ready.",
	}, controlPlane.always, map[string][]field{
		"v1beta1": {{path: "status.ready", kind: "boolean"}},
	}),
	fieldRule(Rule{
		Name:        "control-plane/replicas",
		Level:       Error,
		Requirement: "002-03",
		Contract:    controlPlaneContract + "#controlplane-replicas",
		Demand:      "A control plane with replicas has spec.replicas, an integer.",
		Why:         "Cluster API cannot scale it, nor know whether it is being scaled.",
	}, controlPlane.usesReplicas, both(field{path: "spec.replicas", kind: "integer"})),
	fieldRule(Rule{
		Name:        "control-plane/replica-counters",
		Level:       Error,
		Requirement: "002-17",
		Contract:    controlPlaneContract + "#controlplane-replicas",
		Demand:      "A control plane with replicas counts them: status.replicas, readyReplicas and with v1beta1 updatedReplicas, unavailableReplicas, with v1beta2 upToDateReplicas, availableReplicas.",
		Why:         "Cluster API takes the control plane for one that is being scaled, and waits.",
	}, controlPlane.usesReplicas, map[string][]field{
		"v1beta1": fieldsOf("integer", "status.", "replicas", "readyReplicas", "updatedReplicas", "unavailableReplicas"),
		"v1beta2": fieldsOf("integer", "status.", "replicas", "readyReplicas", "upToDateReplicas", "availableReplicas"),
	}),
	fieldRule(Rule{
		Name:        "control-plane/selector",
		Level:       Error,
		Requirement: "002-18",
		Contract:    controlPlaneContract + "#controlplane-replicas",
		Demand:      "A control plane with replicas has status.selector, a string.",
		Why:         "The scale subresource and tools that use it do not find the Machines.",
	}, controlPlane.usesReplicas, both(field{path: "status.selector", kind: "string"})),
	fieldRule(Rule{
		Name:        "control-plane/version",
		Level:       Error,
		Requirement: "002-06",
		Contract:    controlPlaneContract + "#controlplane-version",
		Demand:      "spec.version of a control plane is a string.",
		Why:         "Cluster API cannot set the Kubernetes version.",
	}, controlPlane.usesVersion, both(field{path: "spec.version", kind: "string"})),
	fieldRule(Rule{
		Name:        "control-plane/machine-template",
		Level:       Error,
		Requirement: "002-10",
		Contract:    controlPlaneContract + "#controlplane-machines",
		Demand:      "A control plane of Machines refers to their infrastructure: by spec.machineTemplate.infrastructureRef with v1beta1, by spec.machineTemplate.spec.infrastructureRef with v1beta2.",
		Why:         "A ClusterClass sets a field that is not there, and so the Machines have no infrastructure.",
	}, controlPlane.usesMachines, map[string][]field{
		"v1beta1": fieldsOf("string", "spec.machineTemplate.infrastructureRef.", "apiVersion", "kind", "name"),
		"v1beta2": fieldsOf("string", "spec.machineTemplate.spec.infrastructureRef.", "apiGroup", "kind", "name"),
	}),
	fieldRule(Rule{
		Name:        "control-plane/machine-metadata",
		Level:       Error,
		Requirement: "002-09",
		Contract:    controlPlaneContract + "#controlplane-machines",
		Demand:      "A control plane of Machines takes their labels and annotations: spec.machineTemplate.metadata.",
		Why:         "Labels and annotations of a Cluster's topology get lost.",
	}, controlPlane.usesMachines, both(
		field{path: "spec.machineTemplate.metadata.labels", kind: "object"},
		field{path: "spec.machineTemplate.metadata.annotations", kind: "object"},
	)),
	fieldRule(Rule{
		Name:        "control-plane/machine-timeouts",
		Level:       Warning,
		Requirement: "002-12",
		Contract:    controlPlaneContract + "#controlplane-machines",
		Demand:      "A control plane of Machines takes the time limits of their deletion: durations in spec.machineTemplate with v1beta1, seconds in spec.machineTemplate.spec.deletion with v1beta2.",
		Why:         "The limits that a Cluster's topology sets have no effect.",
	}, controlPlane.usesMachines, map[string][]field{
		"v1beta1": fieldsOf(
			"string",
			"spec.machineTemplate.",
			"nodeDrainTimeout",
			"nodeVolumeDetachTimeout",
			"nodeDeletionTimeout",
		),
		"v1beta2": fieldsOf(
			"integer",
			"spec.machineTemplate.spec.deletion.",
			"nodeDrainTimeoutSeconds",
			"nodeVolumeDetachTimeoutSeconds",
			"nodeDeletionTimeoutSeconds",
		),
	}),
	fieldRule(Rule{
		Name: "control-plane/optional-fields", Level: Error, Requirement: "002-20", Contract: controlPlaneContract,
		Demand: "Optional fields of the contract have the contract's types.",
		Why:    "Cluster API fails to read the control plane.",
	}, controlPlane.always, both(
		field{"spec.controlPlaneEndpoint.host", "string", true}, field{"spec.controlPlaneEndpoint.port", "integer", true},
		field{"status.failureReason", "string", true}, field{"status.failureMessage", "string", true},
		field{"status.externalManagedControlPlane", "boolean", true}, field{"status.conditions", "array", true},
		field{"status.versions", "array", true},
	)),
}

// fieldRule completes a rule that asks the control planes to which it applies for fields.
func fieldRule(rule Rule, applies func(controlPlane) bool, fields map[string][]field) Rule {
	rule.Remedy = "Give the API's Go type the field, and generate the CRD anew."
	rule.check = eachControlPlane(func(v controlPlane, report reporter) {
		var problems []string

		for _, f := range fields[v.contract] {
			if problem := v.problem(f); problem != "" && applies(v) {
				problems = append(problems, problem)
			}
		}

		if problems != nil {
			report(v.place, "version %s, of contract %s, lacks %s", v.name, v.contract, strings.Join(problems, ", "))
		}
	})

	return rule
}

// both asks for the same fields in v1beta1 and v1beta2.
func both(fields ...field) map[string][]field {
	return map[string][]field{"v1beta1": fields, "v1beta2": fields}
}

// fieldsOf asks for fields of one type under one prefix.
func fieldsOf(kind, prefix string, names ...string) []field {
	fields := make([]field, 0, len(names))
	for _, name := range names {
		fields = append(fields, field{path: prefix + name, kind: kind})
	}

	return fields
}
