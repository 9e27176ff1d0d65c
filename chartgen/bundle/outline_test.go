package bundle

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/test/testproviders"
)

// TestOutlineObject: an outline is equal to the whole object without the bulk, in any YAML style.
func TestOutlineObject(t *testing.T) {
	files, err := filepath.Glob("../../test/data/providers/*/*/*-components.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	NewWithT(t).Expect(files).NotTo(BeEmpty())

	more, err := testproviders.Glob(t, "*/*/*-components.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	files = append(files, more...)

	texts := map[string][]byte{}
	for _, file := range files {
		texts[file], err = os.ReadFile(file)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	}

	for name, text := range awkward {
		texts[name] = []byte(text)
	}

	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			whole, err := ParseComponents(text)
			g.Expect(err).NotTo(HaveOccurred())

			for _, doc := range whole.Documents {
				expanded, err := doc.Text.Expand(doc.Values())
				g.Expect(err).NotTo(HaveOccurred())

				outlined, err := OutlineObject(Normalize(expanded))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(withoutBulk(&unstructured.Unstructured{Object: outlined})).To(Equal(withoutBulk(doc.Object)))
			}
		})
	}
}

func withoutBulk(o *unstructured.Unstructured) map[string]any {
	versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
	for _, v := range versions {
		if v, ok := v.(map[string]any); ok {
			delete(v, "schema")
		}
	}

	if versions != nil {
		_ = unstructured.SetNestedSlice(o.Object, versions, "spec", "versions")
	}

	delete(o.Object, "webhooks")

	return o.Object
}

// awkward are CRDs and webhook configurations in unusual styles.
var awkward = map[string]string{
	"schema last in its version, blank lines, a comment at the margin": `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: a
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        description: |-
          one

          schema:
            openAPIV3Schema: two
# margin
        properties:
          schema:
            type: object
  - name: v2
    schema:
      openAPIV3Schema: {}
    storage: true
  scope: Cluster
`,
	"indented lists": `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: a
spec:
    versions:
      - name: v1
        schema:
            openAPIV3Schema:
                type: object
        served: true
`,
	"schema first": `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: a
spec:
  versions:
  - schema:
      openAPIV3Schema:
        type: object
    name: v1
`,
	"flow style": `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: a}
spec: {versions: [{name: v1, schema: {openAPIV3Schema: {type: object}}}]}
`,
	"webhooks before the name": `
apiVersion: admissionregistration.k8s.io/v1
webhooks:
- name: w

  rules:
  - operations: [CREATE]
kind: ValidatingWebhookConfiguration
metadata:
  name: a
`,
	"webhooks indented, and named in a comment": `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: a
  annotations:
    text: |
      webhooks:
      - none
webhooks:
  - name: w
`,
	"no webhooks": `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: a
`,
	"carriage returns": "apiVersion: admissionregistration.k8s.io/v1\r\nkind: MutatingWebhookConfiguration\r\n" +
		"metadata:\r\n  name: a\r\nwebhooks:\r\n- name: w\r\n",
}
