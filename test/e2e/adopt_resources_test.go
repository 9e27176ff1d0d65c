package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/predecessor"
)

// The takeover from cluster-api-operator's program is in cluster_api_operator_test.go.
var _ = Describe("capstan adopt takes the resources of cluster-api-operator over", Ordered, rowResources, func() {
	var (
		w        *world
		cli      commandLine
		t        tiny
		p        *v1alpha2.InfrastructureProvider
		manager  *appsv1.Deployment
		webhooks *admissionv1.ValidatingWebhookConfiguration
		cache    *corev1.Secret
		before   map[string]string
	)

	BeforeAll(func(ctx SpecContext) {
		w = readyWorld(ctx)
		cli = newCommandLine(w)
		w.createOperatorDeployment(ctx)

		manager = w.runPredecessor(ctx)
		t = newTiny("theirs", "v1.0.0")
		p = w.left(ctx, t)
		w.applyWithOwner(ctx, t, p)

		cache = &corev1.Secret{ObjectMeta: named(p.Namespace, "infrastructure-theirs-v1.0.0-cache")}
		cache.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: v1alpha2.GroupVersion.String(), Kind: string(p.ProviderType()), Name: p.Name, UID: p.UID,
		}}
		Expect(w.client.Create(ctx, cache)).To(Succeed())

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Suspend = false })
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.OtherOperatorRunningReason))

		webhooks = leftWebhooks("theirs")
		Expect(w.client.Create(ctx, webhooks)).To(Succeed())

		before = w.identities(ctx)
	})

	// expectUnchanged checks that the objects of the provider, and their pods, are those of the beginning.
	expectUnchanged := func(ctx context.Context) {
		GinkgoHelper()
		Expect(changed(withoutPredecessor(before), withoutPredecessor(w.identities(ctx)))).To(BeEmpty())
	}

	It("shows what it would do, and changes nothing", func(ctx SpecContext) {
		writes := cli.writes()
		Expect(cli.succeed(ctx, "adopt", "--dry-run")).To(And(
			HavePrefix("1 provider installed by cluster-api-operator\n"),
			ContainSubstring("\nInfrastructureProvider theirs/theirs v1.0.0\n  the resource exists\n  no changes; "),
			ContainSubstring("\nScale Deployment capi-operator-system/capi-operator-cluster-api-operator to 0: not done"),
			ContainSubstring("\nDelete ValidatingWebhookConfiguration left-behind: not done"),
			ContainSubstring("\nDelete Secret theirs/infrastructure-theirs-v1.0.0-cache, which has the components with the "+
				"values of variables: not done"),
			Not(ContainSubstring("ownerReferences"))))
		Expect(cli.writes()).To(Equal(writes))
	})

	It("stops that operator, and keeps objects and pods", func(ctx SpecContext) {
		Expect(cli.succeed(ctx, "adopt", "--installer", "cluster-api-operator")).To(And(
			ContainSubstring("\nScale Deployment capi-operator-system/capi-operator-cluster-api-operator to 0\n"),
			ContainSubstring("\nInfrastructureProvider theirs/theirs: Release infrastructure-theirs, revision 1, "+
				"holds v1.0.0; it adopted 2 existing objects\n")))

		Expect(w.read(ctx, p)(Default)).To(And(beReady("v1.0.0"), HaveField("Finalizers", ConsistOf(v1alpha2.Finalizer))))
		Expect(w.client.Get(ctx, client.ObjectKeyFromObject(manager), manager)).To(Succeed())
		Expect(*manager.Spec.Replicas).To(BeZero())

		for _, o := range []client.Object{webhooks, cache} {
			Expect(gone(ctx, w, o)()).To(BeTrue(), o.GetName())
		}

		expectUnchanged(ctx)
	})

	It("finds nothing once more", func(ctx SpecContext) {
		cli.fail(ctx, "adopt", "--installer", "cluster-api-operator").To(ContainSubstring("no providers of"))
	})
})

// runPredecessor runs the Deployment that the chart of cluster-api-operator creates. Its pods do nothing.
func (w *world) runPredecessor(ctx context.Context) *appsv1.Deployment {
	GinkgoHelper()

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: peerDeployment.Namespace}}
	Expect(w.client.Create(ctx, namespace)).To(Succeed())

	labels := predecessor.Labels()
	d := &appsv1.Deployment{
		ObjectMeta: named(namespace.Name, "capi-operator-cluster-api-operator"),
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{
					{Name: "manager", Image: "registry.example.com/operator:1", Args: []string{"--leader-elect"}},
				}},
			},
		},
	}
	d.Labels = labels
	Expect(w.client.Create(ctx, d)).To(Succeed())

	Eventually(func(g Gomega) []corev1.Pod {
		pods := &corev1.PodList{}
		g.Expect(w.client.List(ctx, pods, labels)).To(Succeed())

		return pods.Items
	}).Should(HaveLen(1))

	return d
}
