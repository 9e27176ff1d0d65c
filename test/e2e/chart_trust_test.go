package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/store"
	"github.com/capstan-project/capstan/test/fakesource"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/image"
)

// A chart repository is shared by all namespaces, and by all clusters that use it. What a user of one
// namespace controls must not get into it, and not through it into another namespace.
var _ = Describe("A chart repository that the operator pushes to", Ordered, func() {
	var (
		w      *world
		r      *privateRegistry
		server *fakesource.Server
	)

	// publish publishes a release at the source of the catalog.
	publish := func(t tiny) *bundle.Bundle {
		server.Publish("owner/"+t.name, t.version, map[string][]byte{
			"metadata.yaml": []byte(t.metadata), "infrastructure-components.yaml": []byte(t.components),
		})

		return &bundle.Bundle{
			Provider:   source.Provider(v1alpha2.InfrastructureProviderType, t.name),
			Version:    t.version,
			Components: []byte(t.components),
			Metadata:   []byte(t.metadata),
			Source: server.URL() + "/owner/" + t.name + "/releases/download/" + t.version +
				"/infrastructure-components.yaml",
		}
	}
	// fromCatalog returns a resource without fetchConfig.
	fromCatalog := func(ctx context.Context, t tiny, namespace string) *v1alpha2.InfrastructureProvider {
		GinkgoHelper()

		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		Expect(client.IgnoreAlreadyExists(w.client.Create(ctx, ns))).To(Succeed())

		return only(v1alpha2.InfrastructureProviderType, namespace, t.name, t.version).(*v1alpha2.InfrastructureProvider)
	}
	tags := func(ctx context.Context, t tiny) []string {
		GinkgoHelper()

		found, err := r.client.Tags(ctx, r.at("capi/charts/infrastructure-"+t.name))
		if oci.IsReason(err, oci.NotFound) {
			return nil
		}

		Expect(err).NotTo(HaveOccurred())

		return found
	}

	BeforeAll(func(ctx SpecContext) {
		w = newWorld(ctx)
		r = newPrivateRegistry(ctx, "")
		server = &fakesource.Server{}
		Expect(server.Start()).To(Succeed())
		DeferCleanup(func() { _ = server.Stop() })

		catalog := "providers:\n"
		for _, name := range []string{"planted", "forged", "common"} {
			catalog += fmt.Sprintf("- name: %s\n  type: InfrastructureProvider\n  url: %s/owner/%s/releases/latest/%s\n",
				name, server.URL(), name, "infrastructure-components.yaml")
		}

		for name, url := range map[string]string{"artifact": "oci://%s/files/artifact", "image": "image://%s/images/tiny"} {
			catalog += fmt.Sprintf("- {name: %s, type: InfrastructureProvider, url: "+url+"}\n", name, r.Address)
		}

		config := filepath.Join(GinkgoT().TempDir(), "clusterctl.yaml")
		Expect(os.WriteFile(config, []byte(catalog), 0o600)).To(Succeed())

		w.start(append(r.flags(), "--trust-chart-repository=false", "--push-charts", "--config="+config)...)
		core := w.install(ctx, samples, harness.Wanted{Label: "cluster-api"})
		Eventually(w.read(ctx, core)).Should(beReady("v1.0.0"))
	})

	It("gets the charts of the catalog's providers", func(ctx SpecContext) {
		t := newTiny("common", "v1.0.0")
		published := publish(t)
		p := fromCatalog(ctx, t, "common")
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		pushed, err := r.client.PullChart(ctx, r.at("capi/charts/infrastructure-common:1.0.0"))
		Expect(err).NotTo(HaveOccurred())
		Expect(pushed.Digest).To(Equal(p.Status.Chart.Digest))
		Expect(pushed.Metadata.Annotations).To(HaveKeyWithValue(chartgen.AnnotationSource, published.Source))
	})

	It("gets the charts of artifacts in the catalog, which are read with the operator's credentials for all accounts",
		func(ctx SpecContext) {
			t := newTiny("artifact", "v1.0.0")
			published := r.pushFiles(ctx, t)
			p := fromCatalog(ctx, t, "artifact")
			p.Spec.ServiceAccountName = "installer"
			Expect(w.client.Create(ctx, p)).To(Succeed())
			Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.MissingPermissionsReason))

			update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().ServiceAccountName = "" })
			Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
			pushed, err := r.client.PullChart(ctx, r.at("capi/charts/infrastructure-artifact:1.0.0"))
			Expect(err).NotTo(HaveOccurred())
			Expect(pushed.Digest).To(Equal(p.Status.Chart.Digest))
			Expect(pushed.Metadata.Annotations).To(HaveKeyWithValue(chartgen.AnnotationSource, published.String()))
		})

	It("gets the charts of images in the catalog", func(ctx SpecContext) {
		t := newTiny("image", "v1.0.0")
		_, err := image.Push(ctx, r.client, r.at("images/tiny:v1.0.0"), []string{"linux/amd64"}, image.Layer(
			image.Entry{Name: "capi-manifests/metadata.yaml", Content: t.metadata},
			image.Entry{Name: "capi-manifests/manifests.yaml", Content: t.components},
		))
		Expect(err).NotTo(HaveOccurred())

		p := fromCatalog(ctx, t, "image")
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(tags(ctx, t)).To(ConsistOf("1.0.0"))
	})

	It("never gets what a ConfigMap of a tenant contains, nor does another namespace", func(ctx SpecContext) {
		publish(newTiny("planted", "v1.0.0"))

		evil := newTiny("planted", "v1.0.99")
		Expect(w.client.Create(ctx, evil.namespace())).To(Succeed())
		Expect(w.client.Create(ctx, evil.configMap())).To(Succeed())
		tenant := evil.resource()
		Expect(w.client.Create(ctx, tenant)).To(Succeed())
		Eventually(w.read(ctx, tenant)).Should(beReady("v1.0.99"))
		Expect(tags(ctx, evil)).To(BeEmpty())
		Expect(w.client.Delete(ctx, tenant)).To(Succeed())
		Eventually(gone(ctx, w, tenant)).Should(BeTrue())

		victim := fromCatalog(ctx, newTiny("planted", ""), "victim")
		victim.Spec.Version = "~1.0"
		Expect(w.client.Create(ctx, victim)).To(Succeed())
		Eventually(w.read(ctx, victim)).Should(beReady("v1.0.0"))
		update(ctx, w, victim, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.0.99" })
		Eventually(w.read(ctx, victim)).Should(notBeReady(v1alpha2.VersionNotFoundReason))
		Expect(w.images(ctx, "victim")).To(HaveEach(HaveSuffix("/planted:v1.0.0")))
	})

	It("never gets a stored chart that a tenant forged, which is not installed either", func(ctx SpecContext) {
		t := newTiny("forged", "v1.0.0")
		published := publish(t)
		genuine, err := chartgen.Build(published)
		Expect(err).NotTo(HaveOccurred())

		altered := *published
		altered.Components = []byte(newTiny("forged", "v1.0.66").components)
		content, err := chartgen.Build(&altered)
		Expect(err).NotTo(HaveOccurred())

		// The forged chart claims the content and the origin of the genuine one.
		content = withMetadata(content, func(m *chart.Metadata) { m.Annotations = genuine.Metadata.Annotations })
		p := fromCatalog(ctx, t, "forged")

		for _, origin := range []string{
			published.Source,
			r.at("capi/charts/infrastructure-forged:v1.0.0").String() + " or " + published.Source,
		} {
			_, err = (&store.Cluster{Client: w.client}).Put(ctx, store.Key{
				Namespace: "forged",
				Provider:  "infrastructure-forged",
				Version:   t.version,
				ContentID: chartgen.ContentID(published),
				Origin:    origin,
			}, content)
			Expect(err).NotTo(HaveOccurred())
		}

		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(w.images(ctx, "forged")).To(ConsistOf(HaveSuffix("/forged:v1.0.0")))

		pushed, err := r.client.PullChart(ctx, r.at("capi/charts/infrastructure-forged:1.0.0"))
		Expect(err).NotTo(HaveOccurred())
		Expect(pushed.Digest).To(Equal(p.Status.Chart.Digest))
		Expect(tags(ctx, t)).To(Equal([]string{"1.0.0"}))
	})
})
