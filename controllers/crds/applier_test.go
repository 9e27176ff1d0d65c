package crds

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/test/bed"
)

func TestCRDs(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "CustomResourceDefinitions")
}

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]ss.example.com
  annotations: {cert-manager.io/inject-ca-from: published/serving-cert}
  labels: {cluster.x-k8s.io/provider: infrastructure-x}
spec:
  group: example.com
  names: {kind: %[2]s, listKind: %[2]sList, plural: %[1]ss, singular: %[1]s}
  scope: Namespaced
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {name: webhook, namespace: published, path: /convert}}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, description: "%[3]s"}}}
`

func file(singular, kind, description string) chart.File {
	return chart.File{Name: "crds/" + singular + "s.example.com.yaml", Data: fmt.Appendf(nil, crd, singular, kind, description)}
}

var _ = Describe("CustomResourceDefinitions", Ordered, func() {
	var applier *Applier
	var live client.Client
	var caBundle []byte // of the API server: any valid one will do

	BeforeAll(func(ctx SpecContext) {
		b, err := bed.Start(ctx, bed.Options{Nodes: -1, WithoutCertManager: true})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(b.Stop)
		caBundle = b.Config().CAData
		Expect(caBundle).NotTo(BeEmpty())
		full := runtime.NewScheme()
		Expect(apiextensionsv1.AddToScheme(full)).To(Succeed())
		live, err = client.New(b.Config(), client.Options{Scheme: full})
		Expect(err).NotTo(HaveOccurred())

		light := runtime.NewScheme()
		Expect(AddToScheme(light)).To(Succeed())
		definitions, err := cache.New(b.Config(), cache.Options{Scheme: light, DefaultTransform: WithoutSchemas})
		Expect(err).NotTo(HaveOccurred())
		running, stop := context.WithCancel(context.WithoutCancel(ctx))
		DeferCleanup(stop)
		go func() {
			defer GinkgoRecover()
			Expect(definitions.Start(running)).To(Succeed())
		}()
		Expect(definitions.WaitForCacheSync(ctx)).To(BeTrue())
		writer, err := metadata.NewForConfig(b.Config())
		Expect(err).NotTo(HaveOccurred())
		applier = &Applier{Writer: writer, Reader: definitions}
	})

	files := []chart.File{file("apple", "Apple", "first"), file("pear", "Pear", "first")}
	read := func(ctx context.Context, name string) *apiextensionsv1.CustomResourceDefinition {
		GinkgoHelper()
		object := &apiextensionsv1.CustomResourceDefinition{}
		Expect(live.Get(ctx, client.ObjectKey{Name: name}, object)).To(Succeed())
		return object
	}
	applied := func(ctx context.Context, files []chart.File) func(Gomega) []string {
		return func(g Gomega) []string {
			sent, err := applier.Apply(ctx, files, "target")
			g.Expect(err).NotTo(HaveOccurred())
			return sent
		}
	}

	It("are applied with their webhooks in the provider's namespace, and soon served", func(ctx SpecContext) {
		sent, err := applier.Apply(ctx, files, "target")
		Expect(err).NotTo(HaveOccurred())
		Expect(sent).To(Equal([]string{"apples.example.com", "pears.example.com"}))
		Eventually(func() ([]string, error) { return applier.Pending(ctx, files) }).Should(BeEmpty())
		object := read(ctx, "apples.example.com")
		Expect(object.Spec.Conversion.Webhook.ClientConfig.Service.Namespace).To(Equal("target"))
		Expect(object.Annotations).To(HaveKeyWithValue("cert-manager.io/inject-ca-from", "target/serving-cert"))
	})

	It("are not sent again while they are the same", func(ctx SpecContext) {
		Eventually(applied(ctx, files)).Should(BeEmpty())
	})

	It("keep what others wrote: cert-manager's caBundle, labels, annotations", func(ctx SpecContext) {
		object := read(ctx, "apples.example.com")
		object.Spec.Conversion.Webhook.ClientConfig.CABundle = caBundle
		object.Labels["somebody"] = "else"
		Expect(live.Update(ctx, object)).To(Succeed())

		changed := []chart.File{file("apple", "Apple", "second"), files[1]}
		Eventually(applied(ctx, changed)).Should(Equal([]string{"apples.example.com"}), "only the changed one is sent")
		object = read(ctx, "apples.example.com")
		Expect(object.Spec.Versions[0].Schema.OpenAPIV3Schema.Description).To(Equal("second"))
		Expect(object.Spec.Conversion.Webhook.ClientConfig.CABundle).To(Equal(caBundle))
		Expect(object.Labels).To(HaveKeyWithValue("somebody", "else"))
	})

	It("that the API server refuses are named, with its reason", func(ctx SpecContext) {
		bad := file("plum", "Plum", "first")
		bad.Data = append(bad.Data, []byte("  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n")...)
		_, err := applier.Apply(ctx, []chart.File{bad}, "target")
		Expect(err).To(MatchError(And(ContainSubstring("CustomResourceDefinition plums.example.com was refused"), ContainSubstring("storage"))))
	})

	It("whose names are taken are named", func(ctx SpecContext) {
		twin := file("cherry", "Apple", "the kind of another")
		Eventually(applied(ctx, []chart.File{twin})).ShouldNot(BeNil())
		Eventually(func() error { _, err := applier.Pending(ctx, []chart.File{twin}); return err }).Should(
			MatchError(And(ContainSubstring("cherrys.example.com was refused"), ContainSubstring("already in use"))))
	})
})
