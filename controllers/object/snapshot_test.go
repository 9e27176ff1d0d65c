package object

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestSnapshotSame(t *testing.T) {
	snapshot := func(version string, change func(map[string]any)) Snapshot {
		o := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "x", "annotations": map[string]any{}, "resourceVersion": version},
			"spec":     map[string]any{"replicas": int64(1)},
		}}
		change(o.Object)

		return SnapshotOf(KeyOf(o), o)
	}
	metadata := func(o map[string]any) map[string]any { return o["metadata"].(map[string]any) }
	annotate := func(key string) func(map[string]any) {
		return func(o map[string]any) { metadata(o)["annotations"].(map[string]any)[key] = "2" }
	}
	before := snapshot("1", func(map[string]any) {})

	for name, tt := range map[string]struct {
		change func(map[string]any)
		want   bool
	}{
		"status":              {func(o map[string]any) { o["status"] = map[string]any{"ready": true} }, true},
		"uid":                 {func(o map[string]any) { metadata(o)["uid"] = "other" }, true},
		"Deployment revision": {annotate(revisionAnnotation), true},
		"annotation":          {annotate("note"), false},
		"spec":                {func(o map[string]any) { o["spec"] = map[string]any{"replicas": int64(2)} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			after := snapshot("2", tt.change)
			g.Expect(after.Same(before)).To(Equal(tt.want))
			g.Expect(before.OlderThan(after)).To(BeTrue())
			g.Expect(after.OlderThan(before)).To(BeFalse())
		})
	}
}

func TestSnapshotOfMetadata(t *testing.T) {
	g := NewWithT(t)
	snapshot := func(version string) Snapshot {
		return SnapshotOf(Key{Name: "x"}, &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Name: "x", ResourceVersion: version},
		})
	}

	g.Expect(snapshot("1").Same(snapshot("1"))).To(BeTrue())
	g.Expect(snapshot("1").Same(snapshot("2"))).To(BeFalse(), "any change counts")
	g.Expect(IsOlder("1", "odd")).To(BeFalse(), "not comparable")
}
