package apply

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/controllers/object"
)

func TestDifferenceString(t *testing.T) {
	config := object.Key{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Name: "config"}

	for name, tt := range map[string]struct {
		difference Difference
		want       string
	}{
		"missing":  {Difference{Object: config, Missing: true}, "ConfigMap config is missing"},
		"obstacle": {Difference{Object: config, Obstacle: "it is held"}, "ConfigMap config: it is held"},
		"fields":   {Difference{Object: config, Fields: []string{"/a", "/b"}}, "ConfigMap config: /a, /b"},
		"many fields": {
			Difference{Object: config, Fields: []string{"/a", "/b", "/c", "/d", "/e", "/f", "/g"}},
			"ConfigMap config: /a, /b, /c, /d, /e and 2 more",
		},
		"changed by clusterctl": {
			Difference{Object: config, Fields: []string{"/a"}, live: changedBy("clusterctl")},
			"ConfigMap config: /a, changed by clusterctl; to upgrade a provider that Capstan manages, use capstan upgrade " +
				"apply or spec.version",
		},
		"changed by another program": {
			Difference{Object: config, Fields: []string{"/a"}, live: changedBy("kubectl")}, "ConfigMap config: /a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(tt.difference.String()).To(Equal(tt.want))
		})
	}
}

// changedBy returns an object that a field manager has changed last.
func changedBy(manager string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, Time: &metav1.Time{}}})

	return o
}

func TestChangedFields(t *testing.T) {
	object := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	}
	before := object(map[string]any{"a": "1", "b": []any{"x", "y"}, "c": []any{"x"}, "d/e~f": "1", "same": "1"})
	after := object(map[string]any{"a": "2", "b": []any{"x", "z"}, "c": []any{}, "g": "1", "same": "1"})

	before.SetResourceVersion("1")
	after.SetResourceVersion("2")

	after.Object["status"] = map[string]any{"ready": true}

	NewWithT(t).Expect(changedFields(before, after)).To(Equal([]string{
		"/spec/a", "/spec/b/1", "/spec/c", "/spec/d~1e~0f", "/spec/g",
	}))
}

func TestDiffering(t *testing.T) {
	defined := map[string]any{"a": map[string]any{"b": "1", "c": "2"}, "l": []any{"x"}, "same": "1"}
	live := map[string]any{"a": map[string]any{"b": "2"}, "l": []any{"y"}, "same": "1", "more": "1"}

	NewWithT(t).Expect(differing("", defined, live)).To(ConsistOf("/a/b", "/a/c", "/l"))
}

func TestOverlapping(t *testing.T) {
	pointers := []string{"/spec/a", "/spec/a/b", "/spec/ab", "/spec/c/d", "/spec"}

	NewWithT(t).Expect(overlapping(pointers, []string{"/spec/a", "/spec/c"})).
		To(Equal([]string{"/spec/a", "/spec/a/b", "/spec/c/d", "/spec"}))
}
