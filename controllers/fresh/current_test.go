package fresh_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// list returns the node that the current reader lists; nil if there is none.
func (w *world) list(t *testing.T, name string) *corev1.Node {
	t.Helper()

	found := &corev1.NodeList{}
	byName := client.MatchingFields{"metadata.name": name}
	NewWithT(t).Expect(w.Current().List(t.Context(), found, byName)).To(Succeed())

	if len(found.Items) == 0 {
		return nil
	}

	return &found.Items[0]
}

func TestListCurrent(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)

	node := w.list(t, key.Name)
	g.Expect(node).NotTo(BeNil(), "the cache does not have it yet")
	g.Expect(label(t, w, node, "patched")).To(Succeed())

	w.catchUp(t)
	before := w.reads
	g.Expect(w.list(t, key.Name).Labels).To(HaveKeyWithValue("label", "patched"))
	g.Expect(w.reads).To(Equal(before), "the cache shows it")

	g.Expect(label(t, w, w.cached.DeepCopy(), "patched again")).To(Succeed())
	g.Expect(w.list(t, key.Name).Labels).To(HaveKeyWithValue("label", "patched again"), "the cache is older")

	g.Expect(w.server.Delete(t.Context(), node)).To(Succeed())
	w.cached = nil
	g.Expect(w.list(t, key.Name)).To(BeNil())
	g.Expect(w.list(t, "b")).To(BeNil())
}
