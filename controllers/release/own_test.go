package release_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/controllers/release"
)

// heldCustom returns a custom resource with a finalizer.
func heldCustom(plural, name string) string {
	return strings.Replace(custom(plural, name), "metadata:\n",
		"metadata:\n  labels: {held: \"true\"}\n  finalizers: [release.test/manager]\n", 1)
}

var _ = Describe("Objects of a release's own kinds", func() {
	const plural = "owned"

	var (
		namespace string
		engine    *release.Engine
		own       = release.OwnKinds{schema.ParseGroupResource(plural + ".release.test")}
	)

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		engine = newEngine("one")

		establishCRD(ctx, namespace, plural)
	})

	installed := func() release.Spec {
		return specOf(namespace, "1.0.0", configMap("config", ""), heldCustom(plural, "held"), custom(plural, "free"))
	}
	dropFinalizers := func(ctx context.Context) {
		GinkgoHelper()
		run(ctx, "kubectl", "patch", plural, "held", "-n", namespace, "--type=merge",
			"-p", `{"metadata":{"finalizers":null}}`)
	}

	It("are gone before the rest of it is uninstalled", func(ctx SpecContext) {
		mustApply(ctx, engine, installed())

		for range 2 {
			_, err := engine.Uninstall(ctx, releaseIn(namespace), own)
			remaining := expectError[*release.RemainingError](err)
			Expect(remaining.Objects).To(ConsistOf(And(
				HaveField("Object.Name", "held"), HaveField("Finalizers", []string{"release.test/manager"}))))
			Expect(configMaps(ctx, namespace)).To(ConsistOf("config"), "nothing else is deleted")
		}

		dropFinalizers(ctx)
		Expect(engine.Uninstall(ctx, releaseIn(namespace), own)).Error().NotTo(HaveOccurred())
		Expect(configMaps(ctx, namespace)).To(BeEmpty())
	})

	It("are gone before the rest if its records are lost", func(ctx SpecContext) {
		mustApply(ctx, engine, installed())
		run(ctx, "kubectl", "label", "configmap", "config", "-n", namespace, "held=true")
		run(ctx, "kubectl", "delete", "secret", "--all", "-n", namespace)

		search := release.Search{
			Selector: labels.SelectorFromSet(labels.Set{"held": "true"}), Reader: engine.Metadata(),
		}
		found, err := engine.FindLeftovers(ctx, releaseIn(namespace), search)
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(HaveLen(2))

		remaining := expectError[*release.RemainingError](engine.DeleteLeftovers(ctx, releaseIn(namespace), own, found))
		Expect(remaining).To(MatchError(
			ContainSubstring("held is being deleted, but its finalizers hold it: release.test/manager")))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("config"))

		dropFinalizers(ctx)
		Expect(engine.DeleteLeftovers(ctx, releaseIn(namespace), own, found)).To(Succeed())
		Expect(configMaps(ctx, namespace)).To(BeEmpty())
	})
})
