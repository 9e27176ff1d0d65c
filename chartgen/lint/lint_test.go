package lint_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/lint"
)

// brokenCases break one rule each, of a release that keeps all.
var brokenCases = []struct {
	rule    string
	name    string
	release func() *bundle.Bundle
	edit    edit
	// at is part of the line to which the finding points; "" for no certain line.
	at string
	// message is part of what the finding says, its object included.
	message string
}{
	{
		"provider/name",
		"upper case",
		controlPlaneProvider,
		func(_ *testing.T, b *bundle.Bundle) { b.Provider.Name = "Example" },
		"",
		`"Example"`,
	},
	{
		"provider/name",
		"64 characters",
		controlPlaneProvider,
		func(_ *testing.T, b *bundle.Bundle) { b.Provider.Name = strings.Repeat("a", 64) },
		"",
		"is not a provider's name",
	},
	{
		"provider/version",
		"two numbers",
		controlPlaneProvider,
		func(_ *testing.T, b *bundle.Bundle) { b.Version = "v1.2" },
		"",
		`"v1.2"`,
	},
	{
		"files/required",
		"no components",
		controlPlaneProvider,
		func(_ *testing.T, b *bundle.Bundle) { b.Components = nil },
		"",
		"is missing",
	},
	{
		"files/required",
		"no metadata",
		controlPlaneProvider,
		func(_ *testing.T, b *bundle.Bundle) { b.Metadata = nil },
		"",
		"is missing",
	},
	{
		"files/templates",
		"none",
		infrastructureProvider,
		func(_ *testing.T, b *bundle.Bundle) { b.Templates = nil },
		"",
		"is not published",
	},
	{
		"files/names",
		"a template without a hyphen",
		infrastructureProvider,
		func(_ *testing.T, b *bundle.Bundle) { b.Templates[0].Name = "cluster-template_dev.yaml" },
		"",
		"is neither",
	},
	{
		"metadata/valid",
		"not YAML",
		controlPlaneProvider,
		replaceMetadata("kind: Metadata", "kind: [Metadata"),
		"",
		"not valid YAML",
	},
	{
		"metadata/valid",
		"no apiVersion",
		controlPlaneProvider,
		replaceMetadata("apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\n", ""),
		"",
		`apiVersion ""`,
	},
	{
		"metadata/valid",
		"a contract that cannot be",
		controlPlaneProvider,
		replaceMetadata("v1beta2", "v1-beta2"),
		"",
		`"v1-beta2"`,
	},
	{"metadata/kind", "no kind", controlPlaneProvider, replaceMetadata("kind: Metadata\n", ""), "", "has no kind"},
	{
		"metadata/series",
		"another series",
		controlPlaneProvider,
		replaceMetadata("minor: 2", "minor: 1"),
		"",
		"does not list the series 1.2",
	},
	{
		"metadata/series",
		"a series twice",
		controlPlaneProvider,
		replaceMetadata("releaseSeries:\n", "releaseSeries:\n- {major: 1, minor: 2, contract: v1beta1}\n"),
		"",
		"1.2 twice",
	},

	{
		"components/valid",
		"an expression that cannot be",
		controlPlaneProvider,
		replace("${EXAMPLE_VERBOSITY:=2}", "${EXAMPLE$FOO}"),
		"--v=",
		"expression ${EXAMPLE$FOO}",
	},
	{
		"components/valid",
		"two Namespaces",
		controlPlaneProvider,
		replace("kind: ServiceAccount\n", "kind: Namespace\n"),
		"apiVersion: v1",
		"a second Namespace",
	},
	{
		"components/duplicate-object",
		"one object twice",
		controlPlaneProvider,
		replace("kind: Issuer\n", "kind: Certificate\n", "name: example-cert\n", "name: example-issuer\n"),
		"apiVersion: cert-manager.io/v1",
		"Certificate example-issuer is there already",
	},
	{
		"components/namespace",
		"no Namespace",
		controlPlaneProvider,
		replace("kind: Namespace\n", "kind: ConfigMap\n"),
		"",
		"holds no Namespace",
	},
	{
		"components/target-namespace",
		"kube-system",
		controlPlaneProvider,
		replace("example-viewer\n  namespace: example-system", "example-viewer\n  namespace: kube-system"),
		"namespace: kube-system",
		"RoleBinding example-viewer is in namespace kube-system, the provider's is example-system",
	},
	{
		"components/manager",
		"another name",
		controlPlaneProvider,
		replace("- name: manager", "- name: controller"),
		"apiVersion: apps/v1",
		"Deployment example-controller has no container called manager",
	},
	{
		"components/manager",
		"a StatefulSet",
		controlPlaneProvider,
		replace("kind: Deployment", "kind: StatefulSet"),
		"apiVersion: apps/v1",
		"runs the manager in a StatefulSet",
	},
	{
		"components/watch-namespace",
		"one namespace",
		controlPlaneProvider,
		replace(`"--namespace="`, `"--namespace=example-system"`),
		"--namespace=example-system",
		"watches the namespace example-system alone",
	},
	{
		"components/watch-namespace",
		"in two arguments",
		controlPlaneProvider,
		replace(`"--namespace="`, `--namespace, example-system`),
		"--namespace, example-system",
		"watches the namespace example-system alone",
	},
	{
		"components/image-name",
		"short",
		controlPlaneProvider,
		replace("registry.k8s.io/example/controller:v1.2.3", "example/controller:v1.2.3"),
		"image: example/controller",
		"has no canonical name",
	},
	{
		"components/image-name",
		"no version",
		controlPlaneProvider,
		replace("controller:v1.2.3", "controller"),
		"image: registry.k8s.io/example/controller",
		"has no version",
	},
	{
		"components/image-name",
		"latest",
		controlPlaneProvider,
		replace("controller:v1.2.3", "controller:latest"),
		"image: registry.k8s.io/example/controller",
		"has no version",
	},
	{
		"components/variable-prefix",
		"none",
		controlPlaneProvider,
		replace("EXAMPLE_VERBOSITY", "VERBOSITY"),
		"--v=",
		"uses 1 variable without the prefix EXAMPLE_: VERBOSITY",
	},
	{
		"components/variable-spaces",
		"spaces",
		controlPlaneProvider,
		replace("${EXAMPLE_VERBOSITY:=2}", "${ EXAMPLE_VERBOSITY }"),
		"--v=",
		"${ EXAMPLE_VERBOSITY } has spaces",
	},
	{
		"components/provider-label",
		"another label",
		controlPlaneProvider,
		replace("cluster.x-k8s.io/provider: control-plane-example", "cluster.x-k8s.io/provider: example"),
		"cluster.x-k8s.io/provider: example",
		"Namespace example-system has the label cluster.x-k8s.io/provider=example (expected control-plane-example), and so 12 other objects",
	},
	{
		"components/provider-label",
		"no label",
		controlPlaneProvider,
		replace(
			"  labels: {cluster.x-k8s.io/provider: control-plane-example}\n  name: example-issuer",
			"  name: example-issuer",
		),
		"apiVersion: cert-manager.io/v1",
		"Issuer example-issuer has no label",
	},

	{
		"references/service-account",
		"not there",
		controlPlaneProvider,
		replace("serviceAccountName: example-manager", "serviceAccountName: other"),
		"serviceAccountName: other",
		"Deployment example-controller runs as ServiceAccount other",
	},
	{
		"references/webhook-service",
		"of webhooks",
		controlPlaneProvider,
		replace("name: example-webhook, namespace: example-system, path", "name: other, namespace: example-system, path"),
		"{name: other",
		"ValidatingWebhookConfiguration example-validation clientConfig calls the Service other",
	},
	{
		"references/webhook-service",
		"of a conversion",
		controlPlaneProvider,
		replace("{name: example-webhook, namespace: example-system}", "{name: other, namespace: example-system}"),
		"{name: other",
		"conversion calls the Service other",
	},
	{
		"references/conversion-service",
		"of one version",
		controlPlaneProvider,
		replace(
			"kind: ExampleIdentity,",
			"kind: ExampleIdentity, ",
			"  scope: Cluster\n",
			"  scope: Cluster\n  conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: other}}}}\n",
		),
		"conversion: {strategy",
		"has one version, so nothing calls its conversion's Service other",
	},
	{
		"references/certificate",
		"whose CA is injected",
		controlPlaneProvider,
		replace(
			"  labels: {cluster.x-k8s.io/provider: control-plane-example}\n  name: example-validation",
			"  labels: {cluster.x-k8s.io/provider: control-plane-example}\n  name: example-validation",
			"inject-ca-from: example-system/example-cert\n  labels: {",
			"inject-ca-from: example-system/other\n  labels: {",
		),
		"inject-ca-from: example-system/other",
		"takes its CA from Certificate example-system/other",
	},
	{
		"references/certificate",
		"issued by nobody",
		controlPlaneProvider,
		replace("name: example-issuer}", "name: other}"),
		"issuerRef",
		"is issued by Issuer other",
	},
	{
		"references/role",
		"not there",
		controlPlaneProvider,
		replace("kind: ClusterRole, name: example-role", "kind: ClusterRole, name: other"),
		"roleRef",
		"ClusterRoleBinding example-rolebinding binds ClusterRole other",
	},
	{
		"references/subject",
		"not there",
		controlPlaneProvider,
		replace("{kind: ServiceAccount, name: example-manager", "{kind: ServiceAccount, name: other"),
		"name: other",
		"grants to ServiceAccount other",
	},
	{
		"references/pod",
		"a Secret",
		controlPlaneProvider,
		replace("    secretName: example-webhook-cert", "    secretName: other"),
		"secretName: other",
		"needs Secret other",
	},
	{
		"references/pod",
		"a ConfigMap",
		controlPlaneProvider,
		replace("secretKeyRef: {name: of-the-user, key: a, optional: true}", "configMapKeyRef: {name: of-the-user, key: a}"),
		"name: of-the-user",
		"needs ConfigMap of-the-user",
	},
	{
		"references/service-selector",
		"other labels",
		controlPlaneProvider,
		replace("selector: {app: example}", "selector: {app: other}"),
		"selector:",
		"Service example-webhook selects none",
	},

	{
		"crd/name",
		"singular",
		controlPlaneProvider,
		replace("name: examplecontrolplanes.", "name: examplecontrolplane."),
		"name: examplecontrolplane.",
		"has to be examplecontrolplanes.controlplane.cluster.x-k8s.io",
	},
	{
		"crd/scope",
		"cluster",
		controlPlaneProvider,
		replace(
			"plural: examplecontrolplanes}\n  scope: Namespaced",
			"plural: examplecontrolplanes}\n  scope: Cluster",
			"cluster.x-k8s.io/v1beta2: v1beta2\n",
			"cluster.x-k8s.io/v1beta2: v1beta2\n    clusterctl.cluster.x-k8s.io/move: \"\"\n",
		),
		"scope: Cluster",
		"is of scope Cluster",
	},
	{
		"crd/contract-label",
		"none",
		controlPlaneProvider,
		replace("    cluster.x-k8s.io/v1beta2: v1beta2\n", ""),
		"apiVersion: apiextensions",
		"has no label cluster.x-k8s.io/v1beta2",
	},
	{
		"crd/contract-label",
		"a version that is not there",
		controlPlaneProvider,
		replace("cluster.x-k8s.io/v1beta2: v1beta2\n", "cluster.x-k8s.io/v1beta2: v1beta2_v1\n"),
		"cluster.x-k8s.io/v1beta2: v1beta2_v1",
		"that v1 implements the contract, and has no such version",
	},
	{
		"crd/contract-label",
		"a version that is not served",
		controlPlaneProvider,
		replace("cluster.x-k8s.io/v1beta2: v1beta2\n", "cluster.x-k8s.io/v1beta2: v1alpha1\n"),
		"cluster.x-k8s.io/v1beta2: v1alpha1",
		"and does not serve it",
	},
	{
		"crd/contract-label-versions",
		"of an old contract",
		controlPlaneProvider,
		replace("v1alpha1_v1beta1", "v1alpha0_v1beta1"),
		"v1alpha0_v1beta1",
		"v1beta1 that v1alpha0 implements",
	},
	{
		"crd/core-access",
		"another group",
		controlPlaneProvider,
		replace(
			"group: controlplane.cluster.x-k8s.io",
			"group: controlplane.example.com",
			"s.controlplane.cluster.x-k8s.io",
			"s.controlplane.example.com",
			"[examplecontrolplanes, ",
			"[",
		),
		"group: controlplane.example.com",
		"is of group controlplane.example.com",
	},
	{
		"crd/move-hierarchy",
		"no label",
		controlPlaneProvider,
		replace("    clusterctl.cluster.x-k8s.io/move-hierarchy: \"\"\n", ""),
		"scope: Cluster",
		"exampleidentities.controlplane.cluster.x-k8s.io is cluster-scoped",
	},

	{
		"control-plane/template",
		"none",
		controlPlaneProvider,
		replace("kind: ExampleControlPlaneTemplate", "kind: ExampleControlPlaneForm"),
		"apiVersion: apiextensions",
		"ExampleControlPlaneTemplate",
	},
	{
		"control-plane/status-subresource",
		"none",
		controlPlaneProvider,
		replace("      status: {description: none}\n", ""),
		"- name: v1beta2",
		"version v1beta2 has no status subresource",
	},
	{
		"control-plane/scale",
		"none",
		controlPlaneProvider,
		replace(
			"      scale:\n        specReplicasPath: .spec.replicas\n        statusReplicasPath: .status.replicas\n        labelSelectorPath: .status.selector\n",
			"",
		),
		"- name: v1beta2",
		"has replicas and no scale subresource",
	},
	{
		"control-plane/scale",
		"another path",
		controlPlaneProvider,
		replace("        specReplicasPath: .spec.replicas\n", "        specReplicasPath: .spec.size\n"),
		"- name: v1beta2",
		`specReplicasPath ".spec.size", expected .spec.replicas`,
	},
	{
		"control-plane/status-version",
		"v1beta2",
		controlPlaneProvider,
		replace("              versions: {type: array}\n", ""),
		"- name: v1beta2",
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
		"- name: v1beta1",
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
		"image: docker.io/calico",
		"Deployment example-controller runs docker.io/calico/node",
	},
	{
		"control-plane/initialized",
		"v1beta2",
		controlPlaneProvider,
		replace("controlPlaneInitialized", "initialized"),
		"- name: v1beta2",
		"lacks status.initialization.controlPlaneInitialized (boolean)",
	},
	{
		"control-plane/initialized",
		"v1beta1",
		controlPlaneProvider,
		with(v1beta1, replace("              initialized: {type: boolean}\n", "")),
		"- name: v1beta1",
		"lacks status.initialized (boolean)",
	},
	{
		"control-plane/ready",
		"v1beta1",
		controlPlaneProvider,
		with(v1beta1, replace("              ready: {type: boolean}\n", "")),
		"- name: v1beta1",
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
		"- name: v1beta2",
		`lacks spec.replicas of type integer (it has type "string")`,
	},
	{
		"control-plane/replica-counters",
		"v1beta2",
		controlPlaneProvider,
		replace("upToDateReplicas", "updatedReplicas1", "availableReplicas", "unavailableReplicas1"),
		"- name: v1beta2",
		"lacks status.upToDateReplicas (integer), status.availableReplicas (integer)",
	},
	{
		"control-plane/replica-counters",
		"v1beta1",
		controlPlaneProvider,
		with(v1beta1, replace("              updatedReplicas: {type: integer}\n", "")),
		"- name: v1beta1",
		"lacks status.updatedReplicas (integer)",
	},
	{
		"control-plane/selector",
		"none",
		controlPlaneProvider,
		replace("              selector: {type: string, minLength: 1}\n", ""),
		"- name: v1beta2",
		"lacks status.selector (string)",
	},
	{
		"control-plane/version",
		"a number",
		controlPlaneProvider,
		replace("version: {type: string, minLength: 1}", "version: {type: number}"),
		"- name: v1beta2",
		"lacks spec.version of type string",
	},
	{
		"control-plane/machine-template",
		"the place of v1beta1",
		controlPlaneProvider,
		replace("infrastructureRef: {properties: {apiGroup", "infrastructureRef1: {properties: {apiGroup"),
		"- name: v1beta2",
		"lacks spec.machineTemplate.spec.infrastructureRef.apiGroup (string)",
	},
	{
		"control-plane/machine-template",
		"v1beta1",
		controlPlaneProvider,
		with(v1beta1, replace("infrastructureRef: {properties: {apiVersion", "infrastructureRef1: {properties: {apiVersion")),
		"- name: v1beta1",
		"lacks spec.machineTemplate.infrastructureRef.apiVersion (string)",
	},
	{
		"control-plane/machine-metadata",
		"no annotations",
		controlPlaneProvider,
		replace("                      annotations: {type: object}\n", ""),
		"- name: v1beta2",
		"lacks spec.machineTemplate.metadata.annotations (object)",
	},
	{
		"control-plane/machine-timeouts",
		"v1beta2",
		controlPlaneProvider,
		replace("                          nodeDeletionTimeoutSeconds: {type: integer}\n", ""),
		"- name: v1beta2",
		"lacks spec.machineTemplate.spec.deletion.nodeDeletionTimeoutSeconds (integer)",
	},
	{
		"control-plane/machine-timeouts",
		"v1beta1",
		controlPlaneProvider,
		with(v1beta1, replace("nodeDrainTimeout: {type: string}", "nodeDrainTimeout: {type: integer}")),
		"- name: v1beta1",
		"lacks spec.machineTemplate.nodeDrainTimeout of type string",
	},
	{
		"control-plane/optional-fields",
		"v1beta2",
		controlPlaneProvider,
		replace("externalManagedControlPlane: {type: boolean}", "externalManagedControlPlane: {type: string}"),
		"- name: v1beta2",
		"lacks status.externalManagedControlPlane of type boolean",
	},
	{
		"control-plane/optional-fields",
		"v1beta1",
		controlPlaneProvider,
		with(v1beta1, replace("failureReason: {type: string}", "failureReason: {type: object}")),
		"- name: v1beta1",
		"lacks status.failureReason of type string",
	},

	{
		"templates/valid",
		"an expression that cannot be",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "${KUBERNETES_VERSION}", "${KUBERNETES_VERSION"),
		"version: ",
		"expression ${KUBERNETES_VERSION",
	},
	{
		"templates/valid",
		"not YAML",
		infrastructureProvider,
		replaceTemplate("clusterclass-quick.yaml", "  name: quick\n", "  name: [quick\n"),
		"",
		"not valid YAML",
	},
	{
		"templates/namespace",
		"two",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "namespace: ${NAMESPACE}", "namespace: other"),
		"namespace: default",
		"ConfigMap cni is in namespace default, others are in other",
	},
	{
		"templates/namespace",
		"a Namespace",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "kind: ConfigMap", "kind: Namespace"),
		"apiVersion: v1",
		"creates a namespace",
	},
	{
		"templates/common-variables",
		"another one",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "${KUBERNETES_VERSION}", "${VERSION}"),
		"apiVersion: cluster.x-k8s.io",
		"Cluster ${CLUSTER_NAME} does not use ${KUBERNETES_VERSION}",
	},
	{
		"templates/class",
		"not published",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "name: quick", "name: slow"),
		"name: slow",
		"is of class slow",
	},
	{
		"templates/class",
		"as v1beta1 names it",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "    classRef:\n      name: quick", "    class: slow"),
		"class: slow",
		"is of class slow",
	},
	{
		"clusterclass/name",
		"another class",
		infrastructureProvider,
		replaceTemplate("clusterclass-quick.yaml", "  name: quick\n", "  name: fast\n"),
		"",
		"holds no ClusterClass quick",
	},
	{
		"clusterclass/namespace",
		"of an object",
		infrastructureProvider,
		replaceTemplate("clusterclass-quick.yaml", "  name: quick\n", "  name: quick\n  namespace: default\n"),
		"namespace: default",
		"ClusterClass quick is in namespace default",
	},
	{
		"clusterclass/namespace",
		"of a reference",
		infrastructureProvider,
		replaceTemplate(
			"clusterclass-quick.yaml",
			"      name: quick-cluster\n",
			"      name: quick-cluster\n      namespace: default\n",
		),
		"namespace: default",
		"names a namespace in spec.infrastructure.templateRef",
	},
	{
		"clusterclass/shared-objects",
		"a template",
		infrastructureProvider,
		replaceTemplate("clusterclass-quick.yaml", "quick-cluster", "other-cluster"),
		"apiVersion: infrastructure",
		"ExampleClusterTemplate other-cluster is part of clusterclass-other.yaml too",
	},
	{
		"clusterclass/variables",
		"one",
		infrastructureProvider,
		replaceTemplate("clusterclass-quick.yaml", "name: quick-cluster", "name: quick-${SIZE:=small}"),
		"name: quick-${SIZE",
		"uses the variable SIZE",
	},
}

