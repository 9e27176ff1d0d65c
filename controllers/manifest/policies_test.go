package manifest_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/manifest"
)

func TestPoliciesAreDefaults(t *testing.T) {
	g := NewWithT(t)

	annotations := func(policies *v1alpha2.PoliciesSpec, own string) any {
		got, err := renderOf(t, manifest.Input{
			Policies: policies,
			Patches: []v1alpha2.Patch{{
				Target: &v1alpha2.PatchTarget{Name: "patched"},
				Patch:  "metadata: {annotations: {capstan.dev/delete-policy: Delete}}",
			}},
		}, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: patched"+own+"}\n")
		g.Expect(err).NotTo(HaveOccurred())

		return got["ConfigMap patched"]["metadata"].(map[string]any)["annotations"]
	}

	g.Expect(annotations(&v1alpha2.PoliciesSpec{Update: v1alpha2.UpdateAlways}, "")).To(Equal(map[string]any{
		"capstan.dev/delete-policy": "Delete",
	}), "what applies anyway is not added")

	policies := &v1alpha2.PoliciesSpec{Adoption: v1alpha2.AdoptionNever, Delete: v1alpha2.DeleteOrphan}
	g.Expect(annotations(policies, ", annotations: {capstan.dev/update-policy: Once}")).To(Equal(map[string]any{
		"capstan.dev/update-policy": "Once", "capstan.dev/delete-policy": "Delete", "capstan.dev/adoption-policy": "Never",
	}))
}

// TestPublishersAreBound checks that the components of a provider cannot allow more than its resource does.
func TestPublishersAreBound(t *testing.T) {
	never := &v1alpha2.PoliciesSpec{
		Adoption: v1alpha2.AdoptionNever, Recreate: v1alpha2.RecreateNever, Delete: v1alpha2.DeleteOrphan,
	}
	always := &v1alpha2.PoliciesSpec{
		Adoption: v1alpha2.AdoptionAlways, Recreate: v1alpha2.RecreateAlways,
		MissingNamespaces: v1alpha2.MissingNamespaceCreate,
	}

	for name, c := range map[string]struct {
		policies *v1alpha2.PoliciesSpec
		object   string
		adoption string // the policy that applies
		others   map[string]string
	}{
		"adoption, by default": {object: "metadata: {name: a, annotations: {ADOPTION: Always}}", adoption: "IfUnowned"},
		"adoption, by the spec": {
			policies: never, object: "metadata: {name: a, annotations: {ADOPTION: Always}}", adoption: "Never",
		},
		"the default, by the spec": {
			policies: never, object: "metadata: {name: a, annotations: {ADOPTION: IfUnowned}}", adoption: "Never",
		},
		"what the spec allows": {
			policies: always, object: "metadata: {name: a, annotations: {ADOPTION: Always}}", adoption: "Always",
		},
		"what is stricter": {
			policies: always, object: "metadata: {name: a, annotations: {ADOPTION: Never}}", adoption: "Never",
		},
		"all policies": {
			policies: never,
			object: "metadata: {name: a, annotations: {ADOPTION: Never, capstan.dev/recreate-policy: Always, " +
				"capstan.dev/missing-namespace-policy: Create, capstan.dev/delete-policy: Delete, " +
				"capstan.dev/update-policy: Always}}",
			adoption: "Never",
			others: map[string]string{
				v1alpha2.RecreatePolicyAnnotation: "Never", v1alpha2.MissingNamespacePolicyAnnotation: "Refuse",
				v1alpha2.DeletePolicyAnnotation: "Orphan", v1alpha2.UpdatePolicyAnnotation: "Always",
			},
		},
		"an escaped name": {
			object: `metadata: {name: a, annotations: {"capstan.dev/adoption\x2dpoli\x63y": Always}}`, adoption: "IfUnowned",
		},
		"a binary name": {
			object:   "metadata: {name: a, annotations: {!!binary Y2Fwc3Rhbi5kZXYvYWRvcHRpb24tcG9saWN5: Always}}",
			adoption: "IfUnowned",
		},
		"a merged map": {
			object:   "data: &x {ADOPTION: Always}\nmetadata: {name: a, annotations: {<<: *x, b: c}}",
			adoption: "IfUnowned",
		},
		"an alias": {
			object:   "data: &x {ADOPTION: Always}\nmetadata: {name: a, annotations: *x}",
			adoption: "IfUnowned",
		},
		"a name twice": {
			object: "metadata: {name: a, annotations: {ADOPTION: Never, ADOPTION: Always}}", adoption: "IfUnowned",
		},
		"a list": {
			object:   "items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {ADOPTION: Always}}}]",
			adoption: "IfUnowned",
		},
		"a time that is none, and a number": {
			object: "metadata: {name: a, creationTimestamp: x, annotations: {ADOPTION: Always}}", adoption: "IfUnowned",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			object := "---\napiVersion: v1\nkind: ConfigMap\n" +
				strings.ReplaceAll(c.object, "ADOPTION", v1alpha2.AdoptionPolicyAnnotation) + "\n"

			got, err := renderOf(t, manifest.Input{Policies: c.policies}, object)
			g.Expect(err).NotTo(HaveOccurred())

			rendered := &unstructured.Unstructured{Object: got["ConfigMap a"]}
			g.Expect(rendered.GetAnnotations()).To(HaveKeyWithValue(v1alpha2.AdoptionPolicyAnnotation, c.adoption))

			for key, value := range c.others {
				g.Expect(rendered.GetAnnotations()).To(HaveKeyWithValue(key, value))
			}
		})
	}
}

// TestUsersAreNotBound checks that patches and additional manifests, which the user writes, may allow more.
func TestUsersAreNotBound(t *testing.T) {
	g := NewWithT(t)

	got, err := renderOf(t, manifest.Input{
		Policies: &v1alpha2.PoliciesSpec{Adoption: v1alpha2.AdoptionNever},
		Patches: []v1alpha2.Patch{{
			Target: &v1alpha2.PatchTarget{Name: "a"}, Patch: "metadata: {annotations: {capstan.dev/adoption-policy: Always}}",
		}},
	}, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	g.Expect(err).NotTo(HaveOccurred())

	user := &unstructured.Unstructured{Object: got["ConfigMap a"]}
	g.Expect(user.GetAnnotations()).To(HaveKeyWithValue(v1alpha2.AdoptionPolicyAnnotation, "Always"))
}
