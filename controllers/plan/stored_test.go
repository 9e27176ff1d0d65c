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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/store"
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

// install finds the chart of a resource, stores it and names it in the status, as a reconcile does.
func install(t *testing.T, c client.Client, p v1alpha2.Provider) *Chart {
	t.Helper()
	g := NewWithT(t)

	found, planner, err := find(t, c, p, false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(planner.Charts.Save(t.Context(), p, found)).To(Succeed())

	status := p.GetStatus()
	status.Chart = found.Status(status.Chart)
	status.History = append([]v1alpha2.ReleaseRevision{
		{Version: found.Version(), ChartDigest: found.Digest},
	}, status.History...)

	return found
}

// storedCharts returns the names of the ConfigMaps in the operator's namespace.
func storedCharts(t *testing.T, c client.Client) []string {
	t.Helper()

	list := &corev1.ConfigMapList{}
	NewWithT(t).Expect(c.List(t.Context(), list, client.InNamespace(operatorNamespace))).To(Succeed())

	var names []string
	for _, cm := range list.Items {
		names = append(names, cm.Name)
	}

	return names
}

func TestStoredChartsNeedNoSource(t *testing.T) {
	t.Run("the chart of the status is used without a request", func(t *testing.T) {
		g := NewWithT(t)
		server, p := publish(t)
		c := writableClient()
		installed := install(t, c, p)

		g.Expect(server.Stop()).To(Succeed())

		again, _, err := find(t, c, p, false)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.Digest).To(Equal(installed.Digest))
		g.Expect(again.Status(nil).Reference).To(Equal(
			"configmap://capstan-system/capstan-chart-" + strings.TrimPrefix(installed.Digest, "sha256:")))
	})
	t.Run("so is one of its history", func(t *testing.T) {
		g := NewWithT(t)
		server, p := publish(t)
		c := writableClient()
		installed := install(t, c, p)

		g.Expect(server.Stop()).To(Succeed())

		p.Status.Chart = nil
		again, _, err := find(t, c, p, false)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.Digest).To(Equal(installed.Digest))
	})
	t.Run("one that was deleted is fetched again", func(t *testing.T) {
		g := NewWithT(t)
		_, p := publish(t)
		c := writableClient()
		installed := install(t, c, p)

		g.Expect(c.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(operatorNamespace))).To(Succeed())

		again := install(t, c, p)
		g.Expect(again.Digest).To(Equal(installed.Digest))
		g.Expect(storedCharts(t, c)).To(HaveLen(1))
	})
	t.Run("without a status, the source is required", func(t *testing.T) {
		g := NewWithT(t)
		server, p := publish(t)
		c := writableClient()
		install(t, c, p)

		g.Expect(server.Stop()).To(Succeed())

		p.Status = v1alpha2.ProviderStatus{}
		_, _, err := find(t, c, p, false)
		g.Expect(source.IsUnavailable(err)).To(BeTrue(), "%v", err)
	})
	t.Run("another origin is asked", func(t *testing.T) {
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
	t.Run("what another namespace has fetched does not count", func(t *testing.T) {
		g := NewWithT(t)
		server, p := publish(t)
		c := writableClient()
		install(t, c, p)

		g.Expect(server.Stop()).To(Succeed())

		p.Namespace = "other"
		_, _, err := find(t, c, p, false)
		g.Expect(source.IsUnavailable(err)).To(BeTrue(), "%v", err)
	})
	t.Run("the content of a folder is read each time", func(t *testing.T) {
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
		g.Expect(fixed.Digest).NotTo(Equal(old.Digest))
	})
}

// TestInstalled: an installed chart is read only if the status names it, whatever Helm's records contain.
func TestInstalled(t *testing.T) {
	g := NewWithT(t)
	_, p := publish(t)
	c := writableClient()
	installed := install(t, c, p)

	found, err := newPlanner(c).Charts.Installed(t.Context(), p, installed.Digest)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Metadata).To(Equal(installed.Chart.Metadata))

	_, other := publish(t)
	_, err = newPlanner(c).Charts.Installed(t.Context(), other, installed.Digest)
	g.Expect(err).To(MatchError(store.ErrNotFound))
}

