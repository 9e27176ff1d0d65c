package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/supply/store"
	"github.com/capstan-project/capstan/test/fakesource"
	"github.com/capstan-project/capstan/test/harness"
)

var _ = Describe("ConfigMaps with components for other programs", Ordered, func() {
	var (
		w      *world
		server *fakesource.Server
	)

	BeforeAll(func(ctx SpecContext) {
		server = &fakesource.Server{}
		Expect(server.Start()).To(Succeed())
		DeferCleanup(func() { _ = server.Stop() })

		w = readyWorld(ctx, "--components-configmaps")
	})

	// publish publishes a version of a small bootstrap provider, and returns it with its resource.
	publish := func(ctx context.Context, name string) (*harness.Release, v1alpha2.Provider) {
		GinkgoHelper()

		kind := v1alpha2.BootstrapProviderType
		release := harness.Small(kind, client.ObjectKey{Namespace: name, Name: name}, name, "v1.0.0")
		server.Publish("owner/"+name, "v1.0.0", map[string][]byte{
			"metadata.yaml": release.Bundle.Metadata, kind.ComponentsFile(): release.Bundle.Components,
		})

		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		Expect(w.client.Create(ctx, namespace)).To(Succeed())

		p := release.Resource()
		p.GetSpec().FetchConfig = &v1alpha2.FetchConfiguration{HTTP: server.URL() + "/plain/owner/" + name}

		return release, p
	}

	It("give the same chart in a cluster without access to the source", func(ctx SpecContext) {
		release, p := publish(ctx, "carried")
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		cm := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: "carried", Name: "bootstrap-carried-v1.0.0"}
		Expect(w.client.Get(ctx, key, cm)).To(Succeed())
		Expect(cm.Data).To(Equal(map[string]string{
			"metadata": string(release.Bundle.Metadata), "components": string(release.Bundle.Components),
		}))

		Expect(server.Stop()).To(Succeed())

		By("copying it to another cluster")

		isolated := readyWorld(ctx, "--use-labeled-configmaps")
		copied := cm.DeepCopy()
		copied.ResourceVersion, copied.UID, copied.OwnerReferences = "", "", nil
		same := release.Resource()
		same.GetSpec().FetchConfig = nil

		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "carried"}}
		for _, o := range []client.Object{namespace, copied, same} {
			Expect(isolated.client.Create(ctx, o)).To(Succeed())
		}

		Eventually(isolated.read(ctx, same)).Should(beReady("v1.0.0"))
		Expect(same.GetStatus().Chart.Source).To(Equal("configmap"))
		Expect(contentID(ctx, isolated, same)).To(Equal(contentID(ctx, w, p)))

		By("deleting the resource")
		Expect(w.client.Delete(ctx, p)).To(Succeed())
		Eventually(func() bool { return apierrors.IsNotFound(w.client.Get(ctx, key, cm)) }).Should(BeTrue())

		Expect(server.Start()).To(Succeed())
	})

	It("do not replace those of users", func(ctx SpecContext) {
		_, p := publish(ctx, "taken")
		mine := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "taken", Name: "bootstrap-taken-v1.0.0"},
			Data:       map[string]string{"mine": "yes"},
		}
		Expect(w.client.Create(ctx, mine)).To(Succeed())
		Expect(w.client.Create(ctx, p)).To(Succeed())

		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Eventually(w.events(ctx, p)).Should(ContainElement(And(
			HaveField("Reason", v1alpha2.ComponentsNotWrittenReason),
			HaveField("Note", ContainSubstring("ConfigMap taken/bootstrap-taken-v1.0.0")))))

		Expect(w.client.Get(ctx, client.ObjectKeyFromObject(mine), mine)).To(Succeed())
		Expect(mine.Data).To(Equal(map[string]string{"mine": "yes"}))

		By("requesting it, as the documentation says, after that was deleted")
		Expect(w.client.Delete(ctx, mine)).To(Succeed())

		out, err := w.bed.Command(ctx, "kubectl", "annotate", "capstan", "--all", "--all-namespaces", "--overwrite",
			v1alpha2.ReconcileRequestAnnotation+"=now").CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		Eventually(func(g Gomega) {
			g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(mine), mine)).To(Succeed())
			g.Expect(mine.Data).To(HaveKey("components"))
		}).Should(Succeed())
	})
})

// contentID returns the content ID of a provider's chart. Charts with the same ID are equal but for their source.
func contentID(ctx context.Context, w *world, p v1alpha2.Provider) string {
	GinkgoHelper()

	stored, err := (&store.Cluster{Client: w.client}).Find(ctx, store.FindOptions{
		Namespace: p.GetNamespace(), Provider: v1alpha2.Label(p),
		Version: p.GetSpec().Version, Digest: p.GetStatus().Chart.Digest,
	})
	Expect(err).NotTo(HaveOccurred())

	id := stored.Chart.Metadata.Annotations[chartgen.AnnotationContentID]
	Expect(id).NotTo(BeEmpty())

	return id
}
