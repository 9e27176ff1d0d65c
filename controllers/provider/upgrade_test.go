package provider

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// TestGivenUp: a lost status does not have a version tried again that was given up, and a user's request does.
func TestGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		observed int64
		changed  bool
		want     string
	}{
		"as before":              {1, false, "v1.2.0"},
		"another spec":           {1, true, ""},
		"the status was lost":    {-1, true, "v1.2.0"},
		"and so was its default": {0, true, "v1.2.0"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha2.InfrastructureProvider{}
			p.SetAnnotations(map[string]string{v1alpha2.GivenUpVersionAnnotation: "v1.2.0"})
			p.Status.ObservedGeneration = c.observed

			r := &run{provider: p}
			r.policy.SpecChanged = c.changed

			NewWithT(t).Expect(r.givenUp()).To(Equal(c.want))
		})
	}
}
