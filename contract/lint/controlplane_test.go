package lint_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/contract/lint"
)

// brokenControlPlanes break the rules about control planes.
var brokenControlPlanes = []brokenCase{
	{
		"control-plane/template",
		"none",
		controlPlaneProvider,
		replace("kind: ExampleControlPlaneTemplate", "kind: ExampleControlPlaneForm"),
		"ExampleControlPlaneTemplate",
	},
	{
		"control-plane/status-subresource",
		"none",
		controlPlaneProvider,
		replace("      status: {description: none}\n", ""),
		"version v1beta2 has no status subresource",
	},
	{
		"control-plane/scale",
		"none",
		controlPlaneProvider,
		replace(scaleSubresource, ""),
		"has replicas but no scale subresource",
	},
	{
		"control-plane/scale",
		"another path",
		controlPlaneProvider,
		replace("        specReplicasPath: .spec.replicas\n", "        specReplicasPath: .spec.size\n"),
		`specReplicasPath ".spec.size", expected .spec.replicas`,
	},
	{
		"control-plane/status-version",
		"v1beta2",
		controlPlaneProvider,
		replace("              versions: {type: array}\n", ""),
		"version v1beta2 lacks status.version (string)",
	},
	{
		"control-plane/status-version",
		"v1beta1",
		controlPlaneProvider,
		with(
			v1beta1,
			replace("              version: {type: string}\n              failureReason", "              failureReason"),
		),
		"version v1beta1 lacks status.version (string)",
	},
	{
		"control-plane/cni",
		"an image",
		controlPlaneProvider,
		replace(
			"      - name: manager\n",
			"      - name: cni\n        image: docker.io/calico/node:v3.30.0\n      - name: manager\n",
		),
		"Deployment example-controller runs docker.io/calico/node",
	},
	{
		"control-plane/cni",
		"kindnet",
		controlPlaneProvider,
		replace("registry.k8s.io/example/controller:v1.2.3", "docker.io/kindest/kindnetd:v1.2.3"),
		"runs docker.io/kindest/kindnetd, which is a CNI",
	},
	{
		"control-plane/cni",
		"Weave Net",
		controlPlaneProvider,
		replace("registry.k8s.io/example/controller:v1.2.3", "docker.io/weaveworks/weave-kube:2.8.1"),
		"runs docker.io/weaveworks/weave-kube, which is a CNI",
	},
	{
		"control-plane/initialized",
		"v1beta2",
		controlPlaneProvider,
		replace("controlPlaneInitialized", "initialized"),
		"lacks status.initialization.controlPlaneInitialized (boolean)",
	},
	{
		"control-plane/initialized",
		"v1beta1",
		controlPlaneProvider,
		with(v1beta1, replace("              initialized: {type: boolean}\n", "")),
		"lacks status.initialized (boolean)",
	},
	{
		"control-plane/ready",
		"v1beta1",
		controlPlaneProvider,
		with(v1beta1, replace("              ready: {type: boolean}\n", "")),
		"lacks status.ready (boolean)",
	},
	{
		"control-plane/replicas",
		"text",
		controlPlaneProvider,
		replace(
			"              replicas: {type: integer, minimum: 0}\n              version",
			"              replicas: {type: string}\n              version",
		),
		`lacks spec.replicas of type integer (it has type "string")`,
	},
	{
		"control-plane/replica-counters",
		"v1beta2",
		controlPlaneProvider,
		replace("upToDateReplicas", "updatedReplicas1", "availableReplicas", "unavailableReplicas1"),
		"lacks status.upToDateReplicas (integer), status.availableReplicas (integer)",
	},
	{
		"control-plane/replica-counters",
		"v1beta1",
		controlPlaneProvider,
		with(v1beta1, replace("              updatedReplicas: {type: integer}\n", "")),
		"lacks status.updatedReplicas (integer)",
	},
	{
		"control-plane/selector",
		"none",
		controlPlaneProvider,
		replace("              selector: {type: string, minLength: 1}\n", ""),
		"lacks status.selector (string)",
	},
	{
		"control-plane/version",
		"a number",
		controlPlaneProvider,
		replace("version: {type: string, minLength: 1}", "version: {type: number}"),
		"lacks spec.version of type string",
	},
	{
		"control-plane/machine-template",
		"the place of v1beta1",
		controlPlaneProvider,
		replace("infrastructureRef: {properties: {apiGroup", "infrastructureRef1: {properties: {apiGroup"),
		"lacks spec.machineTemplate.spec.infrastructureRef.apiGroup (string)",
	},
	{
		"control-plane/machine-template",
		"v1beta1",
		controlPlaneProvider,
		with(v1beta1, replace("infrastructureRef: {properties: {apiVersion", "infrastructureRef1: {properties: {apiVersion")),
		"lacks spec.machineTemplate.infrastructureRef.apiVersion (string)",
	},
	{
		"control-plane/machine-template",
		"infrastructure in another place",
		controlPlaneProvider,
		replace(
			"              machineTemplate:\n                type: object\n                properties:\n",
			"              infrastructureTemplate:\n                type: object\n                properties:\n"+
				"                  kind: {type: string}\n",
		),
		"lacks spec.machineTemplate.spec.infrastructureRef.apiGroup (string)",
	},
	{
		"control-plane/optional-fields",
		"a machineTemplate that is no object",
		controlPlaneProvider,
		replace(
			"              machineTemplate:\n                type: object\n",
			"              machineTemplate:\n                type: string\n",
		),
		`lacks spec.machineTemplate of type object (it has type "string")`,
	},
	{
		"control-plane/initialized",
		"of the older contract that its label promises",
		controlPlaneProvider,
		replace(
			"    cluster.x-k8s.io/v1beta2: v1beta2\n", "",
			"              initialized: {type: boolean}\n", "",
		),
		"version v1beta1, which implements contract v1beta1, lacks status.initialized (boolean)",
	},
	{
		"control-plane/machine-metadata",
		"no annotations",
		controlPlaneProvider,
		replace("                      annotations: {type: object, additionalProperties: {type: string}}\n", ""),
		"lacks spec.machineTemplate.metadata.annotations (map of strings)",
	},
	{
		"control-plane/machine-metadata",
		"labels that are dropped",
		controlPlaneProvider,
		replace(
			"                      labels: {type: object, additionalProperties: {type: string}}\n",
			"                      labels: {type: object}\n",
		),
		"lacks spec.machineTemplate.metadata.labels as a map of strings (it has no additionalProperties, so the API " +
			"server drops its content)",
	},
	{
		"control-plane/machine-metadata",
		"labels that are numbers",
		controlPlaneProvider,
		replace(
			"                      labels: {type: object, additionalProperties: {type: string}}\n",
			"                      labels: {type: object, additionalProperties: {type: integer}}\n",
		),
		`lacks spec.machineTemplate.metadata.labels as a map of strings (its values have type "integer")`,
	},
	{
		"control-plane/machine-timeouts",
		"v1beta2",
		controlPlaneProvider,
		replace("                          nodeDeletionTimeoutSeconds: {type: integer}\n", ""),
		"lacks spec.machineTemplate.spec.deletion.nodeDeletionTimeoutSeconds (integer)",
	},
	{
		"control-plane/machine-timeouts",
		"v1beta1",
		controlPlaneProvider,
		with(v1beta1, replace("nodeDrainTimeout: {type: string}", "nodeDrainTimeout: {type: integer}")),
		"lacks spec.machineTemplate.nodeDrainTimeout of type string",
	},
	{
		"control-plane/optional-fields",
		"v1beta2",
		controlPlaneProvider,
		replace("versions: {type: array}", "versions: {type: string}\n              version: {type: string}"),
		"lacks status.versions of type array",
	},
	{
		"control-plane/optional-fields",
		"v1beta1",
		controlPlaneProvider,
		with(v1beta1, replace("failureReason: {type: string}", "failureReason: {type: object}")),
		"lacks status.failureReason of type string",
	},
}

// TestWithoutTemplate: only ClusterClasses set the fields of Machines, and they cannot use a control plane without a
// template.
func TestWithoutTemplate(t *testing.T) {
	g := NewWithT(t)
	b := controlPlaneProvider()
	replace(
		"kind: ExampleControlPlaneTemplate", "kind: ExampleForm",
		"                  spec:\n                    properties:\n                      infrastructureRef:",
		"                  other:\n                    properties:\n                      infrastructureRef:",
	)(t, b)

	found := lint.Bundle(b, nil)
	g.Expect(found).To(HaveLen(1))
	g.Expect(found[0].Rule).To(Equal("control-plane/template"))
}
