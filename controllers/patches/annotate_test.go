package patches_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/patches"
)

func TestPoliciesAreDefaults(t *testing.T) {
	g := NewWithT(t)

	none, err := patches.New(patches.Input{Policies: &v1alpha2.PoliciesSpec{Update: v1alpha2.UpdateAlways}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(none).To(BeNil(), "objects without annotations stay as they are")

	renderer, err := patches.New(patches.Input{
		Policies: &v1alpha2.PoliciesSpec{Adoption: v1alpha2.AdoptionNever, Delete: v1alpha2.DeleteOrphan},
		Patches: []v1alpha2.Patch{{
			Target: &v1alpha2.PatchTarget{Name: "patched"},
			Patch:  "metadata: {annotations: {capstan.dev/delete-policy: Delete}}",
		}},
	})
	g.Expect(err).NotTo(HaveOccurred())

	out, err := renderer.Render([]byte(`---
# Source: a/templates/a.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  annotations:
    capstan.dev/adoption-policy: Always
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: patched
`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(out)).To(Equal(`---
# Source: a/templates/a.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  annotations:
    capstan.dev/adoption-policy: Always
    capstan.dev/delete-policy: 'Orphan'
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: patched
  annotations:
    capstan.dev/delete-policy: Delete
    capstan.dev/adoption-policy: 'Never'
`))
}
