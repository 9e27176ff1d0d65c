package asks

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// parsed returns a ConfigMap with metadata given as YAML.
func parsed(t *testing.T, metadata string) *unstructured.Unstructured {
	t.Helper()

	o := &unstructured.Unstructured{Object: map[string]any{}}
	NewWithT(t).Expect(yaml.Unmarshal([]byte("{apiVersion: v1, kind: ConfigMap, metadata: "+metadata+"}"), &o.Object)).To(
		Succeed())

	return o
}

func TestCheckPolicies(t *testing.T) {
	for metadata, want := range map[string]string{
		"{name: a}": "",
		"{name: a, annotations: {capstan.dev/adoption-policy: Always, capstan.dev/update-policy: Once}}":  "",
		"{name: a, annotations: {capstan.dev/delete-policy: Orphan, capstan.dev/recreate-policy: Never}}": "",
		"{name: a, annotations: {capstan.dev/delete-policy: orphan}}": "the annotation capstan.dev/delete-policy of " +
			"ConfigMap a must be one of Orphan, Delete",
		"{name: a, namespace: b, annotations: {capstan.dev/adoption-policy: ''}}": "the annotation " +
			"capstan.dev/adoption-policy of ConfigMap b/a must be one of Never, IfUnowned, Always",
	} {
		err := Check([]*unstructured.Unstructured{parsed(t, "{name: good}"), parsed(t, metadata)})
		if want == "" {
			NewWithT(t).Expect(err).NotTo(HaveOccurred(), metadata)
		} else {
			NewWithT(t).Expect(err).To(MatchError(want), metadata)
		}
	}
}

func TestAdoptionProblem(t *testing.T) {
	const (
		plain      = "{name: a}"
		owned      = "{name: a, ownerReferences: [{apiVersion: v1, kind: Node, name: n}]}"
		controlled = "{name: a, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: d, controller: true}]}"
		installed  = "{name: a, ownerReferences: [{apiVersion: operator.cluster.x-k8s.io/v1alpha2, " +
			"kind: InfrastructureProvider, name: aws, controller: true}]}"
	)

	for name, c := range map[string]struct{ policy, live, owner, want string }{
		"nothing owns it":                   {live: plain},
		"another release owns it":           {live: plain, owner: "b/c", want: "belongs to release b/c"},
		"another controller owns it":        {live: controlled, want: "is controlled by Deployment d"},
		"it is garbage-collected":           {live: owned},
		"cluster-api-operator installed it": {live: installed},
		"the default by name":               {policy: "IfUnowned", live: controlled, want: "is controlled by Deployment d"},
		"always, from another release":      {policy: "Always", live: plain, owner: "b/c"},
		"always, from a controller":         {policy: "Always", live: controlled},
		"never": {policy: "Never", live: plain,
			want: "exists and does not belong to the release, and its annotation capstan.dev/adoption-policy is Never"},
	} {
		t.Run(name, func(t *testing.T) {
			desired := parsed(t, plain)
			if c.policy != "" {
				desired.SetAnnotations(map[string]string{v1alpha2.AdoptionPolicyAnnotation: c.policy})
			}

			NewWithT(t).Expect(AdoptionProblem(desired, parsed(t, c.live), c.owner)).To(Equal(c.want))
		})
	}
}

func TestDefaults(t *testing.T) {
	g := NewWithT(t)

	g.Expect(Defaults(nil)).To(BeEmpty())
	g.Expect(Defaults(&v1alpha2.PoliciesSpec{
		Adoption: v1alpha2.AdoptionIfUnowned, Update: v1alpha2.UpdateAlways, Delete: v1alpha2.DeleteObject,
		Recreate: v1alpha2.RecreateIfSafe, MissingNamespaces: v1alpha2.MissingNamespaceRefuse,
	})).To(BeEmpty(), "an object without annotations has these")
	g.Expect(Defaults(&v1alpha2.PoliciesSpec{
		Adoption: v1alpha2.AdoptionNever, Update: v1alpha2.UpdateOnce, Delete: v1alpha2.DeleteOrphan,
		Recreate: v1alpha2.RecreateAlways, MissingNamespaces: v1alpha2.MissingNamespaceCreate,
	})).To(Equal(map[string]string{
		"capstan.dev/adoption-policy": "Never", "capstan.dev/update-policy": "Once",
		"capstan.dev/delete-policy": "Orphan", "capstan.dev/recreate-policy": "Always",
		"capstan.dev/missing-namespace-policy": "Create",
	}))
}
