package removal

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// TestSearched: the kinds that are searched are those that the operator's chart permits to watch, and those that the
// operator always watches.
func TestSearched(t *testing.T) {
	g := NewWithT(t)

	text, err := os.ReadFile("../../charts/capstan/files/watched.yaml")
	g.Expect(err).NotTo(HaveOccurred())

	var watched map[string][]string

	g.Expect(yaml.UnmarshalStrict(text, &watched)).To(Succeed())

	permitted := []schema.GroupResource{{Resource: "configmaps"}, {Resource: "secrets"}}

	for group, resources := range watched {
		for _, resource := range resources {
			permitted = append(permitted, schema.GroupResource{Group: group, Resource: resource})
		}
	}

	g.Expect(searched).To(ConsistOf(permitted))
}
