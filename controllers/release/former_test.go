package release_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/drift"
	"github.com/capstan-project/capstan/test/bed"
)

var _ = Describe("An engine that starts compares what former ones have installed", func() {
	const releases = 3

	var (
		specs    []release.Spec
		engine   *release.Engine
		requests func() map[string]int
	)

	// labeled returns a ConfigMap of a provider.
	labeled := func(name string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  labels:\n"+
			"    cluster.x-k8s.io/provider: infrastructure-sample\ndata: {key: value}\n", name)
	}

	BeforeEach(func(ctx SpecContext) {
		former := newEngine("former")
		specs = nil

		for range releases {
			spec := specOf(newNamespace(ctx), "1.0.0", labeled("a"), labeled("b"))
			mustApply(ctx, former, spec)

			specs = append(specs, spec)
		}

		user := "counted-" + specs[0].Release.Namespace
		config, err := apiServer.ConfigFor(user)
		Expect(err).NotTo(HaveOccurred())

		cache := &cachedRecords{metadata: metadata.NewForConfigOrDie(apiServer.Config())}
		cache.catchUp(ctx, metav1.NamespaceAll)

		engine, err = release.NewEngine(config, release.Options{Holder: "new", Records: cache.list, ListObjects: true})
		Expect(err).NotTo(HaveOccurred())
		Expect(engine.Learn(ctx)).To(Succeed())

		requests = func() map[string]int {
			GinkgoHelper()

			found, err := apiServer.Requests(func(r bed.Request) bool { return r.User == user && r.Resource == "configmaps" })
			Expect(err).NotTo(HaveOccurred())

			return bed.Count(found, func(r bed.Request) string { return r.Verb })
		}
	})

	compared := func(ctx context.Context, release types.NamespacedName) drift.Comparison {
		GinkgoHelper()

		comparison := compare(ctx, engine, release.Namespace)
		Expect(comparison.Differences).To(BeEmpty())
		Expect(comparison.InSync).To(HaveLen(2))

		return comparison
	}

	It("by one list of each kind, and later by reading what has changed", func(ctx SpecContext) {
		for _, spec := range specs {
			comparison := compared(ctx, spec.Release)

			for _, snapshot := range comparison.InSync {
				live, err := client.CoreV1().ConfigMaps(spec.Release.Namespace).
					Get(ctx, snapshot.Object.Name, metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(snapshot.ResourceVersion).To(Equal(live.ResourceVersion))
			}
		}

		Eventually(requests).Should(Equal(map[string]int{"list": 1}))

		compared(ctx, specs[0].Release)
		Eventually(requests).Should(Equal(map[string]int{"list": 1, "get": 2}))
	})

	It("and reads what differs in the list", func(ctx SpecContext) {
		namespace := specs[1].Release.Namespace
		change := func(value string) {
			GinkgoHelper()
			run(ctx, "kubectl", "patch", "configmap", "a", "-n", namespace, "-p", `{"data":{"key":"`+value+`"}}`)
		}

		change("other")
		compared(ctx, specs[0].Release) // by the list
		change("value")
		compared(ctx, specs[1].Release)
		Eventually(requests).Should(Equal(map[string]int{"list": 1, "get": 1}))

		change("other")

		differences := compare(ctx, engine, namespace).Differences
		Expect(differences).To(HaveLen(1))
		Expect(strings.ReplaceAll(differences[0].String(), namespace, "NS")).To(Equal("ConfigMap NS/a: /data/key"))
	})
})