func TestEachRuleFindsWhatBreaksIt(t *testing.T) {
	tested := map[string]bool{}
	for _, c := range brokenCases {
		tested[c.rule] = true
		t.Run(c.rule+"/"+c.name, func(t *testing.T) {
			g := NewWithT(t)
			b := c.release()
			c.edit(t, b)
			found := of(c.rule, lint.Bundle(b, nil))
			g.Expect(found).To(HaveLen(1))
			g.Expect(strings.TrimSpace(found[0].Kind + " " + found[0].Object + " " + found[0].Message)).
				To(ContainSubstring(c.message))
			g.Expect(pointedLine(b, found[0])).To(ContainSubstring(c.at))
		})
	}

	for _, rule := range lint.Rules() {
		NewWithT(t).Expect(tested).To(HaveKey(rule.Name))
	}
}

// of are the findings of one rule.
func of(rule string, findings []lint.Finding) []lint.Finding {
	return slices.DeleteFunc(findings, func(f lint.Finding) bool { return f.Rule != rule })
}

// pointedLine is the line to which a finding points, "" when it points to a whole file.
func pointedLine(b *bundle.Bundle, f lint.Finding) string {
	files := map[string][]byte{bundle.ComponentsFile: b.Components, bundle.MetadataFile: b.Metadata}
	for _, t := range b.Templates {
		files[t.Name] = t.Data
	}

	if f.Line == 0 {
		return ""
	}

	return strings.Split(string(files[f.File]), "\n")[f.Line-1]
}

