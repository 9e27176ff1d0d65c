package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/store"
	"github.com/capstan-project/capstan/test/fakesource"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/image"
)

// The operator's configuration may list providers in registries, for resources without fetchConfig.
var _ = Describe("A catalog", Ordered, func() {
	var (
		w      *world
		r      *privateRegistry
		server *fakesource.Server
	)

	// fromCatalog returns a resource without fetchConfig, in a namespace of its own.
	fromCatalog := func(ctx context.Context, t tiny) *v1alpha2.InfrastructureProvider {
		GinkgoHelper()
		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())

		return only(v1alpha2.InfrastructureProviderType, t.name, t.name, t.version).(*v1alpha2.InfrastructureProvider)
	}

	BeforeAll(func(ctx SpecContext) {
		w = newWorld(ctx)
		r = newPrivateRegistry(ctx, "")
		server = &fakesource.Server{}
		Expect(server.Start()).To(Succeed())
		DeferCleanup(func() { _ = server.Stop() })

		catalog := "providers:\n"
		for name, url := range map[string]string{
			"forged":   server.URL() + "/owner/forged/releases/latest/infrastructure-components.yaml",
			"artifact": "oci://" + r.Address + "/files/artifact",
			"image":    "image://" + r.Address + "/images/tiny",
		} {
			catalog += fmt.Sprintf("- {name: %s, type: InfrastructureProvider, url: %q}\n", name, url)
		}

		config := filepath.Join(GinkgoT().TempDir(), "clusterctl.yaml")
		Expect(os.WriteFile(config, []byte(catalog), 0o600)).To(Succeed())

		w.start(append(r.access(), "--config="+config)...)
		core := w.install(ctx, samples, harness.Wanted{Label: "cluster-api"})
		Eventually(w.read(ctx, core)).Should(beReady("v1.0.0"))
	})

	It("may name artifacts, which are read with the operator's credentials for all accounts", func(ctx SpecContext) {
		t := newTiny("artifact", "v1.0.0")
		published := r.pushFiles(ctx, t)
		p := fromCatalog(ctx, t)
		p.Spec.ServiceAccountName = "installer"
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.MissingPermissionsReason))

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().ServiceAccountName = "" })
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), HaveField("Status.Chart.Source", published.String())))
	})

	It("may name images", func(ctx SpecContext) {
		t := newTiny("image", "v1.0.0")
		_, err := image.Push(ctx, r.client, r.at("images/tiny:v1.0.0"), []string{"linux/amd64"}, image.Layer(
			image.Entry{Name: "capi-manifests/metadata.yaml", Content: t.metadata},
			image.Entry{Name: "capi-manifests/manifests.yaml", Content: t.components},
		))
		Expect(err).NotTo(HaveOccurred())

		p := fromCatalog(ctx, t)
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
	})

	It("is not replaced by a stored chart that a tenant forged", func(ctx SpecContext) {
		t := newTiny("forged", "v1.0.0")
		server.Publish("owner/forged", t.version, map[string][]byte{
			"metadata.yaml": []byte(t.metadata), "infrastructure-components.yaml": []byte(t.components),
		})

		published := &bundle.Bundle{
			Provider:   source.Provider(v1alpha2.InfrastructureProviderType, t.name),
			Version:    t.version,
			Components: []byte(t.components),
			Metadata:   []byte(t.metadata),
			Source:     server.URL() + "/owner/forged/releases/download/v1.0.0/infrastructure-components.yaml",
		}
		genuine, err := chartgen.Build(published)
		Expect(err).NotTo(HaveOccurred())

		altered := *published
		altered.Components = []byte(newTiny("forged", "v1.0.66").components)
		content, err := chartgen.Build(&altered)
		Expect(err).NotTo(HaveOccurred())

		p := fromCatalog(ctx, t)

		// The forged chart claims the content and the origin of the genuine one.
		_, err = (&store.Cluster{Client: w.client}).Put(ctx, store.Key{
			Namespace: "forged",
			Provider:  "infrastructure-forged",
			Version:   t.version,
			ContentID: genuine.Metadata.Annotations[chartgen.AnnotationContentID],
			Origin:    published.Source,
		}, withMetadata(content, func(m *chart.Metadata) { m.Annotations = genuine.Metadata.Annotations }))
		Expect(err).NotTo(HaveOccurred())

		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(w.images(ctx, "forged")).To(ConsistOf(HaveSuffix("/forged:v1.0.0")))
	})
})