// TestUnusedChartsAreDeleted: a chart stays while any resource has it in use or in its history.
func TestUnusedChartsAreDeleted(t *testing.T) {
	g := NewWithT(t)
	c := writableClient()
	planner := newPlanner(c)

	newProvider := func(namespace string) *v1alpha2.InfrastructureProvider {
		p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "docker", UID: types.UID(namespace),
		}}
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{Directory: samples}
		g.Expect(c.Create(t.Context(), p)).To(Succeed())

		return p
	}

	// use finds and stores the chart of a version, and names it in the status as the only one.
	use := func(p *v1alpha2.InfrastructureProvider, version string) {
		p.Spec.Version = version
		planned, err := planner.Plan(t.Context(), Request{Provider: p, Scope: c})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(planner.Charts.Save(t.Context(), p, planned.Chart)).To(Succeed())

		p.Status.Chart = planned.Chart.Status(nil)
		g.Expect(c.Update(t.Context(), p)).To(Succeed())
	}

	first, second := newProvider("first"), newProvider("second")

	use(first, "v1.0.0")
	use(second, "v1.0.0")
	g.Expect(storedCharts(t, c)).To(HaveLen(1), "the same content is stored once")

	use(first, "v1.1.0")
	g.Expect(storedCharts(t, c)).To(HaveLen(2), "the second one uses the old version")

	planner.Charts.Collect(t.Context(), second)
	g.Expect(storedCharts(t, c)).To(HaveLen(1))
	g.Expect(storedCharts(t, c)[0]).To(HaveSuffix(strings.TrimPrefix(first.Status.Chart.Digest, "sha256:")))

	planner.Charts.Collect(t.Context(), first)
	g.Expect(storedCharts(t, c)).To(BeEmpty())
}

// TestChartsThatCannotBePlannedAreDeleted: the source of a resource that lacks its Secret changes many times. Its
// status never names a chart.
func TestChartsThatCannotBePlannedAreDeleted(t *testing.T) {
	g := NewWithT(t)
	c := writableClient()
	planner := newPlanner(c)
	folder := t.TempDir()
	g.Expect(os.CopyFS(folder, os.DirFS(samples))).To(Succeed())

	p := aws("v1.0.0")
	p.Spec.FetchConfig.Directory = folder
	g.Expect(c.Create(t.Context(), p)).To(Succeed())

	components := filepath.Join(folder, "infrastructure-aws", "v1.0.0", "infrastructure-components.yaml")
	published, err := os.ReadFile(components)
	g.Expect(err).NotTo(HaveOccurred())

	for range 8 {
		published = append(published, "\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: more}}"...)
		g.Expect(os.WriteFile(components, published, 0o600)).To(Succeed())

		planned, err := planner.Plan(t.Context(), Request{Provider: p, Scope: c})
		g.Expect(err).To(MatchError(ContainSubstring("Secret")))
		g.Expect(planner.Charts.Save(t.Context(), p, planned.Chart)).To(Succeed())
		g.Expect(storedCharts(t, c)).To(HaveLen(1))
	}
}

// TestSaveIsRetried: a chart that could not be stored is stored by the next reconcile, which does not build it again.
func TestSaveIsRetried(t *testing.T) {
	g := NewWithT(t)
	p := aws("v1.0.0")
	c := readOnlyClient(variables(map[string][]byte{"AWS_B64ENCODED_CREDENTIALS": []byte("secret")}))
	planner := newPlanner(c)

	for range 2 {
		planned, err := planner.Plan(t.Context(), Request{Provider: p, Scope: c})
		g.Expect(err).NotTo(HaveOccurred())

		err = planner.Charts.Save(t.Context(), p, planned.Chart)
		g.Expect(err).To(HaveField("Reason", v1alpha2.ChartStoreErrorReason))
		g.Expect(err).To(MatchError(errWrite))
	}
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
		g.Expect(source.IsUnavailable(found.Outdated)).To(BeTrue())
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
