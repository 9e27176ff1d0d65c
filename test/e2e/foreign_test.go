package e2e

import (
	"context"
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
)

var _ = Describe("A Helm release that has the name of a provider's release", Ordered, func() {
	var w *world

	BeforeAll(func(ctx SpecContext) { w = sharedWorld(ctx) })

	// install creates a provider's namespace and source, and installs a chart as its release.
	install := func(ctx context.Context, t tiny, chart string) {
		GinkgoHelper()
		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		Expect(w.client.Create(ctx, t.configMap())).To(Succeed())
		w.run(ctx, "helm", "install", "infrastructure-"+t.name, chart, "-n", t.name)
	}

	It("is left alone if it holds another chart, until the user allows to replace it", func(ctx SpecContext) {
		t := newTiny("namesake", "v1.0.0")
		install(ctx, t, platformChart())

		p := t.resource()
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.InstallFailedReason,
			"Helm release namesake/infrastructure-namesake was created by another program",
			"revision 1 contains chart platform 1.0.0",
			`set the annotation capstan.dev/adopt-release: "true"`))

		platform := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: t.name, Name: "platform"}
		Expect(w.client.Get(ctx, key, platform)).To(Succeed())
		Expect(w.helm(ctx, "helm", "history", "infrastructure-namesake", "-n", t.name)).To(HaveLen(1))

		By("deleting the resource")
		Expect(w.client.Delete(ctx, p)).To(Succeed())
		Eventually(gone(ctx, w, p)).Should(BeTrue())
		Expect(w.client.Get(ctx, key, platform)).To(Succeed())
		Expect(w.helm(ctx, "helm", "history", "infrastructure-namesake", "-n", t.name)).To(HaveLen(1))

		By("allowing it")

		p = t.resource()
		p.Annotations = map[string]string{v1alpha2.AdoptReleaseAnnotation: "true"}
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(client.IgnoreNotFound(w.client.Get(ctx, key, platform))).To(Succeed())
		Expect(w.helm(ctx, "helm", "history", "infrastructure-namesake", "-n", t.name)).To(HaveLen(2))
	})

	It("is left alone if it has replaced the provider's own release", func(ctx SpecContext) {
		t := newTiny("replaced", "v1.0.0")
		p := t.resource()
		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		Expect(w.client.Create(ctx, t.configMap())).To(Succeed())
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		w.run(ctx, "helm", "uninstall", "infrastructure-replaced", "-n", t.name)
		w.run(ctx, "helm", "install", "infrastructure-replaced", platformChart(), "-n", t.name)
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: "now"})
			p.SetFinalizers(append(p.GetFinalizers(), "example.com/hold"))
			p.GetSpec().Paused = true
		})
		Eventually(w.read(ctx, p)).Should(And(
			HaveField("Status.LastHandledReconcileAt", "now"),
			haveCondition(v1alpha2.ProviderInstalledCondition, metav1.ConditionFalse, v1alpha2.InstallFailedReason, ""),
			HaveField("Status.Release", Not(BeNil())),
			beStalled(v1alpha2.InstallFailedReason, "revision 1 contains chart platform 1.0.0")))

		By("deleting the resource, which another program holds")
		Expect(w.client.Delete(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(And(
			HaveField("Finalizers", ConsistOf("example.com/hold")),
			Not(haveCondition(v1alpha2.ProviderInstalledCondition, metav1.ConditionFalse, v1alpha2.UninstalledReason, ""))))
		update(ctx, w, p, func(p v1alpha2.Provider) { p.SetFinalizers(nil) })
		Eventually(gone(ctx, w, p)).Should(BeTrue())
		Expect(w.client.Get(ctx, client.ObjectKey{Namespace: t.name, Name: "platform"}, &corev1.ConfigMap{})).To(Succeed())
		Expect(w.helm(ctx, "helm", "history", "infrastructure-replaced", "-n", t.name)).To(HaveLen(1))
	})

	It("is not called the provider if an upgrade by hand has put another chart into it", func(ctx SpecContext) {
		t := newTiny("mistaken", "v1.0.0")
		p := t.resource()
		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		Expect(w.client.Create(ctx, t.configMap())).To(Succeed())
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		w.run(ctx, "helm", "upgrade", "infrastructure-mistaken", platformChart(), "-n", t.name)
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.ExternalChangeReason,
			"chart platform 1.0.0 is installed in place of the provider",
			"another program made revision 2 of release infrastructure-mistaken"))
		Eventually(w.read(ctx, p)).Should(haveCondition(v1alpha2.ProviderInstalledCondition, metav1.ConditionFalse,
			v1alpha2.ExternalChangeReason, "chart platform 1.0.0"))

		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: "undo"})
		})
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
	})

	It("is adopted if it holds the provider's own chart", func(ctx SpecContext) {
		t := newTiny("installed-before", "v1.0.0")
		built, err := chartgen.Build(&bundle.Bundle{
			Provider:   bundle.Provider{Type: "InfrastructureProvider", Name: t.name, Label: "infrastructure-" + t.name},
			Version:    t.version,
			Source:     "test",
			Metadata:   []byte(t.metadata),
			Components: []byte(t.components),
		})
		Expect(err).NotTo(HaveOccurred())
		archive, err := built.Archive()
		Expect(err).NotTo(HaveOccurred())

		file := filepath.Join(GinkgoT().TempDir(), "chart.tgz")
		Expect(os.WriteFile(file, archive, 0o600)).To(Succeed())
		install(ctx, t, file)
		Eventually(w.managerOf(ctx, "infrastructure-"+t.name)).
			Should(HaveField("Status.AvailableReplicas", BeNumerically("==", 1)))

		before := w.identitiesOf(ctx, t.name)
		p := t.resource()

		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(w.helm(ctx, "helm", "history", "infrastructure-"+t.name, "-n", t.name)).To(HaveLen(2))
		Expect(w.identitiesOf(ctx, t.name)).To(Equal(before), "no pod restarts")
	})
})

// platformChart writes a user's own chart, with one ConfigMap, and returns its folder.
func platformChart() string {
	GinkgoHelper()

	folder := GinkgoT().TempDir()
	templates := filepath.Join(folder, "templates")
	Expect(os.Mkdir(templates, 0o700)).To(Succeed())

	for file, content := range map[string]string{
		filepath.Join(folder, "Chart.yaml"):       "apiVersion: v2\nname: platform\nversion: 1.0.0\n",
		filepath.Join(templates, "platform.yaml"): "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: platform}\n",
	} {
		Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
	}

	return folder
}
