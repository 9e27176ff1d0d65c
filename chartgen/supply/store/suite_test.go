package store

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/test/bed"
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

const password = "registry-password"

// registryStore is an empty registry with TLS and a password, and the store in it.
func registryStore(t *testing.T, i bed.Implementation) (*bed.Registry, *Registry) {
	t.Helper()
	g := NewWithT(t)
	r, err := bed.RunRegistry(
		t.Context(),
		bed.RegistryOptions{Implementation: i, Dir: t.TempDir(), TLS: true, User: "me", Password: password},
	)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(r.Stop)
	c, err := oci.NewClient(oci.Options{CA: r.CA, Credentials: oci.StaticCredentials(r.Address, "me", password)})
	g.Expect(err).NotTo(HaveOccurred())
	repository, err := oci.ParseRepository("oci://" + r.Address + "/capi")
	g.Expect(err).NotTo(HaveOccurred())

	return r, &Registry{Client: c, Repository: repository}
}

// testChart is a chart as chartgen makes it, as far as stores look at it.
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
