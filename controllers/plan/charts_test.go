package plan

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/store"
)

func TestChartsShareMemory(t *testing.T) {
	g := NewWithT(t)
	charts := newPlanner(readOnlyClient()).Charts

	read := func(size int) *content {
		current := map[string]string{chartgen.AnnotationChartgenVersion: chartgen.Version}
		c, err := chart.New(chart.Metadata{Name: "infrastructure-aws", Version: "1.0.0", Annotations: current}, []chart.File{
			{Name: chart.SchemaFile, Data: []byte("{}")}, {Name: "content", Data: []byte(strings.Repeat("x", size))},
		})
		g.Expect(err).NotTo(HaveOccurred())
		stored, err := store.New(c)
		g.Expect(err).NotTo(HaveOccurred())
		found, err := charts.share(stored)
		g.Expect(err).NotTo(HaveOccurred())

		return found
	}

	first := read(1)
	g.Expect(read(1)).To(BeIdenticalTo(first))
	g.Expect(read(2)).NotTo(BeIdenticalTo(first))
	g.Expect(read(maxContentSize)).NotTo(BeIdenticalTo(read(maxContentSize)), "large ones are not kept")

	for size := range maxContents {
		read(10 + size)
	}

	g.Expect(read(1)).NotTo(BeIdenticalTo(first), "nor are too many")
}

// TestWaitForABuild: who waits until another chart is built waits no longer than the reconcile may take.
func TestWaitForABuild(t *testing.T) {
	g := NewWithT(t)
	_, p := publish(t)
	c := writableClient()

	planner := newPlanner(c)
	planner.Charts.building <- struct{}{}

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()

	_, err := planner.Plan(ctx, Request{Provider: p, Scope: c})
	g.Expect(err).To(MatchError("wait until the charts of other providers are built: context deadline exceeded"))

	<-planner.Charts.building

	_, err = planner.Plan(t.Context(), Request{Provider: p, Scope: c})
	g.Expect(err).NotTo(HaveOccurred())
}

func TestInstalledChartsAreReadOnce(t *testing.T) {
	g := NewWithT(t)
	_, p := publish(t)
	c := writableClient()
	install(t, c, p)

	found, planner, err := find(t, c, p, false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(operatorNamespace))).To(Succeed())

	installed, err := planner.Charts.Installed(t.Context(), p, found.Digest)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(installed).To(BeIdenticalTo(found.Chart))

	_, err = planner.Charts.Installed(t.Context(), p, "sha256:other")
	g.Expect(err).To(MatchError(store.ErrNotFound))
}
