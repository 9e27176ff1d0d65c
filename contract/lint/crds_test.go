package lint_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/contract/lint"
)

// brokenCRDs break the rules about CRDs.
var brokenCRDs = []brokenCase{
	{
		"crd/name",
		"singular",
		controlPlaneProvider,
		replace("name: examplecontrolplanes.", "name: examplecontrolplane."),
		"must be named examplecontrolplanes.controlplane.cluster.x-k8s.io",
	},
	{
		"crd/scope",
		"cluster",
		controlPlaneProvider,
		replace(
			"plural: examplecontrolplanes}\n  scope: Namespaced", "plural: examplecontrolplanes}\n  scope: Cluster",
			"cluster.x-k8s.io/v1beta2: v1beta2\n",
			"cluster.x-k8s.io/v1beta2: v1beta2\n    clusterctl.cluster.x-k8s.io/move: \"\"\n",
		),
		"has the scope Cluster",
	},
	{
		"crd/contract-label",
		"none",
		controlPlaneProvider,
		replace("    cluster.x-k8s.io/v1beta1: v1alpha1_v1beta1\n    cluster.x-k8s.io/v1beta2: v1beta2\n", ""),
		"has no label cluster.x-k8s.io/v1beta2",
	},
	{
		"crd/contract-label",
		"a version that is not there",
		controlPlaneProvider,
		replace("cluster.x-k8s.io/v1beta2: v1beta2\n", "cluster.x-k8s.io/v1beta2: v1beta2_v1\n"),
		"that v1 implements the contract, but has no such version",
	},
	{
		"crd/contract-label",
		"a version that is not served",
		controlPlaneProvider,
		replace("cluster.x-k8s.io/v1beta2: v1beta2\n", "cluster.x-k8s.io/v1beta2: v1alpha1\n"),
		"but does not serve it",
	},
	{
		"crd/contract-label-outdated",
		"that of the compatible contract",
		controlPlaneProvider,
		replace("    cluster.x-k8s.io/v1beta2: v1beta2\n", ""),
		"has the label cluster.x-k8s.io/v1beta1, but not cluster.x-k8s.io/v1beta2",
	},
	{
		"crd/contract-kind",
		"an unknown suffix in a group of the provider's own",
		controlPlaneProvider,
		replace(
			"group: controlplane.cluster.x-k8s.io", "group: controlplane.example.com",
			"kind: ExampleControlPlaneTemplate", "kind: ExampleForm",
			"ExampleControlPlane", "ExampleBrain",
		),
		"is no kind of a contract, and neither is that of any other CRD",
	},
	{
		"crd/template-spec",
		"none",
		controlPlaneProvider,
		replace("template: {properties: {spec: {type: object}}}", "template: {properties: {replicas: {type: integer}}}"),
		"version v1beta1 lacks spec.template.spec (object)",
	},
	{
		"crd/contract-label-versions",
		"of an old contract",
		controlPlaneProvider,
		replace("v1alpha1_v1beta1", "v1alpha0_v1beta1"),
		"v1beta1 that v1alpha0 implements",
	},
	{
		"crd/core-access",
		"another group",
		controlPlaneProvider,
		replace(
			"group: controlplane.cluster.x-k8s.io", "group: controlplane.example.com",
			"s.controlplane.cluster.x-k8s.io", "s.controlplane.example.com",
			"[examplecontrolplanes, ", "[",
		),
		"belongs to the group controlplane.example.com",
	},
	{
		"crd/core-access",
		"a control plane without a template",
		controlPlaneProvider,
		with(ownGroup, replace("kind: ExampleControlPlaneTemplate", "kind: ExampleForm", "[examplecontrolplanes, ", "[")),
		"belongs to the group controlplane.example.com, but no aggregated ClusterRole",
	},
	{
		"crd/core-access",
		"one verb",
		controlPlaneProvider,
		with(ownGroup, replace(
			"resources: [examplecontrolplanes, examplecontrolplanetemplates]", "resources: [examplecontrolplanes]",
			`verbs: ["*"]`, "verbs: [get, list, watch]\n"+
				"- apiGroups: [\"*\"]\n  resources: [examplecontrolplanetemplates]\n  verbs: [get, list, watch, patch, update]",
		)),
		"do not grant the core controllers create, delete, patch, update on examplecontrolplanes",
	},
	{
		"crd/name",
		"a control plane of a group of its own without a template",
		controlPlaneProvider,
		with(ownGroup, replace(
			"kind: ExampleControlPlaneTemplate", "kind: ExampleForm",
			"name: examplecontrolplanes.", "name: examplecontrolplane.",
		)),
		"must be named examplecontrolplanes.controlplane.example.com",
	},
	{
		"crd/contract-label",
		"a control plane of a group of its own, without a template and any label",
		controlPlaneProvider,
		with(ownGroup, replace(
			"kind: ExampleControlPlaneTemplate", "kind: ExampleForm",
			"    cluster.x-k8s.io/v1beta1: v1alpha1_v1beta1\n    cluster.x-k8s.io/v1beta2: v1beta2\n", "",
		)),
		"has no label cluster.x-k8s.io/v1beta2",
	},
	{
		"crd/ca-bundle",
		"the placeholder of kubebuilder",
		controlPlaneProvider,
		replace(
			"        service: {name: example-webhook, namespace: example-system}\n  versions",
			"        service: {name: example-webhook, namespace: example-system}\n        caBundle: Cg==\n  versions",
		),
		"examplecontrolplanes.controlplane.cluster.x-k8s.io has a caBundle that is not a certificate",
	},
	{
		"crd/move-hierarchy",
		"no label",
		controlPlaneProvider,
		replace("    clusterctl.cluster.x-k8s.io/move-hierarchy: \"\"\n", ""),
		"exampleidentities.controlplane.cluster.x-k8s.io is cluster-scoped",
	},
}

// ownGroup moves the kinds to an API group of the provider's own.
var ownGroup = replace(
	"group: controlplane.cluster.x-k8s.io", "group: controlplane.example.com",
	"s.controlplane.cluster.x-k8s.io", "s.controlplane.example.com",
)

// TestMoveHierarchyOfCore: the cluster-scoped objects of core, as ExtensionConfigs, belong to a management cluster.
func TestMoveHierarchyOfCore(t *testing.T) {
	g := NewWithT(t)
	b := controlPlaneProvider()
	replace("    clusterctl.cluster.x-k8s.io/move-hierarchy: \"\"\n", "")(t, b)
	g.Expect(findingsOf("crd/move-hierarchy", lint.Bundle(b, nil))).To(HaveLen(1))

	b.Provider.Type = "CoreProvider"
	g.Expect(findingsOf("crd/move-hierarchy", lint.Bundle(b, nil))).To(BeEmpty())
}
