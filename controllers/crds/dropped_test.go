package crds

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// TestIsOthers: a CRD that another provider has, or gets, is not lost with the one that drops it.
func TestIsOthers(t *testing.T) {
	for name, c := range map[string]struct {
		label, adopt, includedBy string
		want                     bool
	}{
		"the provider's":                   {label: "infrastructure-x"},
		"without a label":                  {},
		"another provider's":               {label: "infrastructure-y", want: true},
		"handed over":                      {label: "infrastructure-x", adopt: "infrastructure-y", want: true},
		"handed over to the provider":      {label: "infrastructure-x", adopt: "infrastructure-x"},
		"in the chart of another provider": {label: "infrastructure-x", includedBy: "infrastructure-y", want: true},
		"in its own chart":                 {label: "infrastructure-x", includedBy: "infrastructure-x"},
	} {
		t.Run(name, func(t *testing.T) {
			a := NewApplier(Clients{})
			if c.includedBy != "" {
				a.rememberCRDs(c.includedBy, []chart.File{{Name: "crds/samples.example.com.yaml"}})
			}

			crd := &apiextensionsv1.CustomResourceDefinition{}
			crd.Name = "samples.example.com"
			crd.Labels = map[string]string{v1alpha2.ClusterctlProviderLabel: c.label}
			crd.Annotations = map[string]string{v1alpha2.AdoptCRDAnnotation: c.adopt}

			NewWithT(t).Expect(a.isOthers("infrastructure-x", crd)).To(Equal(c.want))
		})
	}
}