// soundCases keep all rules although they come near to breaking one.
var soundCases = []struct {
	name    string
	release func() *bundle.Bundle
	edit    edit
}{
	{"as published", controlPlaneProvider, none},
	{"as published, of contract v1beta1", controlPlaneProvider, v1beta1},
	{"with templates", infrastructureProvider, none},
	{
		"a digest for a version",
		controlPlaneProvider,
		replace("controller:v1.2.3", "controller@sha256:"+strings.Repeat("a", 64)),
	},
	{
		"values that nobody knows yet",
		controlPlaneProvider,
		replace(
			"image: registry.k8s.io/example/controller:v1.2.3",
			"image: ${EXAMPLE_IMAGE}",
			"--namespace=",
			"--namespace=${EXAMPLE_WATCH}",
			"example-viewer\n  namespace: example-system",
			"example-viewer\n  namespace: ${EXAMPLE_SYSTEM}",
			"ClusterRole, name: view",
			"ClusterRole, name: ${EXAMPLE_VIEW}",
			"serviceAccountName: example-manager",
			"serviceAccountName: ${EXAMPLE_ACCOUNT}",
			"    secretName: example-webhook-cert\n---",
			"    secretName: ${EXAMPLE_SECRET}\n---",
		),
	},
	{
		"an expression that is no bare name with spaces",
		controlPlaneProvider,
		replace("${EXAMPLE_VERBOSITY:=2}", "${EXAMPLE_VERBOSITY:= 2 }"),
	},
	{
		"an escaped expression with spaces",
		controlPlaneProvider,
		replace("--v=${EXAMPLE_VERBOSITY:=2}", `"--v=$${ EXAMPLE }"`),
	},
	{
		"a role of every cluster",
		controlPlaneProvider,
		replace("ClusterRole, name: view", "ClusterRole, name: system:auth-delegator"),
	},
	{
		"a Service without selector",
		controlPlaneProvider,
		replace("  selector: {app: example}", "  externalName: example.com"),
	},
	{
		"a conversion of one version that nothing calls",
		controlPlaneProvider,
		replace(
			"  scope: Cluster\n",
			"  scope: Cluster\n  conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: example-webhook}}}}\n",
		),
	},
	{
		"a second Deployment without manager",
		controlPlaneProvider,
		replace("kind: Issuer\n", "kind: Issuer\n", "spec: {selfSigned: {}}\n---\n", `spec: {selfSigned: {}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  labels: {cluster.x-k8s.io/provider: control-plane-example}
  name: other
  namespace: example-system
spec: {template: {spec: {serviceAccountName: default, containers: [{name: other, image: "registry.k8s.io/other:v1"}]}}}
---
`),
	},
	{
		"a group of its own with an aggregated role",
		controlPlaneProvider,
		replace(
			"group: controlplane.cluster.x-k8s.io",
			"group: controlplane.example.com",
			"s.controlplane.cluster.x-k8s.io",
			"s.controlplane.example.com",
		),
	},
	{
		"a helper kind in the contract's group",
		controlPlaneProvider,
		replace(
			"kind: ExampleIdentity",
			"kind: ExampleEtcd",
			"name: exampleidentities",
			"name: exampleetcd",
			"plural: exampleidentities",
			"plural: exampleetcd",
		),
	},
	{
		"an empty machineTemplate, as managed control planes have",
		controlPlaneProvider,
		replace(
			"              machineTemplate:\n                properties:\n",
			"              machineTemplate:\n                type: object\n                notProperties:\n",
		),
	},
	{
		"no machineTemplate, no replicas, no version",
		controlPlaneProvider,
		replace(
			"machineTemplate",
			"other",
			"replicas: {type: integer, minimum: 0}",
			"other1: {type: integer}",
			"              version: {type: string, minLength: 1}\n",
			"",
			"      scale:\n        specReplicasPath: .spec.replicas\n        statusReplicasPath: .status.replicas\n        labelSelectorPath: .status.selector\n",
			"",
		),
	},
	{
		"a status that is free to be anything",
		controlPlaneProvider,
		replace(
			"initialization: {properties: {controlPlaneInitialized: {type: boolean}}}",
			"initialization: {type: object, x-kubernetes-preserve-unknown-fields: true}",
		),
	},
	{
		"a class in the template itself",
		infrastructureProvider,
		replaceTemplate(
			"cluster-template.yaml",
			"name: quick",
			"name: own",
			"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cni",
			"apiVersion: cluster.x-k8s.io/v1beta2\nkind: ClusterClass\nmetadata:\n  name: own",
		),
	},
	{
		"a class by a variable",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "name: quick", "name: ${CLUSTER_CLASS_NAME}"),
	},
	{
		"a template that is YAML only with a variable's value",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "  name: cni\n", "  name: cni\n  ${MORE_METADATA}\n"),
	},
}

