package cluster

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
)

// TestOwnersOfPredecessor checks that owner references to provider resources are removed, unless something else owns
// the object, too.
func TestOwnersOfPredecessor(t *testing.T) {
	provider := metav1.OwnerReference{
		APIVersion: "operator.cluster.x-k8s.io/v1alpha2", Kind: "CoreProvider", Name: "cluster-api", UID: "1",
	}
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "2"}

	kinds := []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "cert-manager.io", Version: "v1", Kind: "Issuer"}, // merged as JSON
	}
	for _, kind := range kinds {
		for name, c := range map[string]struct {
			owners  []metav1.OwnerReference
			changes bool
		}{
			"none":               {},
			"the provider":       {owners: []metav1.OwnerReference{provider}, changes: true},
			"something else":     {owners: []metav1.OwnerReference{other}},
			"and something else": {owners: []metav1.OwnerReference{provider, other}},
		} {
			t.Run(kind.Kind+" of "+name, func(t *testing.T) {
				g := NewWithT(t)
				target := &unstructured.Unstructured{}
				target.SetGroupVersionKind(kind)
				target.SetName("a")

				live := target.DeepCopy()
				live.SetOwnerReferences(c.owners)

				info := &resource.Info{Object: target, Mapping: &meta.RESTMapping{GroupVersionKind: kind}}
				patch, err := NewPatch(info, target, live)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(target.GetOwnerReferences()).To(BeEmpty())

				if !c.changes {
					g.Expect(patch).To(BeNil())
					return
				}

				g.Expect(patch).NotTo(BeNil())
				g.Expect(string(patch.Data)).To(Or(
					MatchJSON(`{"metadata": {"ownerReferences": null}}`),
					MatchJSON(`{"metadata": {"ownerReferences": [{"$patch": "delete", "uid": "1"}]}}`)))
			})
		}
	}
}
