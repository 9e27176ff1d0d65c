package crd

import (
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestBases(t *testing.T) {
	g := NewWithT(t)
	definitions, err := Definitions()
	g.Expect(err).NotTo(HaveOccurred())

	var kinds []string

	for _, definition := range definitions {
		spec := definition.Object["spec"].(map[string]any)
		kinds = append(kinds, spec["names"].(map[string]any)["kind"].(string))
	}

	var want []string
	for _, kind := range v1alpha2.ProviderTypes() {
		want = append(want, string(kind))
	}

	g.Expect(kinds).To(ConsistOf(want))
}

// TestDescriptions checks that the paragraphs of descriptions are not broken into lines, because kubectl explain
// breaks them itself.
func TestDescriptions(t *testing.T) {
	definitions, err := Definitions()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	brokenLine := regexp.MustCompile("(?m)^[^|\n].*\n[[:alpha:]`\"(]")
	count := 0

	for _, definition := range definitions {
		for _, description := range descriptions(definition.Object) {
			count++

			if brokenLine.MatchString(description) {
				t.Errorf("%s: a paragraph has several lines:\n%s", definition.GetName(), description)
			}
		}
	}

	NewWithT(t).Expect(count).To(BeNumerically(">", 1000))
}

// descriptions returns all descriptions in a value.
func descriptions(value any) []string {
	var found []string

	switch value := value.(type) {
	case map[string]any:
		if description, isText := value["description"].(string); isText {
			found = append(found, description)
		}

		for _, field := range value {
			found = append(found, descriptions(field)...)
		}
	case []any:
		for _, item := range value {
			found = append(found, descriptions(item)...)
		}
	}

	return found
}

func TestNewer(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"v1.2.0", "v1.1.9", true},
		{"v1.1.9", "v1.2.0", false},
		{"v1.2.0", "v1.2.0", false},
		{"v1.2.0", "v1.2.0-rc.1", true},
		{"", "v1.0.0", false},
		{"dev", "v1.0.0", false},
		{"v1.0.0", "dev", false},
	} {
		if got := newer(test.a, test.b); got != test.want {
			t.Errorf("newer(%q, %q) is %t", test.a, test.b, got)
		}
	}
}

// TestUpgrade checks that a downgrade of the operator leaves what a newer version has applied.
func TestUpgrade(t *testing.T) {
	for applied, changes := range map[string]bool{"": true, "v1.0.0": true, "v1.1.0": true, "v1.2.0": false} {
		g := NewWithT(t)
		definitions, err := Definitions()
		g.Expect(err).NotTo(HaveOccurred())

		existing := make([]client.Object, 0, len(definitions))

		for _, definition := range definitions {
			definition.SetAnnotations(map[string]string{versionAnnotation: applied})
			existing = append(existing, definition)
		}

		c := fake.NewClientBuilder().WithObjects(existing...).Build()
		g.Expect(Upgrade(t.Context(), c, "v1.1.0")).To(Succeed())

		want := applied
		if changes {
			want = "v1.1.0"
		}

		for _, definition := range existing {
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(definition.GetObjectKind().GroupVersionKind())
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(definition), live)).To(Succeed())
			g.Expect(live.GetAnnotations()).To(HaveKeyWithValue(versionAnnotation, want))
		}
	}
}
