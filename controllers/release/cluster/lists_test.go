package cluster

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
)

func objects(kinds ...string) ResourceList {
	var list ResourceList

	for _, kind := range kinds {
		list = append(list, &resource.Info{
			Name:    kind,
			Mapping: &meta.RESTMapping{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: kind}},
		})
	}

	return list
}

func names(list ResourceList) []string {
	found := make([]string, 0, len(list))
	for _, info := range list {
		found = append(found, info.Name)
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

func TestMissing(t *testing.T) {
	lists := []ResourceList{objects("A", "B"), objects("B", "C")}

	NewWithT(t).Expect(names(missing(lists, objects("A")))).To(Equal([]string{"B", "C"}))
	NewWithT(t).Expect(names(missing(lists, nil))).To(Equal([]string{"A", "B", "C"}))
}
