package crds

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// drifted returns a function that returns which CRDs have drifted, of a request that changes none.
func drifted(ctx context.Context, r Request) func(Gomega) []Drift {
	return func(g Gomega) []Drift {
		plan, err := applier.Plan(ctx, r)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(plan.HasChanges()).To(BeFalse())

		return plan.Drifted
	}
}

var _ = Describe("A CRD that another program changes", Ordered, func() {
	const name = "plums.example.com"

	crdFile := file("plum", "Plum", "first")

	BeforeAll(func(ctx SpecContext) {
		_, err := apply(ctx, wants(crdFile))
		Expect(err).NotTo(HaveOccurred())
		served(ctx, crdFile)
		Eventually(drifted(ctx, wants(crdFile))).Should(BeEmpty())
	})

	DescribeTable("is known without a request, and corrected",
		func(ctx SpecContext, change func(*apiextensionsv1.CustomResourceDefinition), fields ...string) {
			before := read(ctx, name)

			edit(ctx, name, change, client.FieldOwner("kubectl-edit"))
			Eventually(drifted(ctx, wants(crdFile))).Should(ConsistOf(And(HaveField("Name", name), HaveField("Fields", fields))))

			plan, err := applier.Plan(ctx, wants(crdFile))
			Expect(err).NotTo(HaveOccurred())
			Expect(applier.Apply(ctx, plan.Correction(plan.Drifted[0]))).To(Equal([]string{name}))

			after := read(ctx, name)
			Expect(after.Spec).To(Equal(before.Spec))
			Expect(after.Labels).To(Equal(before.Labels))
			Expect(after.Annotations).To(Equal(before.Annotations))
			Eventually(drifted(ctx, wants(crdFile))).Should(BeEmpty())
		},
		Entry("the schema", func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "other"
		}, "/spec/versions"),
		Entry("the names", func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Names.ListKind = "Plums"
		}, "/spec/names/listKind"),
		Entry("the conversion", func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		}, "/spec/conversion/strategy", "/spec/conversion/webhook/clientConfig/service/name",
			"/spec/conversion/webhook/clientConfig/service/namespace", "/spec/conversion/webhook/clientConfig/service/path",
			"/spec/conversion/webhook/conversionReviewVersions"),
		Entry("the labels and the certificate", func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Annotations[v1alpha2.InjectCAAnnotation] = "other/cert"
			delete(crd.Labels, "published")
		}, "/metadata/annotations/cert-manager.io~1inject-ca-from", "/metadata/labels/published"),
	)

	It("has not drifted by what others add, such as cert-manager's CA", func(ctx SpecContext) {
		edit(ctx, name, func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Conversion.Webhook.ClientConfig.CABundle = config.CAData
			crd.Spec.Conversion.Webhook.ClientConfig.Service.Port = ptr.To[int32](8443)
			crd.Spec.Names.ShortNames = []string{"pl"}
			crd.Labels["team"] = "a"
			crd.Annotations["note"] = "b"
		}, client.FieldOwner("cert-manager-cainjector"))

		generation := read(ctx, name).Generation

		Eventually(func(g Gomega) {
			seen, err := applier.getCached(ctx, name)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(seen.Generation).To(Equal(generation))
			g.Expect(seen.Labels).To(HaveKey("team"))
		}).Should(Succeed())
		Expect(drifted(ctx, wants(crdFile))(Default)).To(BeEmpty())
	})
})

var _ = Describe("The file of a CRD", func() {
	It("is not parsed when its chart was just built, nor after it was applied", func(ctx SpecContext) {
		f := file("fig", "Fig", "first")
		content, err := f.JSON()
		Expect(err).NotTo(HaveOccurred())

		f = chart.File{Name: f.Name, Data: []byte("cannot be parsed: [")}.WithJSON(content)

		Expect(DefinedKinds([]chart.File{f})).To(HaveLen(1))
		Expect(apply(ctx, wants(f))).To(Equal([]string{"figs.example.com"}))
		served(ctx, f)
		Eventually(drifted(ctx, wants(f))).Should(BeEmpty())

		// Nothing needs it any more.
		Eventually(func(g Gomega) {
			g.Expect(drifted(ctx, wants(f))(g)).To(BeEmpty())
			_, err := f.JSON()
			g.Expect(err).To(HaveOccurred())
		}).Should(Succeed())
		Expect(drifted(ctx, wants(f))(Default)).To(BeEmpty())
	})

	It("is parsed once for plans of a change", func(ctx SpecContext) {
		first, second := file("kiwi", "Kiwi", "first"), file("kiwi", "Kiwi", "second")

		Expect(apply(ctx, wants(first))).To(HaveLen(1))
		served(ctx, first)

		content, err := second.JSON()
		Expect(err).NotTo(HaveOccurred())

		second = chart.File{Name: second.Name, Data: []byte("cannot be parsed: [")}.WithJSON(content)

		for range 2 {
			plan, err := applier.Plan(ctx, wants(second))
			Expect(err).NotTo(HaveOccurred())
			Expect(plan.HasChanges()).To(BeTrue())
			second.DropJSON()
		}
	})
})

var _ = Describe("The CRDs of real providers", func() {
	It("have not drifted once they are applied", func(ctx SpecContext) {
		files, _ := coreCRDs(GinkgoTB())
		crd, err := newDefinition(files[0], "").parse()
		Expect(err).NotTo(HaveOccurred())

		request := wants(files...)
		request.Label = crd.Labels[v1alpha2.ClusterctlProviderLabel]
		Expect(apply(ctx, request)).To(HaveLen(len(files)))
		Eventually(drifted(ctx, request)).Should(BeEmpty())
	})
})
