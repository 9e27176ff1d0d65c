package chartgen_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
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
