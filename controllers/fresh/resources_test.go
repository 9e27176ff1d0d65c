package fresh_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestResourcesShowOwnWrites checks that a list shows what was written, although the cache does not yet.
func TestResourcesShowOwnWrites(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	w.catchUp(t)

	list := func() corev1.NodeList {
		found := corev1.NodeList{}
		g.Expect(w.Resources().List(t.Context(), &found)).To(Succeed())
		g.Expect(found.Items).To(HaveLen(1))

		return found
	}

	g.Expect(list().Items[0].Spec.PodCIDR).To(BeEmpty())
	g.Expect(w.reads).To(BeZero())

	changed := w.cached.DeepCopy()
	changed.Spec.PodCIDR = "10.0.0.0/24"
	g.Expect(w.Patch(t.Context(), changed, client.MergeFrom(w.cached))).To(Succeed())
	g.Expect(list().Items[0].Spec.PodCIDR).To(Equal("10.0.0.0/24"))
	g.Expect(w.cached.Spec.PodCIDR).To(BeEmpty(), "what the cache shares is not changed")
	g.Expect(w.reads).To(Equal(1))

	w.catchUp(t)
	g.Expect(list().Items[0].Spec.PodCIDR).To(Equal("10.0.0.0/24"))
	g.Expect(w.reads).To(Equal(1))

	w.fail = errors.New("no answer")
	again := w.cached.DeepCopy()
	again.Spec.PodCIDR = "10.0.1.0/24"
	g.Expect(w.Patch(t.Context(), again, client.MergeFrom(w.cached))).NotTo(Succeed())
	g.Expect(list().Items[0].Spec.PodCIDR).To(Equal("10.0.1.0/24"), "the answer was lost")

	g.Expect(w.server.Delete(t.Context(), again)).To(Succeed())
	g.Expect(list().Items).To(HaveLen(1), "the cache will see that it is gone")
}
