package predecessor

import (
	"maps"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// TestGiveBack checks that a resource is, after it was taken over and given back, as cluster-api-operator left it.
func TestGiveBack(t *testing.T) {
	hash := strings.Repeat("a1", 32)

	for name, c := range map[string]struct {
		before, after map[string]string // annotations
	}{
		"with its hash": {
			before: map[string]string{"a": "b", v1alpha2.AppliedSpecHashAnnotation: hash},
			after:  map[string]string{"a": "b", v1alpha2.AppliedSpecHashAnnotation: hash},
		},
		"without annotations": {},
		"with a value that is no hash": {
			before: map[string]string{v1alpha2.AppliedSpecHashAnnotation: strings.Repeat("x", maxHash+1)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := &v1alpha2.CoreProvider{}
			p.Finalizers = []string{"other", Finalizer}
			p.Annotations = maps.Clone(c.before)

			g.Expect(TakeOver(p)).To(BeTrue())
			g.Expect(TakeOver(p)).To(BeFalse())
			g.Expect(WasTakenOver(p)).To(BeTrue())
			g.Expect(p.Finalizers).To(Equal([]string{"other"}))

			p.Finalizers = append(p.Finalizers, v1alpha2.Finalizer)
			annotate(p, v1alpha2.AppliedSpecHashAnnotation, "of Capstan")
			annotate(p, v1alpha2.GiveBackAnnotation, "true")
			g.Expect(IsGivenBack(p)).To(BeFalse())

			GiveBack(p)
			g.Expect(IsGivenBack(p)).To(BeTrue())
			g.Expect(p.Finalizers).To(ConsistOf("other", Finalizer))

			delete(p.Annotations, v1alpha2.GiveBackAnnotation)
			g.Expect(IsGivenBack(p)).To(BeFalse())
			g.Expect(p.Annotations).To(HaveLen(len(c.after)))

			for key, value := range c.after {
				g.Expect(p.Annotations).To(HaveKeyWithValue(key, value))
			}
		})
	}
}
