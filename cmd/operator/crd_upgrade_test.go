package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/charts"
)

func TestIsNewer(t *testing.T) {
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
		if got := isNewer(test.a, test.b); got != test.want {
			t.Errorf("isNewer(%q, %q) is %t", test.a, test.b, got)
		}
	}
}

// TestUpgradeCRDs checks that a downgrade of the operator leaves what a newer version has applied.
func TestUpgradeCRDs(t *testing.T) {
	for applied, changes := range map[string]bool{"": true, "v1.0.0": true, "v1.1.0": true, "v1.2.0": false} {
		g := NewWithT(t)
		definitions, err := charts.CRDs()
		g.Expect(err).NotTo(HaveOccurred())

		existing := make([]client.Object, 0, len(definitions))

		for _, definition := range definitions {
			definition.SetAnnotations(map[string]string{versionAnnotation: applied})
			existing = append(existing, definition)
		}

		c := fake.NewClientBuilder().WithObjects(existing...).Build()
		g.Expect(upgradeCRDs(t.Context(), c, "v1.1.0")).To(Succeed())

		want := applied
		if changes {
			want = "v1.1.0"
		}

		for _, definition := range existing {
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(definition.GetObjectKind().GroupVersionKind())
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(definition), live)).To(Succeed())
			g.Expect(live.GetAnnotations()).To(HaveKeyWithValue(versionAnnotation, want))
		}
	}
}
