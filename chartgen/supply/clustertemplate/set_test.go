package clustertemplate

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
)

func TestTemplatesThatCouldNotBeListed(t *testing.T) {
	g := NewWithT(t)
	s, err := FromChart(&chart.Chart{
		Metadata: chart.Metadata{
			Name:        "infrastructure-aws",
			AppVersion:  "v2.11.1",
			Annotations: map[string]string{chartgen.AnnotationUnlistedTemplates: "true"},
		},
		Files: []chart.File{{Name: "cluster-template.yaml"}},
	}, Infrastructure{})
	g.Expect(err).NotTo(HaveOccurred())

	_, err = s.template("")
	g.Expect(err).NotTo(HaveOccurred())

	_, err = s.template("eks")
	g.Expect(err).To(MatchError(And(
		HavePrefix("the chart of infrastructure-aws v2.11.1 has no cluster-template-eks.yaml, because the source could not"),
		ContainSubstring("change the annotation reconcile.fluxcd.io/requestedAt"),
	)))
}
