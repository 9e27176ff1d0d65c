package plan

import (
	"runtime"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/chart"
)

func TestChartsShareMemory(t *testing.T) {
	g := NewWithT(t)
	charts := &Charts{}
	made := func() *chart.Chart {
		c, err := chart.New(chart.Metadata{Name: "infrastructure-aws", Version: "1.0.0"}, nil)
		g.Expect(err).NotTo(HaveOccurred())

		return c
	}
	first := charts.share("sha256:1", made())
	g.Expect(charts.share("sha256:1", made())).To(BeIdenticalTo(first))
	g.Expect(charts.share("sha256:2", made())).NotTo(BeIdenticalTo(first))
	runtime.KeepAlive(first)

	kept := func() (n int) {
		runtime.GC()
		charts.shared.Range(func(any, any) bool { n++; return true })

		return n
	}
	g.Eventually(kept).Should(BeZero())
	g.Expect(charts.share("sha256:1", made())).NotTo(BeNil())
}
