package health

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/controllers/object"
)

// TestLittleIsKept: anyone may create objects with the label of a provider, as large as the API server takes them.
func TestLittleIsKept(t *testing.T) {
	g := NewWithT(t)
	large := strings.Repeat("x", 1<<20)
	labels := map[string]string{"cluster.x-k8s.io/provider": "infrastructure-docker", "large": large}
	annotations := map[string]string{"meta.helm.sh/release-name": large, "large": large}

	var containers []any
	for n := range 1000 {
		containers = append(containers, map[string]any{"name": fmt.Sprint("c", n), "image": strings.Repeat("x", 1000)})
	}

	deployment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"large": large}},
			"template": map[string]any{"spec": map[string]any{"containers": containers}},
		},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "ReplicaFailure", "status": "True", "message": large},
			map[string]any{"type": "Stalled", "status": "True", "message": large},
		}},
	}}
	deployment.SetLabels(labels)
	deployment.SetAnnotations(annotations)

	partial := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Labels: labels, Annotations: annotations,
		ManagedFields: []metav1.ManagedFieldsEntry{{FieldsV1: &metav1.FieldsV1{Raw: []byte(large)}}},
	}}

	whole := seenOf(object.KeyOf(deployment), deployment)
	g.Expect(len(fmt.Sprintf("%+v", whole))).To(BeNumerically("<", 8<<10))
	g.Expect(whole.Labels).To(HaveKeyWithValue("cluster.x-k8s.io/provider", "infrastructure-docker"))
	g.Expect(whole.selector.Empty()).To(BeFalse(), "it must not select all pods")

	g.Expect(len(fmt.Sprintf("%+v", seenOf(object.Key{Name: "a"}, partial)))).To(BeNumerically("<", 4<<10))
}
