package crds

import (
	"encoding/base64"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/chart"
)

var _ = Describe("A CRD that no longer has a conversion webhook", func() {
	kindOf := func(singular string) string { return strings.ToUpper(singular[:1]) + singular[1:] }
	without := func(singular string, conversion *apiextensionsv1.CustomResourceConversion) chart.File {
		d := &apiextensionsv1.CustomResourceDefinition{}
		Expect(yaml.Unmarshal(file(singular, kindOf(singular), "second").Data, d)).To(Succeed())
		d.Spec.Conversion = conversion

		return fileOf(d)
	}

	DescribeTable("loses it, no matter which program owns its fields", func(
		ctx SpecContext, singular, creator string, conversion *apiextensionsv1.CustomResourceConversion,
	) {
		d := &apiextensionsv1.CustomResourceDefinition{}
		Expect(yaml.Unmarshal(file(singular, kindOf(singular), "first").Data, d)).To(Succeed())

		if creator != "" {
			Expect(live.Create(ctx, d, client.FieldOwner(creator))).To(Succeed())
		} else {
			_, err := apply(ctx, wants(file(singular, kindOf(singular), "first")))
			Expect(err).NotTo(HaveOccurred())
		}

		certificate := &unstructured.Unstructured{}
		certificate.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		certificate.SetName(d.Name)
		Expect(unstructured.SetNestedField(certificate.Object, base64.StdEncoding.EncodeToString(config.CAData),
			"spec", "conversion", "webhook", "clientConfig", "caBundle")).To(Succeed())
		Expect(live.Apply(ctx, client.ApplyConfigurationFromUnstructured(certificate),
			client.FieldOwner("cert-manager-cainjector"))).To(Succeed())

		other := file(singular+"other", kindOf(singular+"other"), "first")

		Eventually(func(g Gomega) {
			_, err := apply(ctx, wants(without(singular, conversion), other))
			g.Expect(err).NotTo(HaveOccurred())

			now := read(ctx, d.Name)
			g.Expect(now.Spec.Conversion.Strategy).To(Equal(apiextensionsv1.NoneConverter))
			g.Expect(now.Spec.Conversion.Webhook).To(BeNil())
			g.Expect(now.Spec.Versions[0].Schema.OpenAPIV3Schema.Description).To(Equal("second"))
		}).Should(Succeed())
	},
		Entry("its file has no conversion", "almond", "", nil),
		Entry("its file has none by name", "basil", "",
			&apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}),
		Entry("another installer has created it", "clove", "clusterctl", nil),
	)
})
