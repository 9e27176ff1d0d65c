package manifest_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/manifest"
)

func TestTargets(t *testing.T) {
	for name, c := range map[string]struct {
		target v1alpha2.PatchTarget
		want   []string
	}{
		"any object": {
			v1alpha2.PatchTarget{},
			[]string{"ServiceAccount manager", "ClusterRole manager", "Deployment manager", "Settings settings"},
		},
		"group": {v1alpha2.PatchTarget{Group: "apps"}, []string{"Deployment manager"}},
		"group and version": {
			v1alpha2.PatchTarget{Group: "tiny.example.com", Version: "v1"},
			[]string{"Settings settings"},
		},
		"version": {
			v1alpha2.PatchTarget{Version: "v1", Kind: "ServiceAccount"},
			[]string{"ServiceAccount manager"},
		},
		"name": {
			v1alpha2.PatchTarget{Name: "manager"},
			[]string{"ServiceAccount manager", "ClusterRole manager", "Deployment manager"},
		},
		"name is not a pattern": {v1alpha2.PatchTarget{Name: "manag.*"}, nil},
		"namespace": {
			v1alpha2.PatchTarget{Namespace: "tiny"},
			[]string{"ServiceAccount manager", "Deployment manager", "Settings settings"},
		},
		"labels": {
			v1alpha2.PatchTarget{LabelSelector: "app=tiny"},
			[]string{"ServiceAccount manager", "Deployment manager"},
		},
		"labels, by expression": {
			v1alpha2.PatchTarget{LabelSelector: "app in (tiny), tier!=control"},
			[]string{"ServiceAccount manager"},
		},
		"all must match":          {v1alpha2.PatchTarget{Kind: "Deployment", LabelSelector: "tier=none"}, nil},
		"another version of it":   {v1alpha2.PatchTarget{Group: "apps", Version: "v1beta1"}, nil},
		"kind in the wrong group": {v1alpha2.PatchTarget{Group: "extensions", Kind: "Deployment"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			got, err := render(
				t,
				manifest.Input{Patches: []v1alpha2.Patch{{Patch: "metadata: {annotations: {hit: here}}", Target: &c.target}}},
			)
			if c.want == nil {
				g.Expect(err).To(MatchError(ContainSubstring("spec.patches[0]: it matches no object")))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())

			g.Expect(hit(got)).To(ConsistOf(c.want))
		})
	}
}
