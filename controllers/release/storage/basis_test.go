package storage

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capstan-project/capstan/controllers/release/state"
)

func TestBasisLabels(t *testing.T) {
	digest := BasisDigest([]byte("content"))

	for name, basis := range map[string]state.Basis{
		"everything": {
			Variables: digest, Manifests: digest, Source: digest,
			ImageRegistry: digest, ImageOverrides: digest, Managers: digest,
		},
		"without settings for managers": {Source: digest, ImageRegistry: digest, ImageOverrides: digest},
		"the least":                     {Source: digest},
		"unknown":                       {},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			labels := basisLabels(basis)

			for key, value := range labels {
				g.Expect(validation.IsValidLabelValue(value)).To(BeEmpty(), key)
			}

			g.Expect(basisOf(labels)).To(Equal(basis))
		})
	}
}
