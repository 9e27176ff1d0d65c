package lint_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// soundCases follow all rules, although they almost break one.
var soundCases = []struct {
	name     string
	provider func() *bundle.Bundle
	edit     edit
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
		"values that depend on variables",
		controlPlaneProvider,
		replace(
			"--namespace=", "--namespace=${EXAMPLE_WATCH}",
			"example-viewer\n  namespace: example-system", "example-viewer\n  namespace: ${EXAMPLE_SYSTEM}",
			"ClusterRole, name: view", "ClusterRole, name: ${EXAMPLE_VIEW}",
			"serviceAccountName: example-manager", "serviceAccountName: ${EXAMPLE_ACCOUNT}",
			"    secretName: example-webhook-cert\n---", "    secretName: ${EXAMPLE_SECRET}\n---",
		),
	},
	{
		"an expression that is no bare name with spaces",
		controlPlaneProvider,
		replace("${EXAMPLE_VERBOSITY:=2}", "${EXAMPLE_VERBOSITY:= 2 }"),
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
		"a certificate authority of the conversion webhook",
		controlPlaneProvider,
		func(t *testing.T, b *bundle.Bundle) {
			ca, _, err := cert.GenerateSelfSignedCertKey("example", nil, nil)
			if err != nil {
				t.Fatal(err)
			}

			replace(
				"        service: {name: example-webhook, namespace: example-system}\n  versions",
				"        service: {name: example-webhook, namespace: example-system}\n        caBundle: "+
					base64.StdEncoding.EncodeToString(ca)+"\n  versions",
			)(t, b)
		},
	},
	{
		"a Service of a webhook of a CRD that is called by nothing",
		controlPlaneProvider,
		replace("strategy: Webhook", "strategy: None", "{name: example-webhook, namespace: example-system}", "{name: other}"),
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
			"group: controlplane.cluster.x-k8s.io", "group: controlplane.example.com",
			"s.controlplane.cluster.x-k8s.io", "s.controlplane.example.com",
		),
	},
	{
		"cluster-scoped objects with the namespace of a kustomization",
		controlPlaneProvider,
		replace(
			"  name: example-role\n", "  name: example-role\n  namespace: system\n",
			"  name: exampleidentities.controlplane", "  namespace: system\n  name: exampleidentities.controlplane",
		),
	},
	{
		"an image of a company whose name is that of a CNI",
		controlPlaneProvider,
		replace("registry.k8s.io/example/controller:v1.2.3", "docker.io/weaveworks/controller:v1.2.3"),
	},
	{
		"permissions for everything",
		controlPlaneProvider,
		replace("[examplecontrolplanes/finalizers, ", "[",
			"kind: ClusterRole, name: view", "kind: ClusterRole, name: cluster-admin"),
	},
	{
		"permissions for all finalizers",
		controlPlaneProvider,
		replace("[examplecontrolplanes/finalizers, ", "['*/finalizers', "),
	},
	{
		"a Cluster in a group of its own",
		infrastructureProvider,
		replace(
			"name: exampleidentities.controlplane.cluster.x-k8s.io", "name: clusters.example.com",
			"group: controlplane.cluster.x-k8s.io\n  names: {kind: ExampleIdentity, plural: exampleidentities}",
			"group: example.com\n  names: {kind: Cluster, plural: clusters}",
			"    clusterctl.cluster.x-k8s.io/move-hierarchy: \"\"\n",
			"    clusterctl.cluster.x-k8s.io/move-hierarchy: \"\"\n    cluster.x-k8s.io/v1beta1: v1beta1\n",
		),
	},
	{
		"a Cluster in a group of its own, and no infrastructure cluster",
		infrastructureProvider,
		replace(
			"kind: ExampleClusterTemplate", "kind: ExampleForm", "kind: ExampleCluster,", "kind: Cluster,",
			"exampleclustertemplates", "exampleforms", "exampleclusters.infrastructure.cluster.x-k8s.io", "clusters.example.com",
			"group: infrastructure.cluster.x-k8s.io\n  names: {kind: Cluster, plural: exampleclusters}",
			"group: example.com\n  names: {kind: Cluster, plural: clusters}",
		),
	},
	{
		"an aggregated ClusterRole with a ClusterRole to aggregate",
		controlPlaneProvider,
		replace("\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding", `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  labels: {cluster.x-k8s.io/provider: control-plane-example}
  name: all
aggregationRule: {clusterRoleSelectors: [{matchLabels: {cluster.x-k8s.io/aggregate-to-manager: "true"}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding`),
	},
	{
		"all kinds of infrastructure, of contract v1beta1",
		infrastructureProvider,
		v1beta1,
	},
	{
		"a kind named like a Machine that has no template",
		infrastructureProvider,
		replace(
			"ExampleMachinePoolTemplate", "ExampleHosts", "ExampleMachinePool,", "PooledMachine,",
			"examplemachinepooltemplates", "examplehosts", "examplemachinepools", "pooledmachines",
		),
	},
	{
		"IP address pools",
		ipamProvider,
		none,
	},
	{
		"an annotation for Helm on a CRD",
		controlPlaneProvider,
		replace("    cert-manager.io/inject-ca-from: example-system/example-cert\n  labels:\n",
			"    cert-manager.io/inject-ca-from: example-system/example-cert\n    helm.sh/resource-policy: keep\n  labels:\n"),
	},
	{
		"a helper kind in the contract's group",
		controlPlaneProvider,
		replace(
			"kind: ExampleIdentity", "kind: ExampleEtcd",
			"name: exampleidentities", "name: exampleetcd",
			"plural: exampleidentities", "plural: exampleetcd",
		),
	},
	{
		"an empty machineTemplate, as managed control planes have",
		controlPlaneProvider,
		replace(
			"              machineTemplate:\n                type: object\n                properties:\n",
			"              machineTemplate:\n                type: object\n                notProperties:\n",
		),
	},
	{
		"no machineTemplate, no replicas, no version",
		controlPlaneProvider,
		replace(
			"machineTemplate", "other",
			"replicas: {type: integer, minimum: 0}", "other1: {type: integer}",
			"              version: {type: string, minLength: 1}\n", "",
			scaleSubresource, "",
		),
	},
	{
		"a status with unknown fields",
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
		"references to what users or controllers create",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "spec:\n", `spec:
  identityRef: {kind: ExampleIdentity, name: default}
  infrastructureRef: {kind: ExampleCluster, name: "${EXAMPLE_CLUSTER}"}
  credentials: {secretRef: {name: "${EXAMPLE_SECRET}"}, configMapRef: {name: own, optional: true}}
  files:
  - contentFrom: {secret: {name: "${CLUSTER_NAME}-cloud-config", key: a}}
  - contentFrom: {configMap: {name: cni, key: a}}
`),
	},
	{
		"references that a patch of the ClusterClass replaces",
		infrastructureProvider,
		replaceTemplate("clusterclass-quick.yaml", withPatch("/spec/template/spec/files")...),
	},
	{
		"references whose names patches of the ClusterClass replace",
		infrastructureProvider,
		replaceTemplate("clusterclass-quick.yaml", append(withPatch("/spec/template/spec/files/0/contentFrom/secret/name"),
			"            name: second\n", "")...),
	},
	{
		"the target namespace",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "apiVersion: v1\nkind: ConfigMap", "apiVersion: v1\nkind: Namespace",
			"name: cni", "name: ${NAMESPACE}"),
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
