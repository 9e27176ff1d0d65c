package objectdiff

import (
	"math/rand/v2"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// objects parses YAML documents.
func objects(t *testing.T, documents ...string) []*unstructured.Unstructured {
	t.Helper()

	var all []*unstructured.Unstructured

	for _, d := range documents {
		o := &unstructured.Unstructured{}
		NewWithT(t).Expect(yaml.Unmarshal([]byte(d), &o.Object)).To(Succeed())
		all = append(all, o)
	}

	return all
}

func TestCompare(t *testing.T) {
	before := objects(
		t,
		"{apiVersion: v1, kind: Secret, metadata: {name: credentials, namespace: ns}, data: {changed: "+
			"b2xkLXNlY3JldA==, same: c2FtZS1zZWNyZXQ=, dropped: ZHJvcHBlZC1zZWNyZXQ=}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: same, namespace: ns}, data: {a: b}}",
		"{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: moved, namespace: ns}, spec: "+
			"{minAvailable: 1}}",
		"{apiVersion: v1, kind: Service, metadata: {name: dropped, namespace: ns}, spec: {ports: [{port: 443}]}}",
	)
	after := objects(
		t,
		"{apiVersion: v1, kind: Secret, metadata: {name: credentials, namespace: ns}, data: {changed: "+
			"bmV3LXNlY3JldA==, same: c2FtZS1zZWNyZXQ=}, stringData: {added: added-secret}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: same, namespace: ns}, data: {a: b}}",
		"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: moved, namespace: ns}, spec: {minAvailable: 1}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: added}, rules: []}",
	)
	changes, err := Compare(before, after, 3)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	text := ""
	for _, c := range changes {
		text += string(c.Kind) + " " + c.Object + "\n"
	}

	NewWithT(t).Expect(text).To(Equal("changed Secret ns/credentials\nchanged PodDisruptionBudget ns/moved\n" +
		"created ClusterRole added\ndeleted Service ns/dropped\n"))
}

func TestCompareSecrets(t *testing.T) {
	secret := func(data string) []*unstructured.Unstructured {
		return objects(t, "{apiVersion: v1, kind: Secret, metadata: {name: x}, "+data+"}")
	}

	for name, c := range map[string]struct {
		before, after []*unstructured.Unstructured
		want          string
	}{
		"an equal value": {secret("data: {a: c2FtZQ==}"), secret("data: {a: c2FtZQ==}"), ""},
		"a value of the same size": {
			secret("data: {a: b25l}"), secret("data: {a: dHdv}"),
			"-  a: <masked 3 bytes>\n+  a: <masked 3 bytes, changed>\n",
		},
		"a new value":      {secret("data: {}"), secret("stringData: {a: text}"), "+  a: <masked 4 bytes>\n"},
		"a removed value":  {secret("stringData: {a: text}"), secret("data: {}"), "-  a: <masked 4 bytes>\n"},
		"a new Secret":     {nil, secret("data: {a: c2FtZQ==}"), "+  a: <masked 4 bytes>\n"},
		"a deleted Secret": {secret("data: {a: c2FtZQ==}"), nil, "-  a: <masked 4 bytes>\n"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			changes, err := Compare(c.before, c.after, 0)
			g.Expect(err).NotTo(HaveOccurred())

			if c.want == "" {
				g.Expect(changes).To(BeEmpty())
				return
			}

			g.Expect(changes).To(HaveLen(1))
			g.Expect(changes[0].Diff).To(ContainSubstring(c.want))
			g.Expect(changes[0].Diff).NotTo(Or(ContainSubstring("=="), ContainSubstring("text")))
		})
	}
}

func TestCompareContext(t *testing.T) {
	g := NewWithT(t)
	before := objects(
		t,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: '1', b: '2', c: '3', d: '4', e: '5'}}",
	)
	after := objects(
		t,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: '1', b: '2', c: changed, d: '4', e: '5'}}",
	)
	changes, err := Compare(before, after, 0)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(changes).To(Equal([]Change{{"ConfigMap x", Changed, "@@ -5 +5 @@\n-  c: \"3\"\n+  c: changed\n"}}))
}

// TestCompareKeepsEqualLines checks a rule of the kind that providers change in every release.
func TestCompareKeepsEqualLines(t *testing.T) {
	g := NewWithT(t)
	role := func(rule string) []*unstructured.Unstructured {
		return objects(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x}, rules: ["+
			rule+"]}")
	}
	changes, err := Compare(
		role("{apiGroups: [''], resources: [configmaps, secrets], verbs: [get, list]}"),
		role("{apiGroups: [''], resources: [secrets], verbs: [get, list, watch]}"),
		3,
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(changes).To(HaveLen(1))
	g.Expect(changes[0].Diff).To(Equal(`@@ -6,8 +6,8 @@
 - apiGroups:
   - ""
   resources:
-  - configmaps
   - secrets
   verbs:
   - get
   - list
+  - watch
`))
}

// TestCompareNeverRepeatsLines compares random lists: what one change removes, it does not add again.
func TestCompareNeverRepeatsLines(t *testing.T) {
	words := []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	random := rand.New(rand.NewPCG(1, 2))

	list := func() []any {
		var items []any

		for _, i := range random.Perm(len(words))[:random.IntN(len(words))] {
			items = append(items, words[i])
		}

		return items
	}
	object := func() []*unstructured.Unstructured {
		return []*unstructured.Unstructured{{Object: map[string]any{
			"kind": "ClusterRole", "rules": []any{
				map[string]any{"resources": list(), "verbs": list()},
				map[string]any{"resources": list(), "verbs": list()},
			},
		}}}
	}

	for range 500 {
		changes, err := Compare(object(), object(), 3)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		for _, change := range changes {
			removed := map[string]bool{}

			for line := range strings.Lines(change.Diff) {
				switch line[0] {
				case '-':
					removed[line[1:]] = true
				case '+':
					NewWithT(t).Expect(removed).NotTo(HaveKey(line[1:]), change.Diff)
				default:
					clear(removed)
				}
			}
		}
	}
}
