package crds

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/chart"
)

func TestDifferences(t *testing.T) {
	definition := newDefinition(chart.File{Name: "crds/apples.example.com.yaml", Data: []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: apples.example.com, labels: {color: red}}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Apple, plural: apples}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {
      size: {type: integer, default: 1}, sort: {type: string, maxLength: 9}}}}}}
`)}, "fruit")

	const inSpec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/"

	for name, c := range map[string]struct {
		change func(*apiextensionsv1.CustomResourceDefinition)
		kept   []string
		want   []string
	}{
		"only annotations": {change: func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Annotations = nil }},
		"fields of the schema": {
			change: func(crd *apiextensionsv1.CustomResourceDefinition) {
				properties := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
				properties["size"] = apiextensionsv1.JSONSchemaProps{
					Type: "integer", Default: &apiextensionsv1.JSON{Raw: []byte("2")},
				}
				properties["own"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
				delete(properties, "sort")
			},
			want: []string{inSpec + "own", inSpec + "size/default", inSpec + "sort"},
		},
		"a version, while another is kept": {
			change: func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Versions[0].Served = false
				crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1beta1"},
					apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1alpha1"})
			},
			kept: []string{"v1beta1"},
			want: []string{"/spec/versions"},
		},
		"names and labels": {
			change: func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Labels = nil
				crd.Spec.Names.Kind = "Pear"
			},
			want: []string{"/metadata/labels", "/spec/names/kind"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			live := &apiextensionsv1.CustomResourceDefinition{}
			g.Expect(yaml.Unmarshal(definition.file.Data, live)).To(Succeed())
			c.change(live)

			plan := &Plan{changes: []*change{
				{definition: definition, live: live, kept: c.kept}, {definition: newDefinition(chart.File{Name: "new"}, "")},
			}}
			differences, err := NewApplier(Clients{}).Differences(plan)
			g.Expect(err).NotTo(HaveOccurred())

			if c.want == nil {
				g.Expect(differences).To(BeEmpty())
			} else {
				g.Expect(differences).To(Equal([]Difference{{Name: "apples.example.com", Fields: c.want}}))
			}
		})
	}
}
