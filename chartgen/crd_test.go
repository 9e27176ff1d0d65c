package chartgen_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
)

func TestJoinCRDs(t *testing.T) {
	const (
		plain     = "# a comment\nmetadata: {name: a}\n"
		converted = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: b}\n" +
			"spec: {conversion: {webhook: {clientConfig: {service: {name: w, namespace: published}}}}}\n"
	)

	c := &chart.Chart{CRDs: []chart.File{
		{Name: "crds/a.yaml", Data: []byte("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" + plain)},
		{Name: "crds/b.yaml", Data: []byte(converted)},
	}}

	t.Run("for the default namespace", func(t *testing.T) {
		g := NewWithT(t)
		joined, err := chartgen.JoinCRDs(c, "")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(joined)).To(And(HavePrefix("---\n"), ContainSubstring(plain+"---\n"), HaveSuffix(converted)))
	})

	t.Run("for another namespace", func(t *testing.T) {
		g := NewWithT(t)
		joined, err := chartgen.JoinCRDs(c, "target")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(joined)).To(ContainSubstring(plain+"---\n"), "a CRD without a reference keeps its text")
		g.Expect(string(joined)).To(And(ContainSubstring("namespace: target"), Not(ContainSubstring("published"))))
		g.Expect(string(c.CRDs[1].Data)).To(Equal(converted), "the chart does not change")
	})

	t.Run("invalid YAML", func(t *testing.T) {
		broken := &chart.Chart{
			Metadata: chart.Metadata{Name: "infrastructure-x"},
			CRDs:     []chart.File{{Name: "crds/c.yaml", Data: []byte("a: [")}},
		}
		_, err := chartgen.JoinCRDs(broken, "target")
		NewWithT(t).Expect(err).To(MatchError(HavePrefix("chart infrastructure-x: crds/c.yaml: ")))
	})
}

// TestLabelsOfCRDs: a CRD in the chart is the published one with clusterctl's labels, however its
// metadata is written.
func TestLabelsOfCRDs(t *testing.T) {
	const spec = `
spec:
  group: odd.example.com
  names: {kind: Odd, listKind: OddList, plural: odds, singular: odd}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        description: DESCRIPTION
`

	for name, metadata := range map[string]string{
		"no labels":    "  name: a",
		"labels first": "  labels:\n    b: c\n  name: a",
		"labels last":  "  name: a\n  labels:\n    b: c",
		"clusterctl's labels": "  name: a\n  labels:\n    clusterctl.cluster.x-k8s.io: x\n" +
			"    cluster.x-k8s.io/provider: other",
		"empty labels":         "  name: a\n  labels: {}",
		"labels without value": "  name: a\n  labels:\n  annotations: {b: c}",
		"labels in braces":     "  name: a\n  labels: {b: c, cluster.x-k8s.io/provider: other}",
		"quoted labels":        "  name: a\n  \"labels\":\n    b: c\n    cluster.x-k8s.io/provider: other",
		"quoted keys":          "  name: a\n  labels:\n    'cluster.x-k8s.io/provider': other\n    \"b\": c",
		"labels and a comment": "  name: a\n  labels: # comment\n    b: c",
		"space after labels":   "  name: a\n  labels: \n    b: c",
		"a deeper comment":     "      # comment\n  name: a\n  labels:\n        # comment\n    b: c",
		"a comment at the margin": "# comment\n  name: a\n  labels:\n# comment\n    b: c\n" +
			"# comment\n    cluster.x-k8s.io/provider: other",
		"a value on the next line": "  name: a\n  labels:\n    cluster.x-k8s.io/provider:\n      other\n    b: c",
		"a folded value":           "  name: a\n  labels:\n    cluster.x-k8s.io/provider: >-\n      other\n    b: c",
		"a quoted value on two lines": "  name: a\n  labels:\n    cluster.x-k8s.io/provider: \"oth\\\n      er\"\n" +
			"    b: c",
		"an annotation of that name": "  name: a\n  labels:\n    b: c\n  annotations:\n    cluster.x-k8s.io/provider: d\n" +
			"    clusterctl.cluster.x-k8s.io: e",
		"labels in an annotation": "  name: a\n  annotations:\n    text: |\n      labels:\n" +
			"        cluster.x-k8s.io/provider: x\n  labels:\n    b: c",
		"an anchor in the labels": "  name: a\n  labels:\n    cluster.x-k8s.io/provider: &text other\n    b: c",
		"labels by an alias":      "  name: a\n  annotations: &all\n    b: c\n  labels: *all",
		"merged labels":           "  name: a\n  annotations: &all\n    b: c\n  labels:\n    <<: *all",
		"blank lines":             "\n  name: a\n\n  labels:\n\n    b: c\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := provider("odd", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n"+
				metadata+strings.Replace(spec, "DESCRIPTION", description(metadata), 1))
			built, err := chartgen.Build(b)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())

			compareOnce(t, "defaults", b, built, nil)
		})
	}
}

// description returns a value for the schema of a CRD that depends on the anchor in its metadata, if it
// has one.
func description(metadata string) string {
	if strings.Contains(metadata, "&text") {
		return "*text"
	}

	return "text"
}

// TestJSONOfCRDs: what the operator applies of a chart that it has just built is what the file of the CRD says, which
// sigs.k8s.io/yaml would write in the same way.
func TestJSONOfCRDs(t *testing.T) {
	check := func(t *testing.T, b *bundle.Bundle) {
		g := NewWithT(t)
		built, err := chartgen.Build(b)
		g.Expect(err).NotTo(HaveOccurred())

		for _, f := range built.CRDs {
			kept, err := f.JSON()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(yaml.YAMLToJSON(f.Data)).To(MatchJSON(kept), f.Name)
			g.Expect(yaml.JSONToYAML(kept)).To(Equal(f.Data), f.Name)
			g.Expect(cap(f.Data)).To(BeNumerically("<", len(f.Data)*9/8+(8<<10)), f.Name+" takes no memory in vain")
		}
	}

	forEachRelease(t, check)

	for name, value := range map[string]string{
		"numbers":     "{a: 1.0, b: 0.5, c: 1e-7, d: 1e21, e: 9223372036854775807, f: -1, g: 0x10, h: 1e3}",
		"texts":       `{a: "yes", b: "1", c: "a\nb\n", d: " a", e: "<&>", f: "\u2028\xe9\U0001f600", g: "~", h: ""}`,
		"empty":       "{a: {}, b: [], c: null, d: [{}], e: [[]]}",
		"keys":        `{"yes": 1, "1": 2, "a b": 3, "a:": 4, "": 5}`,
		"a long text": strings.Repeat("word ", 1000),
	} {
		t.Run(name, func(t *testing.T) { check(t, provider("odd", crdWith(value))) })
	}
}
