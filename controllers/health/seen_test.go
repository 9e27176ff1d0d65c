package health

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

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
		ManagedFields: []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(large)}},
	}}

	whole := seenOf(object.KeyOf(deployment), deployment)
	g.Expect(len(fmt.Sprintf("%+v", whole))).To(BeNumerically("<", 8<<10))
	g.Expect(whole.Labels).To(HaveKeyWithValue("cluster.x-k8s.io/provider", "infrastructure-docker"))
	g.Expect(whole.selector.Empty()).To(BeFalse(), "it must not select all pods")

	g.Expect(len(fmt.Sprintf("%+v", seenOf(object.Key{Name: "a"}, partial)))).To(BeNumerically("<", 4<<10))
}

// TestListsAreReduced: API servers that do not send the present objects as events are asked for pages.
func TestListsAreReduced(t *testing.T) {
	g := NewWithT(t)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "manager"}}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "webhook"}}
	tracker := NewTracker(Options{Client: fake.NewClientBuilder().WithObjects(deployment, service).Build()})

	for _, kind := range []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("Deployment"), corev1.SchemeGroupVersion.WithKind("Service"),
	} {
		page, err := toolscache.ToListerWatcherWithContext(tracker.listWatch(place{GroupVersionKind: kind}, &watch{})).
			ListWithContext(t.Context(), metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())

		items, err := meta.ExtractList(page)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(items).To(ConsistOf(BeAssignableToTypeOf(&seen{})))
	}
}
