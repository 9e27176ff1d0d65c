package crds

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestReplaceRetired(t *testing.T) {
	r := &rewriter{retired: []string{"example.com/v1alpha1"}, successor: "example.com/v1"}
	entry := func(manager, version string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, APIVersion: "example.com/" + version}
	}

	for name, c := range map[string]struct {
		entries, want []metav1.ManagedFieldsEntry
		changed       bool
	}{
		"nothing retired": {
			entries: []metav1.ManagedFieldsEntry{entry("a", "v1"), entry("b", "v1beta1")},
			want:    []metav1.ManagedFieldsEntry{entry("a", "v1"), entry("b", "v1beta1")},
		},
		"a retired version": {
			entries: []metav1.ManagedFieldsEntry{entry("a", "v1alpha1"), entry("b", "v1")},
			want:    []metav1.ManagedFieldsEntry{entry("a", "v1"), entry("b", "v1")},
			changed: true,
		},
		"a manager with both versions": {
			entries: []metav1.ManagedFieldsEntry{entry("a", "v1alpha1"), entry("a", "v1")},
			want:    []metav1.ManagedFieldsEntry{entry("a", "v1")},
			changed: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			replaced, changed := r.replaceRetired(c.entries)

			g.Expect(replaced).To(Equal(c.want))
			g.Expect(changed).To(Equal(c.changed))
		})
	}
}
