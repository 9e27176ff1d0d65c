package plan

import (
	"runtime"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/store"
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

func TestInstalledChartsAreReadOnce(t *testing.T) {
	g := NewWithT(t)
	_, p := publish(t)
	c := writableClient()
	install(t, c, p)

	found, planner, err := find(t, c, p, false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(planner.Charts.Store.Delete(t.Context(), p.Namespace, v1alpha2.Label(p))).To(Succeed())

	installed, err := planner.Charts.Installed(t.Context(), p, "v1.0.0", found.Digest)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(installed.Chart).To(BeIdenticalTo(found.Chart))

	_, err = planner.Charts.Installed(t.Context(), p, "v1.0.0", "sha256:other")
	g.Expect(err).To(MatchError(store.ErrNotFound))
}
