package manifest_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/controllers/manifest"
)

func TestCheckType(t *testing.T) {
	const (
		deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n"
		crd        = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n"
		own        = "apiVersion: example.com/v1\nkind: Deployment\n"
	)

	for text, want := range map[string]string{
		deployment + "spec: {replicas: 1, unknown: {}}\n": "",
		deployment + "spec: {replicas: null}\n":           "",
		deployment + "spec: {template: {spec: {containers: [{name: m, env: [{name: A, value: 1}]}]}}}\n": "the field " +
			"spec.template.spec.containers.env.value is a number, expected a text: put it in quotes",
		deployment + "spec: {template: {spec: {containers: [{name: m, args: [a, true]}]}}}\n": "the field " +
			"spec.template.spec.containers.args is a boolean, expected a text: put it in quotes",
		deployment + "spec: {replicas: one}\n": "the field spec.replicas is a text, " +
			"expected a whole number without quotes",
		deployment + "spec: {template: {spec: {hostNetwork: \"true\"}}}\n": "the field spec.template.spec.hostNetwork " +
			"is a text, expected a boolean, true or false without quotes",
		deployment + "spec: {template: {spec: {containers: {name: m}}}}\n": "the field spec.template.spec.containers " +
			"is a map, expected a list",
		deployment + "spec: [a]\n": "the field spec is a list, expected a map",
		deployment + "spec: {template: {spec: {containers: [{name: m, resources: {limits: {cpu: many}}}]}}}\n": "the field " +
			"spec.template.spec.containers.resources.limits.cpu is a text, expected a quantity, such as 100m or 1Gi",
		deployment + "spec: {template: {metadata: {creationTimestamp: soon}}}\n": "the field " +
			"spec.template.metadata.creationTimestamp is a text, expected one in the format that its kind requires",

		own + "spec: {replicas: one}\n": "",
		own + "metadata: {name: 1}\n":   "the field metadata.name is a number, expected a text: put it in quotes",

		crd + "spec: {versions: [{schema: {openAPIV3Schema: {type: object, default: [1]}}}]}\n": "",
		crd + "spec: {versions: [{schema: {openAPIV3Schema: {type: 1}}}]}\n": "the field " +
			"spec.versions.schema.openAPIV3Schema.type is a number, expected a text: put it in quotes",
		crd + "spec: {versions: [{schema: {openAPIV3Schema: {properties: {a: {required: b}}}}}]}\n": "the field " +
			"spec.versions.schema.openAPIV3Schema.properties.required is a text, expected a list",
	} {
		t.Run(text, func(t *testing.T) {
			g := NewWithT(t)

			var content map[string]any
			g.Expect(yaml.Unmarshal([]byte(text), &content)).To(Succeed())

			err := manifest.CheckType(&unstructured.Unstructured{Object: content})
			if want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}

			g.Expect(err).To(MatchError(want))
		})
	}
}
