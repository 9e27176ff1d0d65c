package cluster

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"
)

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
			parse := func(text string) *unstructured.Unstructured {
				o := &unstructured.Unstructured{}
				g.Expect(yaml.Unmarshal([]byte(text), &o.Object)).To(Succeed())

				return o
			}

			target := parse(c.target)
			info := &resource.Info{Object: target, Mapping: &meta.RESTMapping{GroupVersionKind: target.GroupVersionKind()}}
			patch, err := NewPatch(info, parse(c.base), parse(c.live))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(target).To(Equal(parse(c.target)))

			if c.want == "" {
				g.Expect(patch).To(BeNil())
				return
			}

			g.Expect(patch).NotTo(BeNil())
			g.Expect(string(patch.Data)).To(MatchJSON(c.want))
		})
	}
}