func TestSoundReleasesHaveNoFinding(t *testing.T) {
	for _, c := range soundCases {
		t.Run(c.name, func(t *testing.T) {
			b := c.release()
			c.edit(t, b)
			NewWithT(t).Expect(lint.Bundle(b, nil)).To(BeEmpty())
		})
	}
}

// What is unknown is not wrong: components that were read without schemas say nothing of the fields
// of a control plane.
func TestComponentsWithoutSchemasHaveNoFinding(t *testing.T) {
	g := NewWithT(t)
	b := controlPlaneProvider()
	c, err := bundle.ParseComponents(b.Components)
	g.Expect(err).NotTo(HaveOccurred())

	for _, doc := range c.Documents {
		versions, _, _ := unstructured.NestedSlice(doc.Object.Object, "spec", "versions")
		for _, v := range versions {
			v.(map[string]any)["schema"] = nil
		}

		if versions != nil {
			g.Expect(unstructured.SetNestedSlice(doc.Object.Object, versions, "spec", "versions")).To(Succeed())
		}
	}

	g.Expect(lint.Bundle(b, c)).To(BeEmpty())
}

func TestNamesOfFiles(t *testing.T) {
	provider := infrastructureProvider().Provider
	sound := []string{
		"infrastructure-components.yaml",
		"metadata.yaml",
		"cluster-template-dev.yaml",
		"clusterclass-quick.yaml",
		"README.md",
	}
	NewWithT(t).Expect(lint.Names(provider, sound)).To(BeEmpty())

	for name, message := range map[string]string{
		"components.yaml":    "infrastructure-components.yaml",
		"cluster-class.yaml": "nobody reads it",
	} {
		found := lint.Names(provider, []string{name})
		NewWithT(t).Expect(found).To(HaveLen(1))
		NewWithT(t).Expect(found[0].File).To(Equal(name))
		NewWithT(t).Expect(found[0].Message).To(ContainSubstring(message))
	}
}

