package release_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// heldCustom returns a custom resource with a finalizer.
func heldCustom(plural, name string) string {
	return strings.Replace(custom(plural, name), "metadata:\n",
		"metadata:\n  labels: {held: \"true\"}\n  finalizers: [release.test/manager]\n", 1)
}

// newest returns the newest revision of the release.
func newest(ctx context.Context, e *release.Engine, namespace string) state.Revision {
	GinkgoHelper()

	history := accepted(ctx, e, releaseIn(namespace))
	Expect(history.Revisions).NotTo(BeEmpty())

	return history.Revisions[0]
}

var _ = Describe("Objects of a release's own kinds", func() {
	const plural = "owned"

	var (
		namespace string
		engine    *release.Engine
		own       = apply.OwnKinds{schema.ParseGroupResource(plural + ".release.test")}
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

	// staged applies the first stage of a release that has more.
	staged := func(ctx context.Context, spec release.Spec) state.Revision {
		GinkgoHelper()

		kindsOf.Store(spec.Release, own)
		mustApply(ctx, engine, spec)

		revision := newest(ctx, engine, namespace)
		Expect(revision.Staged()).To(BeTrue())

		return revision
	}
	// advance takes all steps that are left.
	advance := func(ctx context.Context, revision state.Revision) error {
		for revision.Staged() {
			_, err := advanceOnce(ctx, newEngine("another"), releaseIn(namespace), revision)
			if err != nil {
				return err
			}

			revision = newest(ctx, engine, namespace)
		}

		return nil
	}
	customs := func(ctx context.Context) []string {
		GinkgoHelper()
		return strings.Fields(run(ctx, "kubectl", "get", plural, "-n", namespace, "-o", "jsonpath={.items[*].metadata.name}"))
	}

	It("are applied when the release advances, from what earlier revisions had", func(ctx SpecContext) {
		first := staged(ctx, specOf(namespace, "1.0.0", configMap("config", ""), custom(plural, "x"), custom(plural, "z")))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("config"))
		Expect(customs(ctx)).To(BeEmpty())

		Expect(advance(ctx, first)).To(Succeed())
		Expect(customs(ctx)).To(ConsistOf("x", "z"))
		Expect(newest(ctx, engine, namespace)).To(And(HaveField("Number", 1), HaveField("Staged()", false)))
		Expect(observe(ctx, engine, specOf(namespace, "1.0.0", configMap("config", ""),
			custom(plural, "x"), custom(plural, "z"))).State).To(Equal(state.InSync), "own kinds are not part of the digest")

		second := staged(ctx, specOf(namespace, "1.1.0", configMap("config", ""),
			strings.Replace(custom(plural, "x"), "{b: 1}", "{c: 2}", 1)))
		Expect(customs(ctx)).To(ConsistOf("x", "z"), "nothing is deleted before the rest is healthy")
		Expect(advance(ctx, second)).To(Succeed())
		Expect(customs(ctx)).To(ConsistOf("x"))
		Expect(run(ctx, "kubectl", "get", plural, "x", "-n", namespace, "-o", "jsonpath={.spec.a}")).To(Equal(`{"c":2}`))
		Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 deployed"}))
	})

	It("are gone before anything else that a revision no longer has is deleted", func(ctx SpecContext) {
		Expect(advance(ctx, staged(ctx, installed()))).To(Succeed())
		Expect(advance(ctx, staged(ctx, specOf(namespace, "1.1.0", configMap("new", ""))))).To(
			BeAssignableToTypeOf(&apply.RemainingError{}))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("config", "new"))

		// Another revision in the meantime forgets nothing.
		third := staged(ctx, specOf(namespace, "1.2.0", configMap("newer", "")))
		Expect(advance(ctx, third)).To(BeAssignableToTypeOf(&apply.RemainingError{}))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("config", "new", "newer"))

		dropFinalizers(ctx)
		Expect(advance(ctx, third)).To(Succeed())
		Expect(configMaps(ctx, namespace)).To(ConsistOf("newer"))
		Expect(newest(ctx, engine, namespace).Staged()).To(BeFalse())
	})

	It("that the API server refuses fail the revision", func(ctx SpecContext) {
		revision := staged(ctx, specOf(namespace, "1.0.0", configMap("config", ""), custom(plural, "x")))

		Eventually(func() bool {
			refused := newRefusedEngine(plural, http.MethodPost, http.MethodPatch)
			_, err := advanceOnce(ctx, refused, releaseIn(namespace), revision)

			return errors.As(err, new(*apply.RejectedError))
		}).Should(BeTrue())
		Expect(newest(ctx, engine, namespace)).To(And(
			HaveField("Status", v1alpha2.RevisionFailed), HaveField("Failure", v1alpha2.FailureRejected)))
	})

	It("do not concern releases that have none", func(ctx SpecContext) {
		spec := specOf(namespace, "1.0.0", configMap("config", ""))
		kindsOf.Store(spec.Release, own)
		mustApply(ctx, engine, spec)
		Expect(newest(ctx, engine, namespace).Staged()).To(BeFalse())
	})

	It("are gone before the rest of it is uninstalled", func(ctx SpecContext) {
		mustApply(ctx, engine, installed())
		kindsOf.Store(releaseIn(namespace), own)

		// Another entry for the same object may be from when it was unknown that the kind has namespaces.
		inventory := inventoryOf(releaseIn(namespace))
		i := slices.IndexFunc(inventory, func(key object.Key) bool { return key.Name == "held" })
		again := inventory[i]
		again.Namespace = ""
		setInventory(releaseIn(namespace), append(inventory, again))

		for range 2 {
			_, err := uninstall(ctx, engine, releaseIn(namespace), 1, false)
			remaining := expectError[*apply.RemainingError](err)
			Expect(remaining.Objects).To(ConsistOf(And(
				HaveField("Object.Name", "held"), HaveField("Finalizers", []string{"release.test/manager"}))))
			Expect(configMaps(ctx, namespace)).To(ConsistOf("config"), "nothing else is deleted")
		}

		dropFinalizers(ctx)
		_, err := uninstall(ctx, engine, releaseIn(namespace), 1, false)
		Expect(err).NotTo(HaveOccurred())
		Expect(configMaps(ctx, namespace)).To(BeEmpty())
	})

	It("are gone before the rest if its records are lost", func(ctx SpecContext) {
		mustApply(ctx, engine, installed())
		kindsOf.Store(releaseIn(namespace), own)
		run(ctx, "kubectl", "delete", "secret", "--all", "-n", namespace)

		_, err := uninstall(ctx, engine, releaseIn(namespace), 0, false)
		Expect(expectError[*apply.RemainingError](err)).To(MatchError(
			ContainSubstring("held is being deleted, but its finalizers hold it: release.test/manager")))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("config"))

		dropFinalizers(ctx)
		Expect(uninstall(ctx, engine, releaseIn(namespace), 0, false)).Error().NotTo(HaveOccurred())
		Expect(configMaps(ctx, namespace)).To(BeEmpty())
	})
})
