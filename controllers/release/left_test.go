package release_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/release"
)

// metadataOf returns the metadata of an object.
func metadataOf(ctx context.Context, namespace, kind, name string) metav1.ObjectMeta {
	GinkgoHelper()

	var o metav1.PartialObjectMetadata
	Expect(json.Unmarshal([]byte(run(ctx, "kubectl", "get", kind, name, "-n", namespace, "-o", "json")), &o)).To(Succeed())

	return o.ObjectMeta
}

var _ = Describe("What stays of a release", func() {
	const keep = `"helm.sh/resource-policy": keep`

	var (
		namespace string
		engine    *release.Engine
	)

	BeforeEach(func(ctx SpecContext) { namespace, engine = newNamespace(ctx), newEngine("one") })

	keeping := func(name, annotations string) string {
		return strings.Replace(configMap(name, ""), "metadata:\n", "metadata:\n  annotations: {"+annotations+"}\n", 1)
	}
	drop := func(ctx context.Context) release.Result {
		GinkgoHelper()
		return mustApply(ctx, engine, specOf(namespace, "1.1.0", configMap("config", "")))
	}
	remove := func(ctx context.Context) release.Result {
		GinkgoHelper()

		result, err := uninstall(ctx, engine, releaseIn(namespace), 1, false)
		Expect(err).NotTo(HaveOccurred())

		return result
	}

	DescribeTable("is no part of it any more, so that another one adopts it",
		func(ctx SpecContext, plural string, end func(context.Context) release.Result) {
			more := "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + namespace + "-more\n"
			stays := []string{more, crd(plural), keeping("kept", keep)}
			mustApply(ctx, engine, specOf(namespace, "1.0.0", append(stays, configMap("config", ""))...))

			Expect(end(ctx).With(apply.Left)).To(HaveLen(3))

			left := map[string]string{
				"namespace": namespace + "-more", "crd": plural + ".release.test", "configmap": "kept",
			}
			for kind, name := range left {
				Expect(metadataOf(ctx, namespace, kind, name)).To(And(
					HaveField("Labels", Not(HaveKey(v1alpha2.ManagedByLabel))),
					HaveField("Annotations", Not(HaveKey(HavePrefix("meta.helm.sh/")))),
					HaveField("Annotations", HaveKeyWithValue(v1alpha2.OrphanedByAnnotation, releaseIn(namespace).String())),
				), kind)
			}

			other := specOf(namespace, "1.0.0", stays...)
			other.Release.Name = "other"
			Expect(mustApply(ctx, engine, other).Adopted()).To(HaveLen(3))

			for kind, name := range left {
				Expect(metadataOf(ctx, namespace, kind, name).Annotations).To(And(
					HaveKeyWithValue(v1alpha2.HelmReleaseNameAnnotation, "other"), Not(HaveKey(v1alpha2.OrphanedByAnnotation))), kind)
			}
		},
		Entry("when a revision drops it", "dropped", drop),
		Entry("when the release is uninstalled", "uninstalled", remove),
	)

	It("is taken back by it, whatever the adoption policy is", func(ctx SpecContext) {
		first := specOf(namespace, "1.0.0", keeping("kept", keep+", capstan.dev/adoption-policy: Never"))
		mustApply(ctx, engine, first)
		drop(ctx)

		options := release.RollbackOptions{Target: confirmed(namespace, 1)}
		result, err := rollback(ctx, engine, first.Release, options, observe(ctx, engine, first))
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Adopted()).To(ConsistOf(HaveField("Name", "kept")))
		Expect(metadataOf(ctx, namespace, "configmap", "kept").Annotations).To(
			HaveKeyWithValue(v1alpha2.HelmReleaseNameAnnotation, name))
	})

	It("is removed from it later if that fails", func(ctx SpecContext) {
		mustApply(ctx, engine, specOf(namespace, "1.0.0", keeping("kept", keep), configMap("config", "")))

		o := &outage{method: http.MethodPatch, path: "/configmaps/kept"}
		engine = during(o, lasting)

		Expect(drop(ctx).With(apply.Left)).To(BeEmpty())

		again := func() error { return prune(ctx, engine, namespace, newest(ctx, engine, namespace)) }
		Expect(again()).To(MatchError(HavePrefix("ConfigMap " + namespace +
			"/kept stays, but Helm's label and annotations could not be removed from it: ")))

		_, err := uninstall(ctx, engine, releaseIn(namespace), 1, false)
		expectError[*apply.RemoveError](err)
		Expect(history(ctx, namespace)).NotTo(BeEmpty(), "the removal is repeated")

		o.over()
		Expect(again()).To(Succeed())
		Expect(metadataOf(ctx, namespace, "configmap", "kept").Annotations).NotTo(HaveKey(HavePrefix("meta.helm.sh/")))
	})
})
