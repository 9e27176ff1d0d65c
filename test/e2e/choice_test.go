package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

var _ = Describe("A provider without a version", func() {
	It("gets the newest that works with core, even if it was created first", func(ctx SpecContext) {
		w := sharedWorld(ctx)
		w.withoutCore(ctx)

		create := func(name, minor0, minor1 string) *v1alpha2.InfrastructureProvider {
			GinkgoHelper()

			versions := []tiny{newTiny(name, "v1.0.0"), newTiny(name, "v1.1.0")}
			Expect(w.client.Create(ctx, versions[0].namespace())).To(Succeed())

			for _, t := range versions {
				t.metadata = metadataOf(minor0, minor1)
				Expect(w.client.Create(ctx, t.configMap())).To(Succeed())
			}

			p := versions[0].resource()
			p.Spec.Version = ""
			Expect(w.client.Create(ctx, p)).To(Succeed())

			return p
		}

		older, none := create("narrow", "v1beta1", "v1beta2"), create("none", "v1beta2", "v1beta2")
		for _, p := range []*v1alpha2.InfrastructureProvider{older, none} {
			Eventually(w.read(ctx, p)).Should(haveCondition(v1alpha2.PreflightCheckCondition, metav1.ConditionFalse,
				v1alpha2.WaitingForCoreProviderReadyReason))
			Expect(p.Spec.Version).To(BeEmpty())
		}

		release, err := harness.Load(ctx, samples, harness.Wanted{Label: "cluster-api"})
		Expect(err).NotTo(HaveOccurred())

		release.Bundle.Metadata = []byte(metadataOf("v1beta1", "v1beta2"))
		core, err := release.Install(ctx, w.client)
		Expect(err).NotTo(HaveOccurred())
		Eventually(w.read(ctx, core)).Should(beReady("v1.0.0"))

		Eventually(w.read(ctx, older)).Should(beReady("v1.0.0"))
		Expect(older.Spec.Version).To(Equal("v1.0.0"))

		Eventually(w.read(ctx, none)).Should(haveCondition(v1alpha2.PreflightCheckCondition, metav1.ConditionFalse,
			v1alpha2.CAPIVersionIncompatibilityReason))
		Expect(none.Spec.Version).To(BeEmpty())
		Expect(none.Status.Conditions).To(ContainElement(HaveField("Message", ContainSubstring(
			"no available version can be used; the newest is v1.1.0: this version has the Cluster API contract v1beta2"))))
	})
})
