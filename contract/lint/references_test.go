package lint_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/contract"
	"github.com/capstan-project/capstan/contract/lint"
)

// brokenReferences break the rules about references.
var brokenReferences = []brokenCase{
	{
		"references/service-account",
		"missing",
		controlPlaneProvider,
		replace("serviceAccountName: example-manager", "serviceAccountName: other"),
		"Deployment example-controller runs as ServiceAccount other",
	},
	{
		"references/webhook-service",
		"of webhooks",
		controlPlaneProvider,
		replace("name: example-webhook, namespace: example-system, path", "name: other, namespace: example-system, path"),
		"ValidatingWebhookConfiguration example-validation calls the Service other, which is missing",
	},
	{
		"references/webhook-service",
		"of a conversion",
		controlPlaneProvider,
		replace("{name: example-webhook, namespace: example-system}", "{name: other, namespace: example-system}"),
		"calls the Service other, which is missing",
	},
	{
		"references/unneeded-webhook",
		"of one version",
		controlPlaneProvider,
		replace(
			"kind: ExampleIdentity,", "kind: ExampleIdentity, ",
			"  scope: Cluster\n",
			"  scope: Cluster\n  conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: other}}}}\n",
		),
		"names the Service other, which is missing, although no request fails without it",
	},
	{
		"references/unneeded-webhook",
		"with the failurePolicy Ignore",
		controlPlaneProvider,
		replace(
			"name: one.example.com\n  clientConfig:\n    service: {name: example-webhook",
			"name: one.example.com\n  failurePolicy: Ignore\n  clientConfig:\n    service: {name: other",
		),
		"ValidatingWebhookConfiguration example-validation names the Service other",
	},
	{
		"references/unneeded-webhook",
		"the CA of one version",
		controlPlaneProvider,
		replace("    clusterctl.cluster.x-k8s.io/move-hierarchy: \"\"\n",
			"    clusterctl.cluster.x-k8s.io/move-hierarchy: \"\"\n"+
				"  annotations: {cert-manager.io/inject-ca-from: $(NAMESPACE)/$(NAME)}\n"),
		"injects the CA of Certificate $(NAMESPACE)/$(NAME), which is missing, although no request fails without it",
	},
	{
		"references/certificate",
		"for an injected CA",
		controlPlaneProvider,
		replace(
			"  labels: {cluster.x-k8s.io/provider: control-plane-example}\n  name: example-validation",
			"  labels: {cluster.x-k8s.io/provider: control-plane-example}\n  name: example-validation",
			"inject-ca-from: example-system/example-cert\n  labels: {",
			"inject-ca-from: example-system/other\n  labels: {",
		),
		"injects the CA of Certificate example-system/other",
	},
	{
		"references/certificate",
		"no Issuer",
		controlPlaneProvider,
		replace("name: example-issuer}", "name: other}"),
		"is issued by Issuer other",
	},
	{
		"references/role",
		"missing",
		controlPlaneProvider,
		replace("kind: ClusterRole, name: example-role", "kind: ClusterRole, name: other"),
		"ClusterRoleBinding example-rolebinding binds ClusterRole other",
	},
	{
		"references/subject",
		"missing",
		controlPlaneProvider,
		replace("{kind: ServiceAccount, name: example-manager", "{kind: ServiceAccount, name: other"),
		"grants permissions to ServiceAccount other",
	},
	{
		"references/pod",
		"a Secret",
		controlPlaneProvider,
		replace("    secretName: example-webhook-cert", "    secretName: other"),
		"needs Secret other",
	},
	{
		"references/pod",
		"a ConfigMap",
		controlPlaneProvider,
		replace("secretKeyRef: {name: of-the-user, key: a, optional: true}", "configMapKeyRef: {name: of-the-user, key: a}"),
		"needs ConfigMap of-the-user",
	},
	{
		"references/service-selector",
		"other labels",
		controlPlaneProvider,
		replace("selector: {app: example}", "selector: {app: other}"),
		"Service example-webhook selects none",
	},
	{
		"references/aggregation",
		"no ClusterRole to aggregate",
		controlPlaneProvider,
		replace(
			"  name: example-role\nrules:\n",
			"  name: example-role\naggregationRule:\n  clusterRoleSelectors:\n"+
				"  - matchLabels: {example.com/aggregate: \"true\"}\nrules:\n",
		),
		"ClusterRole example-role aggregates the ClusterRoles with the labels example.com/aggregate=true, of which there " +
			"are none",
	},
	{
		"references/owner-finalizers",
		"of a control plane with Machines",
		controlPlaneProvider,
		replace("[examplecontrolplanes/finalizers, ", "["),
		"examplecontrolplanes.controlplane.cluster.x-k8s.io owns Machines, but no role grants the manager update on " +
			"examplecontrolplanes/finalizers",
	},
	{
		"references/owner-finalizers",
		"of a control plane, but another verb",
		controlPlaneProvider,
		replace("verbs: [update]", "verbs: [get, patch]", "\n- apiGroups: [ipam.cluster.x-k8s.io]", "\n- apiGroups: [other]"),
		"owns Machines, but no role grants the manager update on examplecontrolplanes/finalizers",
	},
	{
		"references/owner-finalizers",
		"of a BootstrapConfig",
		infrastructureProvider,
		replace("exampleconfigs/finalizers, ", ""),
		"exampleconfigs.bootstrap.cluster.x-k8s.io owns Secrets, but no role grants the manager update " +
			"on exampleconfigs/finalizers",
	},
	{
		"references/owner-finalizers",
		"of an IP address pool",
		ipamProvider,
		replace("exampleippools/finalizers, ", ""),
		"exampleippools.ipam.cluster.x-k8s.io owns IPAddresses, but no role grants the manager update on " +
			"exampleippools/finalizers",
	},
	{
		"references/owner-finalizers",
		"of an IPAddressClaim",
		ipamProvider,
		replace(", ipaddressclaims/finalizers]", "]"),
		"ClusterRole example-role grants create on ipaddresses, whose owners are IPAddressClaims, but no role grants the " +
			"manager update on ipaddressclaims/finalizers",
	},
}

// TestUnneededWebhooks: what no request needs is no error.
func TestUnneededWebhooks(t *testing.T) {
	for _, c := range brokenReferences {
		if c.rule != "references/unneeded-webhook" {
			continue
		}

		b := c.provider()
		c.edit(t, b)
		NewWithT(t).Expect(contract.Fail(lint.Bundle(b, nil), contract.Error)).To(BeFalse(), c.name)
	}
}
