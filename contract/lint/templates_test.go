package lint_test

// brokenTemplates break the rules about cluster templates and ClusterClasses.
var brokenTemplates = []brokenCase{
	{
		"templates/valid",
		"an expression that cannot be",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "${KUBERNETES_VERSION}", "${KUBERNETES_VERSION"),
		"expression ${KUBERNETES_VERSION",
	},
	{
		"templates/valid",
		"an expression that extends into the next document",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "${KUBERNETES_VERSION}", "${VERSION:=a\n---\n}"),
		"expression ${VERSION:=a",
	},
	{
		"templates/valid",
		"not YAML",
		infrastructureProvider,
		replaceTemplate("clusterclass-quick.yaml", "  name: quick\n", "  name: [quick\n"),
		"not valid YAML",
	},
	{
		"templates/valid",
		"not YAML, with variables in the file",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "kind: ConfigMap", "kind: [ConfigMap"),
		"not valid YAML",
	},
	{
		"templates/valid",
		"an indentation, with variables in the file",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "  topology:", "    paused: true\n  topology:"),
		"not valid YAML",
	},
	{
		"templates/valid",
		"no kind, with variables in the file",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "kind: ConfigMap", "type: ConfigMap"),
		"an object without apiVersion or kind",
	},
	{
		"templates/valid",
		"not YAML, after a document with lines that are variables",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "spec:\n", "${MORE}\nspec:\n", "kind: ConfigMap", "kind: [ConfigMap"),
		"not valid YAML",
	},
	{
		"templates/references",
		"a Secret",
		infrastructureProvider,
		replaceTemplate(
			"cluster-template.yaml", "spec:\n", "spec:\n  identityRef:\n    kind: Secret\n    name: credentials\n",
		),
		"Cluster ${CLUSTER_NAME} refers to Secret credentials, which the file does not contain",
	},
	{
		"templates/references",
		"a Secret of a field",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "spec:\n", "spec:\n  exampleSecretRef:\n    name: credentials\n"),
		"Cluster ${CLUSTER_NAME} refers to Secret credentials, which the file does not contain",
	},
	{
		"templates/references",
		"a Secret by its name alone",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "spec:\n", "spec:\n  secretName: credentials\n"),
		"refers to Secret credentials",
	},
	{
		"templates/references",
		"a ConfigMap of a list",
		infrastructureProvider,
		replaceTemplate(
			"cluster-template.yaml", "spec:\n", "spec:\n  resources:\n  - {kind: ConfigMap, name: cni}\n"+
				"  - kind: ConfigMap\n    name: storage\n",
		),
		"refers to ConfigMap storage",
	},
	{
		"templates/references",
		"infrastructure, in a file with a line that is a variable",
		infrastructureProvider,
		replaceTemplate(
			"cluster-template.yaml", "spec:\n", "  ${MORE_METADATA}\nspec:\n  infrastructureRef:\n"+
				"    kind: ExampleCluster\n    name: ${CLUSTER_NAME}-${EXAMPLE_REGION}\n",
		),
		"refers to ExampleCluster ${CLUSTER_NAME}-${...}, which the file does not contain",
	},
	{
		"templates/references",
		"of a ClusterClass",
		infrastructureProvider,
		replaceTemplate("clusterclass-quick.yaml", "      name: quick-cluster", "      name: slow-cluster"),
		"ClusterClass quick refers to ExampleClusterTemplate slow-cluster",
	},
	{
		"templates/references",
		"next to what a patch of the ClusterClass replaces",
		infrastructureProvider,
		replaceTemplate("clusterclass-quick.yaml", withPatch("/spec/template/spec/files/0/contentFrom")...),
		"ExampleClusterTemplate quick-cluster refers to Secret second, which the file does not contain",
	},
	{
		"templates/served-versions",
		"not there",
		infrastructureProvider,
		replaceTemplate(
			"clusterclass-quick.yaml",
			"apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: ExampleClusterTemplate\nmetadata",
			"apiVersion: infrastructure.cluster.x-k8s.io/v1alpha3\nkind: ExampleClusterTemplate\nmetadata",
		),
		"ExampleClusterTemplate quick-cluster has the API version infrastructure.cluster.x-k8s.io/v1alpha3, which " +
			"exampleclustertemplates.infrastructure.cluster.x-k8s.io does not serve",
	},
	{
		"templates/namespace",
		"two",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "namespace: ${NAMESPACE}", "namespace: other"),
		"ConfigMap cni is in the namespace default, but other objects are in other",
	},
	{
		"templates/namespace",
		"a Namespace",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "kind: ConfigMap", "kind: Namespace"),
		"Namespace cni is not the target namespace",
	},
	{
		"templates/common-variables",
		"another one",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "${KUBERNETES_VERSION}", "${VERSION}"),
		"Cluster ${CLUSTER_NAME} does not use ${KUBERNETES_VERSION}",
	},
	{
		"templates/class",
		"not published",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "name: quick", "name: slow"),
		"uses the ClusterClass slow, which is not published",
	},
	{
		"templates/class",
		"as v1beta1 names it",
		infrastructureProvider,
		replaceTemplate("cluster-template.yaml", "    classRef:\n      name: quick", "    class: slow"),
		"uses the ClusterClass slow, which is not published",
	},
	{
		"clusterclass/name",
		"another class",
		infrastructureProvider,
		replaceTemplate("clusterclass-quick.yaml", "  name: quick\n", "  name: fast\n"),
		"contains no ClusterClass quick",
	},
	{
		"clusterclass/namespace",
		"of an object",
		infrastructureProvider,
		replaceTemplate("clusterclass-quick.yaml", "  name: quick\n", "  name: quick\n  namespace: default\n"),
		"ClusterClass quick is in the namespace default",
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
		"refers to a namespace in spec.infrastructure.templateRef",
	},
	{
		"clusterclass/shared-objects",
		"a template",
		infrastructureProvider,
		replaceTemplate("clusterclass-quick.yaml", "quick-cluster", "other-cluster"),
		"ExampleClusterTemplate other-cluster is also part of clusterclass-other.yaml",
	},
	{
		"clusterclass/variables",
		"one",
		infrastructureProvider,
		replaceTemplate("clusterclass-quick.yaml", "name: quick-cluster", "name: quick-${SIZE:=small}"),
		"uses the variable SIZE",
	},
}

// withPatch are the replacements by which the ClusterClass replaces a path of its template. That refers to two Secrets.
func withPatch(path string) []string {
	return []string{
		"    - jsonPatches:\n", "    - selector:\n        kind: ExampleClusterTemplate\n" +
			"        apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\n" +
			"      jsonPatches:\n      - {op: replace, path: " + path + ", valueFrom: {variable: any}}\n",
		"metadata:\n  name: quick-cluster\n", `metadata:
  name: quick-cluster
spec:
  template:
    spec:
      files:
      - contentFrom: {secret: {name: first, key: a}}
      - contentFrom:
          secret:
            name: second
            key: a
`,
	}
}
