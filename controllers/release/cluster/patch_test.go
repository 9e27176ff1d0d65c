package cluster

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	o := &unstructured.Unstructured{}
	NewWithT(t).Expect(yaml.Unmarshal([]byte(text), &o.Object)).To(Succeed())

	return o
}

func patchOf(t *testing.T, target, base, live string) *Patch {
	t.Helper()

	o := parse(t, target)
	info := &resource.Info{Object: o, Mapping: &meta.RESTMapping{GroupVersionKind: o.GroupVersionKind()}}
	patch, err := NewPatch(info, parse(t, base), parse(t, live))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(o).To(Equal(parse(t, target)))

	return patch
}

// TestWebhookScope checks that the scope of rules is changed only if it differs from the API server's default.
func TestWebhookScope(t *testing.T) {
	g := NewWithT(t)

	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		configuration := func(rule string) string {
			return "apiVersion: admissionregistration.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: a}\n" +
				"webhooks: [{name: w, rules: [{resources: [pods], " + rule + "}]}]\n"
		}
		none, all, namespaced := configuration(""), configuration(`scope: "*"`), configuration("scope: Namespaced")

		g.Expect(patchOf(t, none, none, all)).To(BeNil())
		g.Expect(patchOf(t, all, all, all)).To(BeNil())

		const want = `{"$setElementOrder/webhooks": [{"name": "w"}],
			"webhooks": [{"name": "w", "rules": [{"resources": ["pods"], "scope": %q}]}]}`
		g.Expect(string(patchOf(t, none, namespaced, namespaced).Data)).To(MatchJSON(fmt.Sprintf(want, "*")))
		g.Expect(string(patchOf(t, namespaced, none, all).Data)).To(MatchJSON(fmt.Sprintf(want, "Namespaced")))
	}
}

// TestAggregatedRules checks that a patch leaves rules alone that Kubernetes gathers, and changes all others.
func TestAggregatedRules(t *testing.T) {
	const (
		head       = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\n"
		aggregated = head + "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}\n"
		rules      = "rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n"
		none       = "rules: []\n"
	)

	for name, c := range map[string]struct{ target, base, live, want string }{
		"gathered":             {target: aggregated + none, base: aggregated + none, live: aggregated + rules},
		"gathered and adopted": {target: aggregated, base: aggregated, live: aggregated + rules},
		"gathered from now on": {
			target: aggregated + none, base: head + rules, live: head + rules,
			want: `{"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}`,
		},
		"removed": {target: head + none, base: head + rules, live: head + rules, want: `{"rules": []}`},
		"gathered no longer": {
			target: head + none, base: aggregated + none, live: aggregated + rules,
			want: `{"aggregationRule": null, "rules": []}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			patch := patchOf(t, c.target, c.base, c.live)

			if c.want == "" {
				g.Expect(patch).To(BeNil())
				return
			}

			g.Expect(patch).NotTo(BeNil())
			g.Expect(string(patch.Data)).To(MatchJSON(c.want))
		})
	}
}
