package reconcile

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/controllers/health"
)

func TestKeptImages(t *testing.T) {
	published := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "a", "name": "b"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "manager", "image": "example.com/b:v1.1.0"},
			map[string]any{"name": "proxy", "image": "example.com/proxy:v1"},
		}}}},
	}}

	for name, test := range map[string]struct {
		found map[string]string
		want  []string
	}{
		"all are those of the revision": {found: health.Images(published)},
		"one is of another version": {
			found: map[string]string{"manager": "example.com/b:v1.0.0", "proxy": "example.com/proxy:v1", "injected": "c"},
			want: []string{"container manager of Deployment a/b stays at the image example.com/b:v1.0.0 instead of " +
				"example.com/b:v1.1.0"},
		},
		"the object does not exist": {},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(keptImages(published, health.Result{Images: test.found})).To(Equal(test.want))
		})
	}
}
