package store

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/test/bed/bedtest"
)

// controlPlane is the API server of all tests in this package that need one.
var controlPlane bedtest.Shared

func TestMain(m *testing.M) { controlPlane.Main(m) }

func clusterClient(t *testing.T, user string) client.Client {
	t.Helper()
	g := NewWithT(t)
	config, err := controlPlane.Get(t).ConfigFor(user)
	g.Expect(err).NotTo(HaveOccurred())
	c, err := client.New(config, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())

	return c
}

// testChart is a chart as chartgen makes it, as far as the store looks at it.
func testChart(t *testing.T, key Key, files ...chart.File) *chart.Chart {
	t.Helper()

	c, err := chart.New(chart.Metadata{
		APIVersion:  "v2",
		Name:        key.Provider,
		Version:     key.Version[1:],
		AppVersion:  key.Version,
		Description: "A test",
		Annotations: map[string]string{
			chartgen.AnnotationContentID:       key.ContentID,
			chartgen.AnnotationSource:          "directory",
			chartgen.AnnotationChartgenVersion: "2",
		},
	}, files)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return c
}
