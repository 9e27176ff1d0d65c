package chartgen_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
)

// deploymentWith returns a Deployment whose container has the given fields.
func deploymentWith(container string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: manager}\nspec: {selector: {}, template: {spec: " +
		"{containers: [{name: manager, image: registry.example.com/manager:v1, " + container + "}]}}}\n"
}

// deploymentImage returns a Deployment whose container has the given image.
func deploymentImage(image string) string {
	return strings.Replace(deploymentWith("command: [run]"), "registry.example.com/manager:v1", image, 1)
}

// TestRefusalsOfClusterctl: components that clusterctl refuses, with any values of the variables, do not
// become a chart, and the error names the object and the field.
func TestRefusalsOfClusterctl(t *testing.T) {
	const (
		webhooks = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n" +
			"metadata: {name: webhooks}\n"
		binding = "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: binding}\n"
	)

	schema := strings.Replace(crdWith("text"), "    description: {type: object}", "    schema: {openAPIV3Schema: {%}}", 1)
	crd := func(fields string) string { return strings.Replace(schema, "%", fields, 1) }

	for name, test := range map[string]struct{ components, message string }{
		"a number as a text":        {deploymentWith("env: [{name: A, value: 1}]"), "containers.env.value is a number"},
		"a boolean as a text":       {deploymentWith("args: [true]"), "containers.args is a boolean"},
		"a text as a number":        {deploymentWith("ports: [{containerPort: http}]"), "ports.containerPort is a text"},
		"webhooks that are a map":   {webhooks + "webhooks: {name: a}\n", "the field webhooks is a map, expected a list"},
		"a number as a webhook":     {webhooks + "webhooks:\n- name: 1\n", "the field webhooks.name is a number"},
		"a number as a subject":     {binding + "subjects: [{kind: User, name: 1}]\n", "the field subjects.name is a number"},
		"a schema that is a list":   {crd("type: [object]"), "openAPIV3Schema.type is a list, expected a text"},
		"properties that are texts": {crd("properties: {a: text}"), "properties is a text, expected a map"},
		"a number from a default":   {crd("type: ${ODD:=1}"), "openAPIV3Schema.type is a number, expected a text"},
		"labels that are a list": {
			strings.Replace(crd(""), "name: a", "name: a\n  labels: [b]", 1), "metadata.labels is a list, expected a map",
		},
		"an image without registry": {
			deploymentImage("nginx:v1"), `container "manager" has the image "nginx:v1", which is not a canonical name; ` +
				"write docker.io/library/nginx:v1; clusterctl refuses it, too",
		},
		"an image with a path only":      {deploymentImage("org/image:v1"), "write docker.io/org/image:v1;"},
		"a short form of Docker Hub":     {deploymentImage("docker.io/nginx:v1"), "write docker.io/library/nginx:v1;"},
		"another name of Docker Hub":     {deploymentImage("index.docker.io/a/b"), "write docker.io/a/b;"},
		"an image that is no name":       {deploymentImage("http://example.com"), "is not a valid name; correct it;"},
		"a container without an image":   {deploymentImage(`""`), `the container "manager" has no image; add one;`},
		"a fixed image beside variables": {deploymentImage("nginx, args: [\"${ODD:=a}\"]"), "library/nginx;"},
		"an image of a DaemonSet": {
			strings.Replace(deploymentImage("nginx"), "kind: Deployment", "kind: DaemonSet", 1), "DaemonSet manager: ",
		},
		"an image of an init container": {
			strings.Replace(deploymentImage("nginx"), "containers:", "initContainers:", 1), "library/nginx;",
		},
		"a certificate without namespace": {
			strings.Replace(crd(""), "name: a", "name: a\n  annotations: {cert-manager.io/inject-ca-from: b}", 1),
			`the annotation cert-manager.io/inject-ca-from is "b", expected namespace/name`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := provider("odd", configMapText+"---\n"+test.components)

			_, err := clusterctlObjects(t.Context(), b, nil)
			g.Expect(err).To(HaveOccurred(), "clusterctl")

			_, err = chartgen.Build(b)
			g.Expect(err).To(BeAssignableToTypeOf(&bundle.InvalidError{}))
			g.Expect(err).To(MatchError(And(HavePrefix("components.yaml line 5: "), ContainSubstring(test.message))))
		})
	}
}

// TestRefusalsOfTheAPIServer: what the API server would refuse, or clusterctl would lose, does not become a chart.
func TestRefusalsOfTheAPIServer(t *testing.T) {
	for name, test := range map[string]struct{ components, message string }{
		"a label that is a number": {
			strings.Replace(configMapText, "{name: config}", "{name: config, labels: {a: 1}}", 1),
			"ConfigMap config: the field metadata.labels is a number, expected a text: put it in quotes",
		},
		"an annotation that is a boolean": {
			"apiVersion: example.org/v1\nkind: Odd\nmetadata: {name: odd, annotations: {a: true}}\n",
			"Odd odd: the field metadata.annotations is a boolean, expected a text: put it in quotes",
		},
		"text after the end": {configMapText + "...\ndata: {a: b}\n", "text follows the end of the document; remove it"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := chartgen.Build(provider("odd", test.components))
			NewWithT(t).Expect(err).To(BeAssignableToTypeOf(&bundle.InvalidError{}))
			NewWithT(t).Expect(err).To(MatchError("components.yaml line 1: " + test.message))
		})
	}
}

// TestRefusalsThatDependOnVariables: what a default does wrong is no reason to refuse components: the user
// may set the variable. Nor are images that clusterctl does not parse.
func TestRefusalsThatDependOnVariables(t *testing.T) {
	for name, components := range map[string]string{
		"a type":                  deploymentWith("env: [{name: A, value: ${ODD:=1}}]"),
		"an image":                deploymentImage("${ODD:=nginx}"),
		"an image without value":  deploymentImage("${ODD}"),
		"a part of an image":      deploymentImage("${ODD_REGISTRY:=}nginx"),
		"an image that is a type": deploymentImage("${ODD:=1}"),
		"an image of a Pod":       "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{image: a}]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := chartgen.Build(provider("odd", components))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
		})
	}
}
