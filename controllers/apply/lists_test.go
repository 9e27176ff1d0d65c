package apply

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func objects(kinds ...string) Objects {
	var list Objects

	for _, kind := range kinds {
		o := &unstructured.Unstructured{}
		o.SetKind(kind)
		o.SetName(kind)
		list = append(list, o)
	}

	return list
}

func names(list Objects) []string {
	found := make([]string, 0, len(list))
	for _, o := range list {
		found = append(found, o.GetName())
	}

	return found
}

func TestByKind(t *testing.T) {
	var found [][]string
	for _, kind := range byKind(objects("Custom", "Deployment", "ServiceAccount", "Other", "Deployment")) {
		found = append(found, names(kind))
	}

	NewWithT(t).Expect(found).To(Equal([][]string{
		{"ServiceAccount"},
		{"Deployment", "Deployment"},
		{"Custom", "Other"},
	}))
}
