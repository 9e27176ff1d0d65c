package e2e

import (
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/charts"
)

var _ = Describe("An operator that starts before its CustomResourceDefinitions are served", Ordered, func() {
	var w *world

	// last is the definition that sorts last, so that all others are served.
	last := &apiextensionsv1.CustomResourceDefinition{}

	log := func(g Gomega) string {
		data, err := os.ReadFile(w.log)
		g.Expect(err).NotTo(HaveOccurred())

		return string(data)
	}

	exited := func() bool {
		ended, _ := w.operator.Exited()
		return ended
	}

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
		Expect(w.operator.Stop()).To(Succeed())

		definitions, err := charts.CRDs()
		Expect(err).NotTo(HaveOccurred())
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(
			definitions[len(definitions)-1].Object, last)).To(Succeed())

		Expect(w.client.Delete(ctx, last.DeepCopy())).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(w.client.Get(ctx, client.ObjectKeyFromObject(last), last.DeepCopy()))
		}).Should(BeTrue())
	})

	DescribeTable("ends, and says what to install", func(flags ...string) {
		Expect(os.Truncate(w.log, 0)).To(Or(Succeed(), MatchError(os.ErrNotExist)))
		w.start(flags...)

		Eventually(exited).Should(BeTrue())
		Expect(log(Default)).To(ContainSubstring(
			"CustomResourceDefinition " + last.Name + ": it is not installed; apply the CRDs of this version"))
	},
		Entry("without flags"),
		Entry("with --upgrade-crds", "--upgrade-crds"),
	)

	It("waits for them", func(ctx SpecContext) {
		By("taking a name of the last one")

		rival := last.DeepCopy()
		rival.Name = "rivals." + last.Spec.Group
		rival.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{
			Kind: "Rival", Plural: "rivals", ShortNames: last.Spec.Names.ShortNames,
		}
		Expect(w.client.Create(ctx, rival)).To(Succeed())
		Eventually(func(g Gomega) []apiextensionsv1.CustomResourceDefinitionCondition {
			g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(rival), rival)).To(Succeed())
			return rival.Status.Conditions
		}).Should(ContainElement(And(
			HaveField("Type", apiextensionsv1.Established), HaveField("Status", apiextensionsv1.ConditionTrue))))
		Expect(w.client.Create(ctx, last.DeepCopy())).To(Succeed())

		Expect(os.Truncate(w.log, 0)).To(Succeed())
		w.start("--upgrade-crds")
		Consistently(exited, quietPeriod).Should(BeFalse())
		Expect(log(Default)).NotTo(ContainSubstring("starting"))

		By("giving it back")
		Expect(w.client.Delete(ctx, rival)).To(Succeed())
		Eventually(log).Should(ContainSubstring(`"msg":"starting"`))
	})
})
