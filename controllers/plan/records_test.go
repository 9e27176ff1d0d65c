package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/store"
	"github.com/capstan-project/capstan/chartgen/supply/web"
	"github.com/capstan-project/capstan/test/fakesource"
)

// writableClient returns a client whose writes succeed.
func writableClient() client.Client {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme)
	_ = v1alpha2.AddToScheme(scheme)

	return fake.NewClientBuilder().WithScheme(scheme).Build()
}

// publish starts a server with a version of the sample provider docker, and returns a resource that
// uses it.
func publish(t *testing.T) (*fakesource.Server, *v1alpha2.InfrastructureProvider) {
	t.Helper()
	g := NewWithT(t)

	server := &fakesource.Server{}
	folder := filepath.Join(samples, "infrastructure-docker", "v1.0.0")
	g.Expect(server.PublishFolder("owner/docker", "v1.0.0", folder)).To(Succeed())
	g.Expect(server.Start()).To(Succeed())
	t.Cleanup(func() { _ = server.Stop() })

	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capd-system", Name: "docker"}}
	p.Spec.Version = "v1.0.0"
	p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{HTTP: server.URL() + "/plain/owner/docker"}

	return server, p
}

// find finds the chart of a resource with a planner that knows nothing yet, as after a restart.
func find(t *testing.T, c client.Client, p v1alpha2.Provider, refresh bool) (*Chart, *Planner, error) {
	t.Helper()

	planner := newPlanner(c)
	planned, err := planner.Plan(t.Context(), Request{Provider: p, Scope: c, Refresh: refresh})

	return planned.Chart, planner, err
}

// install finds the chart of a resource, stores it and records it, as a reconcile does.
func install(t *testing.T, c client.Client, p v1alpha2.Provider) *Chart {
	t.Helper()
	g := NewWithT(t)

	found, planner, err := find(t, c, p, false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(planner.Charts.Save(t.Context(), p, found)).To(Succeed())

	status := p.GetStatus()
	status.StoredCharts = found.Records(status)
	status.Chart = found.Status(status.Chart)

	return found
}

// forge stores another chart under the key of a genuine one.
func forge(t *testing.T, c client.Client, genuine *Chart) *store.Stored {
	t.Helper()
	g := NewWithT(t)

	forged, err := chart.New(genuine.Chart.Metadata, []chart.File{
		{Name: "templates/evil.yaml", Data: []byte(`{{ lookup "v1" "Secret" "kube-system" "" }}`)},
	})
	g.Expect(err).NotTo(HaveOccurred())
	stored, err := (&store.Cluster{Client: c}).Put(t.Context(), genuine.key, forged)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stored.Digest).NotTo(Equal(genuine.Digest))

	return stored
}

func TestStoredChartsAreUsedOnlyIfRecorded(t *testing.T) {
	t.Run("a recorded chart is used without a request", func(t *testing.T) {
		g := NewWithT(t)
		server, p := publish(t)
		c := writableClient()
		installed := install(t, c, p)

		g.Expect(server.Stop()).To(Succeed())

		again, _, err := find(t, c, p, false)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.Digest).To(Equal(installed.Digest))
	})
	t.Run("a chart that is not recorded is built again", func(t *testing.T) {
		g := NewWithT(t)
		server, p := publish(t)
		c := writableClient()
		genuine, _, err := find(t, c, p, false)
		g.Expect(err).NotTo(HaveOccurred())

		forged := forge(t, c, genuine)
		built := install(t, c, p)
		g.Expect(built.Digest).To(Equal(genuine.Digest))

		stored := &store.Cluster{Client: c}
		g.Expect(stored.Get(t.Context(), genuine.key)).To(HaveField("Digest", genuine.Digest), "it is repaired")
		_, err = stored.Find(t.Context(), store.FindOptions{
			Namespace: "capd-system", Provider: "infrastructure-docker", Version: "v1.0.0", Digest: forged.Digest,
		})
		g.Expect(err).To(MatchError(store.ErrNotFound))

		p.Status.StoredCharts = nil

		g.Expect(server.Stop()).To(Succeed())

		_, _, err = find(t, c, p, false)
		g.Expect(source.IsUnavailable(err)).To(BeTrue(), "without a record, the source is required: %v", err)
	})
	t.Run("a recorded chart of another origin is not used", func(t *testing.T) {
		g := NewWithT(t)
		server, p := publish(t)
		c := writableClient()
		install(t, c, p)

		requests := len(server.Requests("/"))

		p.Spec.FetchConfig.HTTP = strings.Replace(p.Spec.FetchConfig.HTTP, "127.0.0.1", "localhost", 1)
		_, _, err := find(t, c, p, false)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(server.Requests("/"))).To(BeNumerically(">", requests))

		p.Spec.FetchConfig.Digest = "sha256:" + strings.Repeat("0", 64)
		_, _, err = find(t, c, p, false)
		g.Expect(err).To(MatchError(ContainSubstring("has the digest")))
	})
	t.Run("a stored chart proves nothing about the content of a ConfigMap or a folder", func(t *testing.T) {
		g := NewWithT(t)
		c := writableClient()
		p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capd-system", Name: "docker"}}
		p.Spec.Version = "v1.0.0"
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{Directory: samples}

		genuine, _, err := find(t, c, p, false)
		g.Expect(err).NotTo(HaveOccurred())
		forge(t, c, genuine)

		built := install(t, c, p)
		g.Expect(built.Digest).To(Equal(genuine.Digest))

		again, _, err := find(t, c, p, false)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.unsaved).To(BeFalse(), "the chart is not built twice")

		forge(t, c, genuine)
		again, _, err = find(t, c, p, false)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.Digest).To(Equal(genuine.Digest))
	})
	t.Run("an older chart of the same place is not taken for the current content", func(t *testing.T) {
		g := NewWithT(t)
		c := writableClient()
		folder := t.TempDir()
		g.Expect(os.CopyFS(folder, os.DirFS(samples))).To(Succeed())

		p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capd-system", Name: "docker"}}
		p.Spec.Version = "v1.0.0"
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{Directory: folder}
		old := install(t, c, p)

		file := filepath.Join(folder, "infrastructure-docker", "v1.0.0", "infrastructure-components.yaml")
		data, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(file, append(data, "\n# fixed\n"...), 0o600)).To(Succeed())

		fixed, _, err := find(t, c, p, false)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = (&store.Cluster{Client: c}).Put(t.Context(), fixed.key, old.Chart)
		g.Expect(err).NotTo(HaveOccurred())

		again, _, err := find(t, c, p, false)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.Digest).To(Equal(fixed.Digest))
	})
	t.Run("an installed chart is read only if it is recorded, whatever Helm's records contain", func(t *testing.T) {
		g := NewWithT(t)
		_, p := publish(t)
		c := writableClient()
		installed := install(t, c, p)
		beside := *installed
		beside.key.ContentID += "-forged"
		forged := forge(t, c, &beside)

		for digest, found := range map[string]bool{installed.Digest: true, forged.Digest: false} {
			_, err := newPlanner(c).Charts.Installed(t.Context(), p, "v1.0.0", digest)
			g.Expect(err == nil).To(Equal(found), "%s: %v", digest, err)
		}
	})
}

