package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/image"
)

// The operator's configuration may list providers in registries, for resources without fetchConfig.
var _ = Describe("A catalog", Ordered, func() {
	var (
		w *world
		r *privateRegistry
	)

	// fromCatalog returns a resource without fetchConfig, in a namespace of its own.
	fromCatalog := func(ctx context.Context, t tiny) *v1alpha2.InfrastructureProvider {
		GinkgoHelper()
		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())

		return only(v1alpha2.InfrastructureProviderType, t.name, t.name, t.version).(*v1alpha2.InfrastructureProvider)
	}

	BeforeAll(func(ctx SpecContext) {
		r = newPrivateRegistry(ctx, "")

		catalog := "providers:\n"
		for name, url := range map[string]string{
			"artifact": "oci://" + r.Address + "/files/artifact",
			"image":    "image://" + r.Address + "/images/tiny",
			"delisted": "oci://" + r.Address + "/files/delisted",
		} {
			catalog += fmt.Sprintf("- {name: %s, type: InfrastructureProvider, url: %q}\n", name, url)
		}

		config := filepath.Join(GinkgoT().TempDir(), "clusterctl.yaml")
		Expect(os.WriteFile(config, []byte(catalog), 0o600)).To(Succeed())

		w = sharedWorld(ctx, append(r.access(), "--config="+config)...)
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

	// clusterctl's list loses providers whose projects are deleted.
	It("may lose an entry, whose provider stays managed", func(ctx SpecContext) {
		t := newTiny("delisted", "v1.0.0")
		r.pushFiles(ctx, t)
		r.pushFiles(ctx, newTiny("delisted", "v1.1.0"))

		p := fromCatalog(ctx, t)
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		w.restart(r.access()...)

		By("correcting what runs")

		manager := &appsv1.Deployment{ObjectMeta: named(p.Namespace, "delisted-controller-manager")}
		Expect(w.client.Delete(ctx, manager)).To(Succeed())
		Eventually(func() error { return w.client.Get(ctx, client.ObjectKeyFromObject(manager), manager) }).Should(Succeed())
		Eventually(w.read(ctx, p)).Should(And(
			beReady("v1.0.0"),
			haveCondition(v1alpha2.InputsUnavailableCondition, metav1.ConditionTrue, v1alpha2.UnknownProviderReason),
		))

		By("changing its settings")
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Variables = map[string]string{"TINY_LEVEL": "debug"} })
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), HaveField("Status.Release.Revision", 2),
			haveCondition(v1alpha2.InputsUnavailableCondition, metav1.ConditionTrue, v1alpha2.UnknownProviderReason)))
		Expect(w.client.Get(ctx, client.ObjectKeyFromObject(manager), manager)).To(Succeed())
		Expect(manager.Spec.Template.Spec.Containers[0].Args).To(ConsistOf("--level=debug"))

		By("upgrading it once the resource names its source")
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.UnknownProviderReason,
			"v1.0.0 runs; v1.1.0 is not applied: ", "set spec.fetchConfig to where its components are"))

		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().FetchConfig = &v1alpha2.FetchConfiguration{OCI: r.Address + "/files/delisted"}
		})
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))

		Expect(w.client.Delete(ctx, p)).To(Succeed())
		Eventually(gone(ctx, w, p)).Should(BeTrue())
		Expect(gone(ctx, w, manager)()).To(BeTrue())
	})
})
