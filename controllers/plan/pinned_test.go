package plan

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// TestPinned: a range is not resolved again because the status was lost.
func TestPinned(t *testing.T) {
	g := NewWithT(t)
	p := &v1alpha2.InfrastructureProvider{}
	g.Expect(pinned(p)).To(BeEmpty())

	p.SetAnnotations(map[string]string{v1alpha2.ResolvedVersionAnnotation: "v1.0.0"})
	g.Expect(pinned(p)).To(Equal("v1.0.0"))

	p.Status.DesiredVersion = "v1.1.0"
	g.Expect(pinned(p)).To(Equal("v1.1.0"))
}
