package e2e

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// electing returns a version of the provider whose manager has leader election, so that two of it can run.
func electing(name, version string) tiny {
	t := newTiny(name, version)
	t.components = strings.Replace(t.components, "args: [", `args: ["--leader-elect", `, 1)

	return t
}

// crashing returns the provider with a manager that is started on a node, and crashes.
func crashing(t tiny) tiny {
	t.components = strings.Replace(t.components, "registry.example.com/", "registry.example.com/crashes-", 1)
	return t
}

var _ = Describe("A drain of nodes with highly available managers", Ordered, everyKubernetes, func() {
	const (
		first, second = "node-0", "node-1"
		name          = "drained"
		manager       = name + "-controller-manager"
	)

	var (
		w *world
		p *v1alpha2.InfrastructureProvider
	)

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx, "--manager-high-availability")
	})

	AfterEach(func(ctx SpecContext) {
		w.run(ctx, "kubectl", "uncordon", first, second)
	})

	// nodesOf returns the nodes on which the pods of a namespace are, except pods that terminate.
	nodesOf := func(ctx context.Context, g Gomega, namespace string) []string {
		list := &corev1.PodList{}
		g.Expect(w.client.List(ctx, list, client.InNamespace(namespace))).To(Succeed())

		var nodes []string

		for _, pod := range list.Items {
			if pod.DeletionTimestamp == nil {
				nodes = append(nodes, pod.Spec.NodeName)
			}
		}

		return nodes
	}
	drain := func(ctx context.Context, node string) {
		GinkgoHelper()
		w.run(ctx, "kubectl", "drain", node, "--timeout=1m")
	}
	budget := func(ctx context.Context) (*policyv1.PodDisruptionBudget, error) {
		b := &policyv1.PodDisruptionBudget{}
		return b, w.client.Get(ctx, client.ObjectKey{Namespace: name, Name: manager}, b)
	}

	It("finds them on different nodes, and ends although they are on the same node then", func(ctx SpecContext) {
		good, bad := electing(name, "v1.0.0"), crashing(electing(name, "v1.1.0"))
		for _, o := range []client.Object{good.namespace(), good.configMap(), bad.configMap()} {
			Expect(w.client.Create(ctx, o)).To(Succeed())
		}

		p = good.resource()
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(nodesOf(ctx, Default, name)).To(ConsistOf(first, second))

		drain(ctx, first)
		Eventually(func(g Gomega) []string { return nodesOf(ctx, g, name) }).Should(ConsistOf(second, second))
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
	})

	It("ends during an upgrade whose pods never become ready", func(ctx SpecContext) {
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(func(g Gomega) []string { return nodesOf(ctx, g, name) }).Should(HaveLen(3))

		for _, node := range []string{second, first} {
			drain(ctx, node)
			w.run(ctx, "kubectl", "uncordon", node)
		}

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.0.0" })
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
	})

	It("ends while no pod is ready", func(ctx SpecContext) {
		list := &corev1.PodList{}
		Expect(w.client.List(ctx, list, client.InNamespace(name))).To(Succeed())

		for i := range list.Items {
			w.run(ctx, "kubectl", "patch", "pod", list.Items[i].Name, "-n", name, "--subresource=status", "--patch",
				`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`)
		}

		Eventually(func(g Gomega) {
			b, err := budget(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(b.Status.CurrentHealthy).To(BeZero())
		}).Should(Succeed())

		for _, node := range []string{first, second} {
			drain(ctx, node)
			w.run(ctx, "kubectl", "uncordon", node)
		}

		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
	})

	It("ends while one replica is asked for, or none because the provider is paused", func(ctx SpecContext) {
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().Deployment = &v1alpha2.DeploymentSpec{Replicas: ptr.To(int32(1))}
		})
		Eventually(func(g Gomega) []string { return nodesOf(ctx, g, name) }).Should(HaveLen(1))
		drain(ctx, nodesOf(ctx, Default, name)[0])

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Deployment, p.GetSpec().Paused = nil, true })
		Eventually(w.read(ctx, p)).Should(beReadyWith(v1alpha2.PausedReason, "v1.0.0 is paused"))
		Eventually(func(g Gomega) []string { return nodesOf(ctx, g, name) }).Should(BeEmpty())
		Eventually(func(g Gomega) {
			b, err := budget(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(b.Status.ExpectedPods).To(BeZero())
		}).Should(Succeed())
	})

	It("meets no budget once high availability is turned off", func(ctx SpecContext) {
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().Paused = false
			p.GetSpec().Deployment = &v1alpha2.DeploymentSpec{HighAvailability: ptr.To(false)}
		})
		Eventually(func() error {
			_, err := budget(ctx)
			return err
		}).Should(MatchError(ContainSubstring("not found")))
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(nodesOf(ctx, Default, name)).To(HaveLen(1))
	})
})
