package charts

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
)

func TestChartFormat(t *testing.T) {
	g := NewWithT(t)
	capstan, err := Load("capstan")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(capstan.Metadata.Annotations).To(
		HaveKeyWithValue(v1alpha2.ChartFormatAnnotation, chartgen.Version), "set it in capstan/Chart.yaml")
}