func TestFindingsComeInAStableOrder(t *testing.T) {
	g := NewWithT(t)
	b := controlPlaneProvider()
	b.Metadata = nil
	replace(
		"cluster.x-k8s.io/provider",
		"other",
		"example-manager",
		"example-${X}",
		"v1alpha1_v1beta1",
		"v1_v2_v3",
		"type: integer",
		"type: string",
	)(
		t,
		b,
	)
	first := lint.Bundle(b, nil)
	g.Expect(len(first)).To(BeNumerically(">", 3))

	for range 20 {
		g.Expect(lint.Bundle(b, nil)).To(Equal(first))
	}

	g.Expect(slices.IsSortedFunc(first, func(a, b lint.Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})).To(BeTrue())
}

// Every rule says what it demands, why, and what to do, in whole sentences.
func TestRulesAreComplete(t *testing.T) {
	names := map[string]bool{}

	for _, rule := range lint.Rules() {
		g := NewWithT(t)
		g.Expect(names).NotTo(HaveKey(rule.Name))
		names[rule.Name] = true
		g.Expect(rule.Name).To(MatchRegexp(`^[a-z-]+/[a-z-]+$`))
		g.Expect(rule.Level).To(BeElementOf(lint.Error, lint.Warning, lint.Info))
		g.Expect(rule.Contract).To(HavePrefix("https://"))

		for _, sentence := range []string{rule.Demand, rule.Why, rule.Remedy} {
			g.Expect(sentence).To(MatchRegexp(`^[A-Z\x60a-z].*\.( .*\.)*$`), rule.Name)
		}
	}
}
