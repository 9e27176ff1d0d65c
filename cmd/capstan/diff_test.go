package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// objects reads YAML documents.
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

func TestDiffIsDrawn(t *testing.T) {
	before := objects(
		t,
		"{apiVersion: v1, kind: Secret, metadata: {name: credentials, namespace: ns}, data: {changed: b2xkLXNlY3JldA==, same: c2FtZS1zZWNyZXQ=, dropped: ZHJvcHBlZC1zZWNyZXQ=}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: same, namespace: ns}, data: {a: b}}",
		"{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: moved, namespace: ns}, spec: {minAvailable: 1}}",
		"{apiVersion: v1, kind: Service, metadata: {name: dropped, namespace: ns}, spec: {ports: [{port: 443}]}}",
	)
	after := objects(
		t,
		"{apiVersion: v1, kind: Secret, metadata: {name: credentials, namespace: ns}, data: {changed: bmV3LXNlY3JldA==, same: c2FtZS1zZWNyZXQ=}, stringData: {added: added-secret}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: same, namespace: ns}, data: {a: b}}",
		"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: moved, namespace: ns}, spec: {minAvailable: 1}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: added}, rules: []}",
	)
	changes, err := compareObjects(before, after, 3)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	d := &difference{
		Provider:    "infrastructure-x",
		From:        "v1.0.0",
		To:          "v1.1.0",
		Objects:     changes,
		NewCRDs:     []string{"news.x"},
		ChangedCRDs: []string{"olds.x"},
	}
	draw := func(d *difference) func(*screen) {
		return func(s *screen) {
			o := &diffOptions{screen: s}
			NewWithT(t).Expect(o.print(d)).To(Succeed())
		}
	}
	text := drawn(&screen{}, draw(d))
	golden(t, "diff.txt", text)
	NewWithT(t).Expect(string(text)).NotTo(Or(ContainSubstring("secret\n"), ContainSubstring("==")), "a Secret's value")
	golden(t, "diff-colored.txt", drawn(&screen{colored: true}, draw(d)))
	golden(t, "diff.json", drawn(&screen{format: "json"}, draw(d)))
	golden(t, "diff-none.txt", drawn(&screen{}, draw(&difference{Provider: "infrastructure-x", To: "v1.1.0"})))
}

func TestUnifiedContext(t *testing.T) {
	g := NewWithT(t)
	before := objects(
		t,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: '1', b: '2', c: '3', d: '4', e: '5'}}",
	)
	after := objects(
		t,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: '1', b: '2', c: changed, d: '4', e: '5'}}",
	)
	changes, err := compareObjects(before, after, 0)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(changes).To(Equal([]objectChange{{"ConfigMap x", "changed", "@@ -5 +5 @@\n-  c: \"3\"\n+  c: changed\n"}}))
}

func TestReadProvider(t *testing.T) {
	const head = "apiVersion: operator.cluster.x-k8s.io/v1alpha2\nkind: InfrastructureProvider\n"
	for name, c := range map[string]struct{ file, namespace, err string }{
		"one":              {head + "metadata: {name: aws, namespace: ns}\nspec: {version: v1.0.0}\n", "", ""},
		"its namespace":    {head + "metadata: {name: aws}\n", "ns", ""},
		"no namespace":     {head + "metadata: {name: aws}\n", "", "has no name, or no namespace"},
		"an unknown field": {head + "metadata: {name: aws, namespace: ns}\nspec: {vresion: v1.0.0}\n", "", `unknown field "vresion"`},
		"another kind":     {"apiVersion: v1\nkind: ConfigMap\n", "", "holds ConfigMap of v1; give the resource of a provider"},
		"nothing":          {"", "", "holds no kind of no API"},
		"something else":   {"a: [", "", "not one YAML document"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			file := filepath.Join(t.TempDir(), "provider.yaml")
			g.Expect(os.WriteFile(file, []byte(c.file), 0o600)).To(Succeed())

			p, err := readProvider(file, c.namespace)
			if c.err != "" {
				g.Expect(err).To(MatchError(And(HavePrefix(file), ContainSubstring(c.err))))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(nameOf(p)).To(Equal("InfrastructureProvider ns/aws"))
		})
	}
}