func TestRecords(t *testing.T) {
	g := NewWithT(t)
	record := func(digest string) v1alpha2.StoredChart {
		return v1alpha2.StoredChart{Version: "v1.0.0", Digest: digest, Origin: "https://example.com"}
	}
	found := &Chart{
		Stored: &store.Stored{Digest: "new"},
		key:    store.Key{Version: "v1.0.0", Origin: "https://example.com"},
	}
	status := &v1alpha2.ProviderStatus{
		Chart:        &v1alpha2.ChartStatus{Digest: "current"},
		History:      []v1alpha2.ReleaseRevision{{ChartDigest: "installed"}},
		StoredCharts: []v1alpha2.StoredChart{record("current"), record("obsolete"), record("installed")},
	}

	status.StoredCharts = found.Records(status)
	g.Expect(status.StoredCharts).To(HaveExactElements(record("new"), record("current"), record("installed")))

	status.Chart.Digest = "new"
	g.Expect(found.Records(status)).To(HaveExactElements(record("new"), record("installed")))

	for range 2 * v1alpha2.StoredChartsMaxItems {
		status.StoredCharts = append(status.StoredCharts, record("installed"))
	}

	g.Expect(found.Records(status)).To(HaveLen(v1alpha2.StoredChartsMaxItems))
}

func TestRefresh(t *testing.T) {
	t.Run("a source that is not available leaves the stored chart in use, and says so", func(t *testing.T) {
		g := NewWithT(t)
		server, p := publish(t)
		c := writableClient()
		installed := install(t, c, p)

		g.Expect(server.Stop()).To(Succeed())

		found, _, err := find(t, c, p, true)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.Digest).To(Equal(installed.Digest))
		g.Expect(found.Outdated).To(BeAssignableToTypeOf(&web.UnreachableError{}))
	})
	t.Run("content that is invalid is an error", func(t *testing.T) {
		g := NewWithT(t)
		server, p := publish(t)
		c := writableClient()
		install(t, c, p)
		server.Replace("owner/docker", "v1.0.0", map[string][]byte{
			"metadata.yaml": []byte("no metadata"), "infrastructure-components.yaml": []byte("no components"),
		})

		_, _, err := find(t, c, p, true)
		g.Expect(err).To(BeAssignableToTypeOf(&bundle.InvalidError{}))
		_, _, err = find(t, c, p, false)
		g.Expect(err).NotTo(HaveOccurred())
	})
	t.Run("a version that was withdrawn is an error", func(t *testing.T) {
		g := NewWithT(t)
		server, p := publish(t)
		c := writableClient()
		install(t, c, p)
		server.Replace("owner/docker", "v1.0.0", nil)

		_, _, err := find(t, c, p, true)
		g.Expect(source.IsNotFound(err)).To(BeTrue(), "%v", err)
		_, _, err = find(t, c, p, false)
		g.Expect(err).NotTo(HaveOccurred())
	})
}
