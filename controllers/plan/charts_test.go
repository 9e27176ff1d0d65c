package plan

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/source"
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

// TestMetadataOfAVersionThatWasRead: the source need not be asked for it again.
func TestMetadataOfAVersionThatWasRead(t *testing.T) {
	g := NewWithT(t)

	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capd-system", Name: "docker"}}
	p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{Directory: samples}

	found, planner, err := find(t, writableClient(), p, false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(planner.Charts.Metadata(p, found.from))).To(ContainSubstring("releaseSeries"))

	other := found.from
	other.Fingerprint = "changed"
	g.Expect(planner.Charts.Metadata(p, other)).To(BeNil())
	g.Expect(planner.Charts.Metadata(aws("v1.0.0"), found.from)).To(BeNil(), "another resource's is not used")

	from, err := planner.Sources.Source(p)
	g.Expect(err).NotTo(HaveOccurred())

	from.Place = unread{from.Place}
	_, _, err = from.List(t.Context())
	g.Expect(err).To(MatchError(errUnread))

	from.Metadata = func(version source.Version) []byte { return planner.Charts.Metadata(p, version) }
	versions, metadata, err := from.List(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bundle.Contract(metadata, versions[0].Name)).NotTo(BeEmpty())
}

var errUnread = errors.New("read")

// unread is a place whose files must not be read.
type unread struct{ source.Place }

func (unread) Files(context.Context, source.Version) (*source.Files, error) { return nil, errUnread }

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
