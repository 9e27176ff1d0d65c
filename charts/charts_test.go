package charts

import (
	"regexp"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestKindsOfCRDs(t *testing.T) {
	g := NewWithT(t)
	definitions, err := CRDs()
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

// TestDescriptionsOfCRDs checks that the paragraphs of descriptions are not broken into lines, because kubectl explain
// breaks them itself.
func TestDescriptionsOfCRDs(t *testing.T) {
	definitions, err := CRDs()
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
