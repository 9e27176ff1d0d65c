package crds

import (
	"slices"
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

// TestOfProvider: which of the CRDs with a provider's label are parts of it.
func TestOfProvider(t *testing.T) {
	for name, c := range map[string]struct {
		applied []string
		spec    *v1alpha2.CRDsSpec
		want    []string
	}{
		"installed by another program": {nil, nil, []string{"a", "b"}},
		"one created at run time":      {[]string{"a"}, nil, []string{"a"}},
		"one that the resource leaves to others": {
			[]string{"a"}, &v1alpha2.CRDsSpec{Unmanaged: []string{"b"}}, []string{"a", "b"},
		},
		"those that existed stay": {
			[]string{"a"}, &v1alpha2.CRDsSpec{Policy: v1alpha2.CRDsCreateOnly}, []string{"a", "b"},
		},
		"others are left": {[]string{"a"}, &v1alpha2.CRDsSpec{Unmanaged: []string{"c"}}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			var labelled []*apiextensionsv1.CustomResourceDefinition

			for _, name := range []string{"a", "b"} {
				d := &apiextensionsv1.CustomResourceDefinition{}
				d.Name = name

				if slices.Contains(c.applied, name) {
					d.Annotations = map[string]string{digestAnnotation: "0"}
				}

				labelled = append(labelled, d)
			}

			var names []string
			for _, d := range OfProvider(labelled, c.spec) {
				names = append(names, d.Name)
			}

			NewWithT(t).Expect(names).To(Equal(c.want))
		})
	}
}
