package e2e

import (
	"context"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
)

// secondOperator is the second operator's user name in the bed's audit log.
const secondOperator = "second-operator"

// inPublic puts another operator that is active at the same time into a namespace of its own.
const inPublic = "--leader-election-namespace=" + metav1.NamespacePublic

// startSecond starts another operator in addition to the world's own.
func (w *world) startSecond(flags ...string) {
	GinkgoHelper()

	kubeconfig, err := w.bed.KubeconfigFor(secondOperator)
	Expect(err).NotTo(HaveOccurred())
	second, err := harness.StartOperatorAs(
		w.bed,
		kubeconfig,
		[]string{program},
		filepath.Join(GinkgoT().TempDir(), "second.log"),
		flags...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(second.Stop()).To(Succeed()) })
}

// create creates the tiny provider's resource and everything it needs.
func (t tiny) create(
	ctx context.Context,
	w *world,
	change func(*v1alpha2.InfrastructureProvider),
) *v1alpha2.InfrastructureProvider {
	GinkgoHelper()

	p := t.resource()
	change(p)

	for _, o := range []client.Object{t.namespace(), t.configMap(), p} {
		Expect(w.client.Create(ctx, o)).To(Succeed())
	}

	return p
}

func unmodified(*v1alpha2.InfrastructureProvider) {}

// beUntouched matches a resource that no operator manages.
var beUntouched = And(
	WithTransform(func(p v1alpha2.Provider) []string { return p.GetFinalizers() }, BeEmpty()),
	WithTransform(func(p v1alpha2.Provider) []metav1.Condition { return p.GetConditions() }, BeEmpty()),
)

var _ = Describe("Operators that watch some namespaces", Ordered, func() {
	var (
		w      *world
		core   v1alpha2.Provider
		second *v1alpha2.InfrastructureProvider
		begin  time.Time
	)

	BeforeAll(func(ctx SpecContext) {
		begin = time.Now()
		w = sharedWorld(ctx, "--watch-namespaces=cluster-api-system,watched-too")
		w.withoutCore(ctx)
		w.startSecond("--watch-namespaces=watched", inPublic)
	})

	It("install the providers there, and find core in another namespace", func(ctx SpecContext) {
		second = newTiny("watched", "v1.0.0").create(ctx, w, unmodified)
		Eventually(w.read(ctx, second)).Should(notBeReady(v1alpha2.WaitingForCoreProviderReadyReason))
		core = w.install(ctx, samples, harness.Wanted{Label: "cluster-api"})
		Eventually(w.read(ctx, core)).Should(beReady("v1.0.0"))
		Eventually(w.read(ctx, second)).Should(beReady("v1.0.0"))
	})

	It("leave all other providers alone", func(ctx SpecContext) {
		unwatched := newTiny("unwatched", "v1.0.0").create(ctx, w, unmodified)
		Consistently(w.read(ctx, unwatched)).WithTimeout(quietPeriod).Should(beUntouched)
	})

	It("reject a provider that another namespace has", func(ctx SpecContext) {
		twin := newTiny("watched", "v1.0.0")
		p := twin.resource()
		p.Namespace = "watched-too"

		Expect(w.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "watched-too"}})).To(Succeed())
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(
			failPreflight(v1alpha2.MoreThanOneProviderInstanceExistsReason, "namespace watched"))
	})

	It("correct drift there", func(ctx SpecContext) {
		deployment := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "watched", Name: "watched-controller-manager"},
		}
		Expect(w.client.Delete(ctx, deployment)).To(Succeed())
		Eventually(func() error { return w.client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment) }).Should(
			Succeed())
		Eventually(w.read(ctx, second)).Should(beReady("v1.0.0"))
	})

	It("read the objects of a release in another namespace from the API server", func(ctx SpecContext) {
		more := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "watched", Name: "more"},
			Data: map[string]string{
				"manifests": "{apiVersion: v1, kind: ConfigMap, metadata: {name: more, namespace: unwatched}, " +
					"data: {color: blue}}",
			},
		}
		Expect(w.client.Create(ctx, more)).To(Succeed())
		update(ctx, w, second, func(p v1alpha2.Provider) {
			p.GetSpec().AdditionalManifests = &v1alpha2.ConfigMapReference{Name: more.Name}
		})
		Eventually(w.read(ctx, second)).Should(beReady("v1.0.0"))

		brought := client.ObjectKey{Namespace: "unwatched", Name: "more"}
		Expect(w.client.Get(ctx, brought, &corev1.ConfigMap{})).To(Succeed())

		Expect(
			w.client.Delete(
				ctx,
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: brought.Namespace, Name: brought.Name}},
			),
		).To(Succeed())
		update(ctx, w, second, func(p v1alpha2.Provider) {
			p.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: "now"})
		})
		Eventually(func() error { return w.client.Get(ctx, brought, &corev1.ConfigMap{}) }).Should(Succeed())
	})

	It("read no Secret, ConfigMap or workload elsewhere, but charts in their own", func(ctx SpecContext) {
		elsewhere, err := w.bed.Requests(func(r bed.Request) bool {
			kinds := map[string]bool{
				"secrets":         true,
				"configmaps":      true,
				"deployments":     true,
				"serviceaccounts": true,
				"pods":            true,
			}

			return r.User == secondOperator && r.Received.After(begin) && kinds[r.Resource] &&
				r.Namespace != "watched" && r.Name != "more" && r.Namespace != metav1.NamespacePublic
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(elsewhere).To(BeEmpty())
	})
})

var _ = Describe("An operator that watches some labels", Ordered, func() {
	var (
		w *world
		p *v1alpha2.InfrastructureProvider
	)

	team := func(name string) func(v1alpha2.Provider) {
		return func(p v1alpha2.Provider) { p.SetLabels(map[string]string{"team": name}) }
	}

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx, "--watch-label-selector=team=a")
		w.startSecond("--watch-label-selector=!team", inPublic)
	})

	It("leaves other resources alone, and manages one that gets the label", func(ctx SpecContext) {
		p = newTiny("labelled", "v1.0.0").create(ctx, w, func(p *v1alpha2.InfrastructureProvider) { team("b")(p) })
		Consistently(w.read(ctx, p)).WithTimeout(quietPeriod).Should(beUntouched)
		update(ctx, w, p, team("a"))
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
	})

	It("stops managing one that loses the label", func(ctx SpecContext) {
		update(ctx, w, p, team("b"))
		deployment := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "labelled-controller-manager"},
		}
		get := func() error { return w.client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment) }

		// A reconcile that had begun before may correct it once more.
		Eventually(func(g Gomega) {
			g.Expect(client.IgnoreNotFound(w.client.Delete(ctx, deployment))).To(Succeed())
			g.Consistently(get).WithTimeout(quietPeriod).Should(MatchError(ContainSubstring("not found")))
		}).Should(Succeed())

		update(ctx, w, p, team("a"))
		Eventually(get).Should(Succeed())
	})
})
