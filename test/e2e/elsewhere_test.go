package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

var _ = Describe("A provider that another program has installed in another namespace", Ordered, func() {
	var (
		w       *world
		t       tiny
		manager *appsv1.Deployment
		crd     *apiextensionsv1.CustomResourceDefinition
		uids    map[client.Object]string
	)

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
		t = newTiny("elsewhere", "v1.0.0")
		w.applyAsClusterctl(ctx, t)

		manager, crd = &appsv1.Deployment{}, &apiextensionsv1.CustomResourceDefinition{}
		manager.SetNamespace("elsewhere-system")
		manager.SetName("elsewhere-controller-manager")
		crd.SetName(t.crd())

		uids = map[client.Object]string{}

		for _, o := range []client.Object{manager, crd} {
			Expect(w.client.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
			uids[o] = string(o.GetUID())
		}
	})

	// expectKept checks that the objects of the other program are the same as before.
	expectKept := func(ctx context.Context) {
		GinkgoHelper()

		for o, uid := range uids {
			Expect(w.client.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
			Expect(string(o.GetUID())).To(Equal(uid))
			Expect(o.GetDeletionTimestamp()).To(BeNil())
		}
	}

	It("is not installed a second time, and stays when the mistaken resource is deleted", func(ctx SpecContext) {
		p := t.resource()
		p.Annotations = map[string]string{v1alpha2.DeleteCRDsAnnotation: "true"}
		generation := manager.Generation

		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		Expect(w.client.Create(ctx, t.configMap())).To(Succeed())
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(And(
			failPreflight(v1alpha2.MoreThanOneProviderInstanceExistsReason,
				"infrastructure-elsewhere is already installed in namespace elsewhere-system",
				"Deployment elsewhere-controller-manager",
				"create the resource in that namespace"),
			beStalled(v1alpha2.MoreThanOneProviderInstanceExistsReason),
			HaveField("Status.Release", BeNil())))
		Expect(w.helm(ctx, "helm", "list", "-n", t.name)).To(BeEmpty())

		Expect(w.client.Delete(ctx, p)).To(Succeed())
		Eventually(gone(ctx, w, p)).Should(BeTrue())
		expectKept(ctx)
		Expect(manager.Generation).To(Equal(generation))
	})

	It("is adopted by a resource in its own namespace", func(ctx SpecContext) {
		p, source := t.resource(), t.configMap()
		p.Namespace, source.Namespace = manager.Namespace, manager.Namespace
		Expect(w.client.Create(ctx, source)).To(Succeed())
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		expectKept(ctx)
	})
})

// applyAsClusterctl applies a provider's components with clusterctl's labels.
func (w *world) applyAsClusterctl(ctx context.Context, t tiny) {
	GinkgoHelper()

	objects, err := utilyaml.ToUnstructured([]byte(t.components))
	Expect(err).NotTo(HaveOccurred())

	for i := range objects {
		o := &objects[i]
		o.SetLabels(map[string]string{
			v1alpha2.ClusterctlLabel: "", v1alpha2.ClusterctlProviderLabel: "infrastructure-" + t.name,
		})
		Expect(w.client.Create(ctx, o, client.FieldOwner("clusterctl"))).To(Succeed())
	}
}
