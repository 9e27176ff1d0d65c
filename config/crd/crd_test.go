package crd

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestBases(t *testing.T) {
	g := NewWithT(t)
	definitions, err := Bases()
	g.Expect(err).NotTo(HaveOccurred())

	var kinds []string

	for _, definition := range definitions {
		spec := definition.Object["spec"].(map[string]any)
		kinds = append(kinds, spec["names"].(map[string]any)["kind"].(string))
	}

	var want []string
	for _, kind := range v1alpha2.ProviderTypes() {
		want = append(want, string(kind))
	}

	g.Expect(kinds).To(ConsistOf(want))
}

func TestNewer(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"v1.2.0", "v1.1.9", true},
		{"v1.1.9", "v1.2.0", false},
		{"v1.2.0", "v1.2.0", false},
		{"v1.2.0", "v1.2.0-rc.1", true},
		{"", "v1.0.0", false},
		{"dev", "v1.0.0", false},
		{"v1.0.0", "dev", false},
	} {
		if got := newer(test.a, test.b); got != test.want {
			t.Errorf("newer(%q, %q) is %t", test.a, test.b, got)
		}
	}
}
