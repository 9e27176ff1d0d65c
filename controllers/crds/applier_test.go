package crds

import (
	"bytes"
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/chart"
)

var _ = Describe("Apply", Ordered, func() {
	files := []chart.File{file("apple", "Apple", "first"), file("pear", "Pear", "first")}
	applied := func(ctx context.Context, files ...chart.File) func(Gomega) []string {
		return func(g Gomega) []string {
			sent, err := apply(ctx, wants(files...))
			g.Expect(err).NotTo(HaveOccurred())

			return sent
		}
	}

	It("moves conversion webhooks to the provider's namespace", func(ctx SpecContext) {
		sent, err := apply(ctx, wants(files...))
		Expect(err).NotTo(HaveOccurred())
		Expect(sent).To(Equal([]string{"apples.example.com", "pears.example.com"}))
		served(ctx, files...)
		object := read(ctx, "apples.example.com")
		Expect(object.Spec.Conversion.Webhook.ClientConfig.Service.Namespace).To(Equal("target"))
		Expect(object.Annotations).To(And(HaveKeyWithValue("cert-manager.io/inject-ca-from", "target/serving-cert"),
			HaveKeyWithValue("capstan.dev/crd-version", "v1.1.0")))
	})

	It("does not send unchanged CRDs again", func(ctx SpecContext) {
		Eventually(applied(ctx, files...)).Should(BeEmpty())
	})

	It("keeps fields of others: cert-manager's caBundle, labels, annotations", func(ctx SpecContext) {
		edit(ctx, "apples.example.com", func(object *apiextensionsv1.CustomResourceDefinition) {
			object.Spec.Conversion.Webhook.ClientConfig.CABundle = config.CAData // any valid one will do
			object.Labels["other"] = "label"
		})

		Eventually(applied(ctx, file("apple", "Apple", "second"), files[1])).
			Should(Equal([]string{"apples.example.com"}), "only the changed one is sent")
		object := read(ctx, "apples.example.com")
		Expect(object.Spec.Versions[0].Schema.OpenAPIV3Schema.Description).To(Equal("second"))
		Expect(object.Spec.Conversion.Webhook.ClientConfig.CABundle).To(Equal(config.CAData))
		Expect(object.Labels).To(HaveKeyWithValue("other", "label"))
	})

	// withPlaceholder returns a CRD with what kubebuilder's scaffold used to write for cert-manager to replace.
	withPlaceholder := func(description string) chart.File {
		f := file("fig", "Fig", description)
		f.Data = bytes.Replace(f.Data, []byte("path: /convert}"), []byte("path: /convert}, caBundle: Cg=="), 1)

		return f
	}

	It("keeps the caBundle if the files have a placeholder", func(ctx SpecContext) {
		Eventually(applied(ctx, withPlaceholder("first"))).ShouldNot(BeEmpty())
		edit(ctx, "figs.example.com", func(object *apiextensionsv1.CustomResourceDefinition) {
			object.Spec.Conversion.Webhook.ClientConfig.CABundle = config.CAData
		}, client.FieldOwner("cert-manager-cainjector"))

		Eventually(applied(ctx, withPlaceholder("second"))).Should(Equal([]string{"figs.example.com"}))
		object := read(ctx, "figs.example.com")
		Expect(object.Spec.Versions[0].Schema.OpenAPIV3Schema.Description).To(Equal("second"))
		Expect(object.Spec.Conversion.Webhook.ClientConfig.CABundle).To(Equal(config.CAData))
	})

	refused := func(singular, kind string) chart.File {
		bad := file(singular, kind, "first")
		bad.Data = append(
			bad.Data,
			[]byte("  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n")...)

		return bad
	}

	It("changes none of several CRDs if the API server would refuse one", func(ctx SpecContext) {
		before := read(ctx, "apples.example.com").Generation
		_, err := apply(ctx, wants(file("apple", "Apple", "third"), refused("pear", "Pear")))
		Expect(err).To(MatchError(ContainSubstring("CustomResourceDefinition pears.example.com was refused")))
		Expect(read(ctx, "apples.example.com").Generation).To(Equal(before))
	})

	It("changes none of several CRDs if one has a description that the API server refuses", func(ctx SpecContext) {
		definition := definitionOf("pear", "v1")
		definition.Spec.Versions[0].Schema.OpenAPIV3Schema.AllOf = []apiextensionsv1.JSONSchemaProps{{Description: "a"}}

		before := read(ctx, "apples.example.com").Generation
		_, err := apply(ctx, wants(file("apple", "Apple", "third"), fileOf(definition)))
		Expect(err).To(MatchError(ContainSubstring("pears.example.com was refused")))
		Expect(read(ctx, "apples.example.com").Generation).To(Equal(before))
	})

	It("names a CRD that the API server refuses, with the reason", func(ctx SpecContext) {
		bad := refused("plum", "Plum")
		_, err := apply(ctx, wants(bad))
		Expect(err).To(MatchError(And(
			ContainSubstring("CustomResourceDefinition plums.example.com was refused"),
			ContainSubstring("storage"),
		)))
	})

	It("names a CRD whose kind is taken", func(ctx SpecContext) {
		twin := file("cherry", "Apple", "the kind of another")
		Eventually(applied(ctx, twin)).ShouldNot(BeNil())
		Eventually(refusal(ctx, twin)).Should(MatchError(And(
			ContainSubstring("cherrys.example.com was refused"), ContainSubstring(`"AppleList" is already in use, as kubectl`),
			ContainSubstring("a cluster can have only one of the two"))))
	})

	Context("with a short name that another one has", Ordered, func() {
		short := func(singular string, description string, shortNames ...string) chart.File {
			d := definitionOf(singular, "v1")
			d.Spec.Names.ShortNames = shortNames
			d.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = description

			return fileOf(d)
		}

		BeforeAll(func(ctx SpecContext) {
			first, second := short("date", "first", "dt"), short("elder", "first")
			Eventually(applied(ctx, first, second)).Should(HaveLen(2))
			served(ctx, first, second)
		})

		It("refuses a new one, and says how it is repaired, which works", func(ctx SpecContext) {
			Eventually(applied(ctx, short("grape", "first", "dt"))).ShouldNot(BeEmpty())
			Eventually(refusal(ctx, short("grape", "first", "dt"))).Should(MatchError(And(
				ContainSubstring(`grapes.example.com was refused: "dt" is already in use`),
				HaveSuffix("replace that short name in its spec.names.shortNames with spec.patches"))))

			// Another schema is tried on objects, and cannot have any.
			repaired := short("grape", "second", "gr")

			plan, err := applier.Plan(ctx, wants(repaired))
			Expect(err).NotTo(HaveOccurred())

			report, err := applier.CheckChanges(ctx, plan, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(report.Refused()).To(BeFalse(), report.Message())

			Expect(applier.Apply(ctx, plan)).To(Equal([]string{"grapes.example.com"}))
			served(ctx, repaired)
		})

		It("says how a new one is repaired that has lost it, which works", func(ctx SpecContext) {
			taken, without := short("melon", "first", "dt"), short("melon", "first")
			Eventually(applied(ctx, taken)).ShouldNot(BeEmpty())
			Eventually(refusal(ctx, taken)).Should(HaveOccurred())

			Eventually(applied(ctx, without)).ShouldNot(BeEmpty())
			Eventually(refusal(ctx, without)).Should(MatchError(
				ContainSubstring("the API server does not notice that; delete it, to be created again")))

			Expect(live.Delete(ctx, read(ctx, "melons.example.com"))).To(Succeed())
			Eventually(applied(ctx, without)).ShouldNot(BeEmpty())
			served(ctx, without)
		})

		It("accepts one that was established before, with a remark", func(ctx SpecContext) {
			remark := func(f chart.File) func() (Serving, error) {
				return func() (Serving, error) { return applier.Served(ctx, []chart.File{f}) }
			}

			taken, without := short("elder", "first", "dt"), short("elder", "first")
			Eventually(applied(ctx, taken)).Should(Equal([]string{"elders.example.com"}))
			Eventually(remark(taken)).Should(Equal(Serving{All: true, Remark: "CustomResourceDefinition elders.example.com " +
				`is served without a new name, because "dt" is already in use`}))

			Eventually(applied(ctx, without)).Should(Equal([]string{"elders.example.com"}))
			Eventually(remark(without)).Should(Equal(Serving{All: true}))
		})
	})

	It("names a CRD that waits for its CA", func(ctx SpecContext) {
		f := file("quince", "Quince", "first")
		object := &apiextensionsv1.CustomResourceDefinition{}
		Expect(yaml.Unmarshal(f.Data, object)).To(Succeed())
		object.Spec.Conversion.Webhook.ClientConfig.CABundle = []byte("\n")
		Expect(live.Create(ctx, object)).To(Succeed())

		Eventually(obstacle(ctx, f)).Should(And(
			ContainSubstring("CustomResourceDefinition quinces.example.com is not established: InvalidCABundle"),
			ContainSubstring("check that cert-manager's cainjector runs")))
	})

	It("names a CRD whose deletion is held, and by what", func(ctx SpecContext) {
		const finalizer = "example.com/finalizer"

		f := file("lime", "Lime", "first")
		Eventually(applied(ctx, f)).ShouldNot(BeEmpty())
		edit(ctx, "limes.example.com", func(object *apiextensionsv1.CustomResourceDefinition) {
			object.Finalizers = append(object.Finalizers, finalizer)
		})
		Expect(live.Delete(ctx, read(ctx, "limes.example.com"))).To(Succeed())

		Eventually(obstacle(ctx, f)).Should(ContainSubstring(
			"limes.example.com is being deleted, and is created again once it is gone; " +
				"it is held by its finalizers example.com/finalizer, which their owner must remove"))

		edit(ctx, "limes.example.com", func(object *apiextensionsv1.CustomResourceDefinition) {
			object.Finalizers = slices.DeleteFunc(object.Finalizers, func(f string) bool { return f == finalizer })
		})
		Eventually(obstacle(ctx, f)).Should(BeEmpty())
	})
})

// obstacle returns a function that returns why a CRD will not be served.
func obstacle(ctx context.Context, f chart.File) func(Gomega) string {
	return func(g Gomega) string {
		found, err := applier.Served(ctx, []chart.File{f})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.All).To(BeFalse())

		return found.Obstacle
	}
}

// refusal returns a function that returns why a CRD will never be served.
func refusal(ctx context.Context, f chart.File) func() error {
	return func() error {
		_, err := applier.Served(ctx, []chart.File{f})
		return err
	}
}
