package bundle

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestMoveCRD(t *testing.T) {
	for name, test := range map[string]struct {
		crd, want string
		moved     bool
	}{
		"both references": {
			crd:   "metadata: {annotations: {cert-manager.io/inject-ca-from: old/cert}}\n" + published("old"),
			want:  "metadata: {annotations: {cert-manager.io/inject-ca-from: new/cert}}\n" + published("new"),
			moved: true,
		},
		"the certificate alone": {
			crd:   "metadata: {annotations: {cert-manager.io/inject-ca-from: old/cert, other: a/b}}",
			want:  "metadata: {annotations: {cert-manager.io/inject-ca-from: new/cert, other: a/b}}",
			moved: true,
		},
		"the webhook alone": {crd: published("old"), want: published("new"), moved: true},
		"a webhook without a namespace": {
			crd:   "spec: {conversion: {webhook: {clientConfig: {service: {name: webhook}}}}}",
			want:  "spec: {conversion: {webhook: {clientConfig: {service: {name: webhook, namespace: new}}}}}",
			moved: true,
		},
		"no reference": {
			crd:  "metadata: {name: a}\nspec: {scope: Cluster}",
			want: "metadata: {name: a}\nspec: {scope: Cluster}",
		},
		"a webhook with a URL": {
			crd:  "spec: {conversion: {webhook: {clientConfig: {url: 'https://example.com'}}}}",
			want: "spec: {conversion: {webhook: {clientConfig: {url: 'https://example.com'}}}}",
		},
		"an annotation without a namespace": {
			crd:  "metadata: {annotations: {cert-manager.io/inject-ca-from: cert}}",
			want: "metadata: {annotations: {cert-manager.io/inject-ca-from: cert}}",
		},
		"a Service that is text": {
			crd:  "metadata: {name: a}\nspec: {conversion: {webhook: {clientConfig: {service: webhook}}}}",
			want: "metadata: {name: a}\nspec: {conversion: {webhook: {clientConfig: {service: webhook}}}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			crd := readCRD(g, test.crd)

			g.Expect(MoveCRD(crd, "new")).To(Equal(test.moved))
			g.Expect(crd).To(Equal(readCRD(g, test.want)))
		})
	}
}

// published returns a CRD that a webhook in a namespace converts.
func published(namespace string) string {
	return "spec: {conversion: {webhook: {clientConfig: {service: {name: webhook, path: /convert, namespace: " +
		namespace + "}}}}}"
}

func readCRD(g Gomega, text string) *unstructured.Unstructured {
	crd := &unstructured.Unstructured{}
	g.Expect(yaml.Unmarshal([]byte(text), &crd.Object)).To(Succeed())

	return crd
}
