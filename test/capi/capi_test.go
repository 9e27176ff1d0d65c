package capi

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/capi/canary"
	"github.com/capstan-project/capstan/test/capi/managers"
	"github.com/capstan-project/capstan/test/capi/observe"
)

// availabilityVariable turns off high availability of the managers if it is "false".
const availabilityVariable = "HIGH_AVAILABILITY"

// gapsVariable is a folder to which the run is saved, to be printed next to other runs.
const gapsVariable = "GAPS"

func highlyAvailable() bool { return os.Getenv(availabilityVariable) != "false" }

// expectAvailability expects that highly available managers were replaced without a gap. A canary may have one refused
// request for each pod: the API server reuses connections, and may send a request on one that the manager is closing.
func expectAvailability(event observe.Event) {
	GinkgoHelper()

	if highlyAvailable() {
		Expect(event.Refused).To(BeNumerically("<=", 2))
	}
}

// printGaps prints the gaps of this run next to those of earlier ones with another setting.
func printGaps(events []observe.Event) {
	GinkgoHelper()

	runs := []observe.Run{{Name: "off", Events: events}}
	if highlyAvailable() {
		runs[0].Name = "on"
	}

	if folder := os.Getenv(gapsVariable); folder != "" {
		Expect(runs[0].Save(folder)).To(Succeed())

		var err error

		runs, err = observe.LoadRuns(folder)
		Expect(err).NotTo(HaveOccurred())
	}

	fmt.Printf("\nthe longest gap and the most refused requests of a canary, without and with high availability:\n%s\n",
		observe.Table(runs))
}

var _ = Describe("Cluster API's own managers", Ordered, func() {
	var (
		steps    []managers.Step
		last     managers.Step
		manifest string

		lives    *observe.Lives
		canaries []*canary.Canary
		stop     context.CancelFunc
		report   strings.Builder
		events   []observe.Event
		began    = time.Now()
	)

	// become requests the versions of a step, and waits until all providers have them and all their pods run them.
	become := func(ctx context.Context, step managers.Step, version func(string) string) {
		GinkgoHelper()

		request(ctx, step, version)
		Eventually(func() managers.Step { return versions(ctx) }).Should(Equal(step))
		settle(ctx)
	}

	// summarize waits until all webhooks answer, prints the gaps since the previous call, and expects that nothing has
	// been lost.
	summarize := func(ctx context.Context, what string) observe.Event {
		GinkgoHelper()

		event := observe.Event{Name: what, Seconds: time.Since(began).Seconds()}

		fmt.Fprintf(&report, "%s\n", what)

		for _, c := range canaries {
			Eventually(c.Answers).Should(BeTrue(), "the webhooks answer")

			summary := c.Summarize()
			event.Add(summary)
			fmt.Fprintf(&report, "  %s\n", summary)
			GinkgoWriter.Println(summary)
		}

		var converted string

		Eventually(func(g Gomega) { converted = expectConversions(ctx, g) }).Should(Succeed())
		fmt.Fprintf(&report, "  %s\n", converted)
		Expect(lives.Lost()).To(BeEmpty())

		events = append(events, event)
		began = time.Now()

		return event
	}

	AfterEach(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			AddReportEntry("pods", run(ctx, "kubectl", "get", "pods,capstan", "-A", "-o", "wide"))
			AddReportEntry("events", run(ctx, "kubectl", "get", "events", "-A", "--sort-by=.lastTimestamp"))
			AddReportEntry("clusters", run(ctx, "kubectl", "get", "clusters,machines", "-A", "-o", "wide"))

			for _, n := range nodes {
				AddReportEntry(n.Name, n.Logs())
			}
		}
	})

	AfterAll(func() {
		if stop != nil {
			stop()
		}

		fmt.Printf("\ngaps of the canaries, one attempt every 200 ms:\n%s\n", &report)
		printGaps(events)
	})

	It("are installed by the operator, next to cert-manager, from their charts", func(ctx SpecContext) {
		steps = hand.Releases.Steps()
		last = steps[len(steps)-1]

		run(ctx, "helm", "install", "cert-manager", hand.Chart, "-n", certManagerNamespace, "--create-namespace",
			"--set", "crds.enabled=true,startupapicheck.enabled=false,image.tag="+hand.CertManager+
				",webhook.image.tag="+hand.CertManager+",cainjector.image.tag="+hand.CertManager)
		run(ctx, "helm", "install", "capstan", filepath.Join(root, "charts/capstan"), "-n", operatorNamespace,
			"--create-namespace", "--set", "image.tag="+operatorVersion+",image.pullPolicy=Never",
			"--set", fmt.Sprintf("flags.manager-high-availability=%t", highlyAvailable()))

		for _, namespace := range []string{certManagerNamespace, operatorNamespace} {
			Eventually(func(g Gomega) { available(ctx, g, namespace) }).Should(Succeed())
		}

		become(ctx, steps[0], exact)

		var watching context.Context

		watching, stop = context.WithCancel(context.Background())
		lives = watchLives(watching)
		canaries = startCanaries(watching)

		summarize(ctx, fmt.Sprint("installed ", steps[0]))
	})

	It("create a Cluster in memory", func(ctx SpecContext) {
		manifest = clusterInMemory(ctx, "living", steps[0]["infrastructure-docker"])
		apply(ctx, manifest)
		Eventually(func() int { return lives.Complete("Cluster") }).Should(Equal(1))
		Eventually(func() int { return lives.Complete("Machine") }).Should(Equal(3))
		summarize(ctx, "a Cluster in memory")
	})

	It("are upgraded all at once, and keep their Cluster", func(ctx SpecContext) {
		for i, step := range steps[1:] {
			version := exact
			if i == 0 {
				version = inRange
			}

			become(ctx, step, version)
			expectAvailability(summarize(ctx, fmt.Sprint("upgrade to ", step)))
		}
	})

	It("are still working", func(ctx SpecContext) {
		run(ctx, "kubectl", "patch", "cluster", "living", "--type=json", "--patch",
			`[{"op":"replace","path":"/spec/topology/workers/machineDeployments/0/replicas","value":3}]`)
		Eventually(func() int { return lives.Complete("Machine") }).Should(Equal(4))
		summarize(ctx, "one more Machine")
	})

	It("are restarted when the operator and each of them are killed", func(ctx SpecContext) {
		leader := &coordinationv1.Lease{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: "capstan.operator.cluster.x-k8s.io"},
			leader)).To(Succeed())
		pod, _, _ := strings.Cut(*leader.Spec.HolderIdentity, "_")
		killed(ctx, operatorNamespace, pod)
		summarize(ctx, "the operator's leader was killed")

		for _, label := range managers.Labels {
			for _, pod := range pods(ctx, namespaceOf(label)) {
				var unrouted time.Time

				routing, kill := watchRouting(ctx, &pod), time.Now()

				killed(ctx, pod.Namespace, pod.Name)
				Eventually(func() managers.Step { return versions(ctx) }).Should(Equal(last))
				Expect(routing).To(Receive(&unrouted))

				event := summarize(ctx, label+"'s manager was killed")

				fmt.Fprintf(&report, "  no ready endpoint after %.1f s\n", unrouted.Sub(kill).Seconds())

				// The other pod answers once kube-proxy knows, which writes rules once a second at most.
				if highlyAvailable() {
					Expect(event.Until).To(BeTemporally("<=", unrouted.Add(time.Second+2*canary.Interval)))
				}
			}
		}
	})

	It("keep running when an upgrade fails because its managers exit", func(ctx SpecContext) {
		release := broken(ctx, last, "cluster-api", func(components []byte) []byte {
			image := "registry.k8s.io/cluster-api/cluster-api-controller:" + last["cluster-api"]
			return bytes.ReplaceAll(components, []byte("image: "+image), []byte("image: "+brokenImage))
		})
		fails(ctx, release)
		expectAvailability(summarize(ctx, "core's upgrade failed: its manager exits"))
		become(ctx, last, exact)
	})

	It("keep running when an upgrade fails because a manager rejects its certificate", func(ctx SpecContext) {
		const label, secret = "control-plane-kubeadm", "capi-kubeadm-control-plane-webhook-service-cert"

		mismatched(ctx, client.ObjectKey{Namespace: namespaceOf(label), Name: secret},
			client.ObjectKey{Namespace: namespaceOf("cluster-api"), Name: "capi-webhook-service-cert"})

		release := broken(ctx, last, label, func(components []byte) []byte {
			return bytes.ReplaceAll(components,
				[]byte("secret:\n          secretName: "+secret), []byte("secret:\n          secretName: "+mismatchedSecret))
		})
		fails(ctx, release)
		expectAvailability(summarize(ctx, "an upgrade failed: its manager rejects its certificate"))
		become(ctx, last, exact)
	})

	It("return to their previous versions if these work with the CRDs of the newer ones", func(ctx SpecContext) {
		previous := steps[len(steps)-2]
		request(ctx, previous, exact)

		var returned managers.Step

		Eventually(func(g Gomega) { returned = settledDowngrade(ctx, g, previous, last) }).Should(Succeed())
		settle(ctx)
		fmt.Fprintf(&report, "returned to %s\n", returned)
		expectAvailability(summarize(ctx, fmt.Sprintf("back to %s where the CRDs allow it", previous)))
		become(ctx, last, exact)
		expectAvailability(summarize(ctx, fmt.Sprint("again to ", last)))
	})

	It("keep answering while nodes are drained one by one", func(ctx SpecContext) {
		for _, n := range nodes {
			drained(ctx, n.Name)
			settle(ctx)
			expectAvailability(summarize(ctx, "a node was drained"))
			run(ctx, "kubectl", "uncordon", n.Name)
		}

		for _, namespace := range []string{certManagerNamespace, operatorNamespace} {
			Eventually(func(g Gomega) { available(ctx, g, namespace) }).Should(Succeed())
		}

		Eventually(func() managers.Step { return versions(ctx) }).Should(Equal(last))
	})

	It("keep answering while kubectl restarts them", func(ctx SpecContext) {
		restarted(ctx)
		expectAvailability(summarize(ctx, "restarted by kubectl"))
	})

	// What Kubernetes alone does, to compare with.
	It("lose requests without the operator, too", func(ctx SpecContext) {
		if highlyAvailable() {
			Skip("the operator would undo what is compared")
		}

		run(ctx, "kubectl", "scale", "deployment", "capstan", "-n", operatorNamespace, "--replicas=0")
		Eventually(func() []corev1.Pod { return pods(ctx, operatorNamespace) }).Should(BeEmpty())

		changed(ctx, `{"spec":{"replicas":2}}`)
		summarize(ctx, "without the operator: scaled to two pods")

		for range 3 {
			restarted(ctx)
			summarize(ctx, "without the operator: two pods restarted by kubectl")
		}

		changed(ctx, `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":45,"containers":`+
			`[{"name":"manager","lifecycle":{"preStop":{"sleep":{"seconds":15}}}}]}}}}`)
		summarize(ctx, "without the operator: their ends delayed")

		for range 3 {
			restarted(ctx)
			summarize(ctx, "without the operator: two pods with delayed ends restarted by kubectl")
		}

		run(ctx, "kubectl", "scale", "deployment", "capstan", "-n", operatorNamespace, "--replicas=2")
		Eventually(func(g Gomega) { available(ctx, g, operatorNamespace) }).Should(Succeed())
		Eventually(func(g Gomega) {
			for _, label := range managers.Labels {
				g.Expect(deployments(ctx, g, namespaceOf(label))).To(
					HaveEach(HaveField("Spec.Replicas", HaveValue(BeEquivalentTo(1)))), "drift is corrected")
			}
		}).Should(Succeed())
		Eventually(func() managers.Step { return versions(ctx) }).Should(Equal(last))
		settle(ctx)
		summarize(ctx, "the operator runs again")
	})

	It("get new certificates when the Secrets of cert-manager are deleted", func(ctx SpecContext) {
		renewed(ctx, client.ObjectKey{Namespace: certManagerNamespace, Name: "cert-manager-webhook-ca"})

		core := namespaceOf("cluster-api")
		certificate := renewed(ctx, client.ObjectKey{Namespace: core, Name: "capi-webhook-service-cert"})

		// kubelet updates the manager's volume, and the manager reads it again.
		Eventually(func(g Gomega) []byte {
			return served(ctx, g, client.ObjectKey{Namespace: core, Name: "capi-webhook-service"})
		}).Should(Equal(certificate))
		summarize(ctx, "the Secrets of cert-manager's webhook and of core's were deleted")
	})

	It("are not ready while their webhooks lack the CA of their certificates", func(ctx SpecContext) {
		core := provider("cluster-api")
		read := func() *v1alpha2.ProviderStatus {
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(core), core)).To(Succeed())
			return core.GetStatus()
		}

		injectors := func(replicas int) {
			run(ctx, "kubectl", "scale", "deployment", "cert-manager-cainjector", "-n", certManagerNamespace,
				fmt.Sprint("--replicas=", replicas))
		}

		injectors(0)
		Eventually(func() []corev1.Pod { return pods(ctx, certManagerNamespace) }).ShouldNot(
			ContainElement(HaveField("Name", HavePrefix("cert-manager-cainjector-"))))
		renewed(ctx, client.ObjectKey{Namespace: core.GetNamespace(), Name: "capi-webhook-service-cert"})

		Eventually(read).Should(HaveField("Conditions", ContainElements(
			SatisfyAll(HaveField("Type", v1alpha2.ReadyCondition), HaveField("Message",
				ContainSubstring("webhooks have an outdated CA since "))),
			SatisfyAll(HaveField("Type", v1alpha2.WebhooksTrustedCondition),
				HaveField("Reason", v1alpha2.CALostReason)))))

		injectors(1)
		Eventually(func() managers.Step { return versions(ctx) }).Should(Equal(last))
		Expect(read().Conditions).To(ContainElement(SatisfyAll(
			HaveField("Type", v1alpha2.WebhooksTrustedCondition), HaveField("Status", metav1.ConditionTrue))))
		summarize(ctx, "core's certificate was renewed while cert-manager's cainjector was stopped")
	})

	It("are not removed before their Cluster", func(ctx SpecContext) {
		blocks := map[string]string{
			"cluster-api":           "core is removed last",
			"bootstrap-kubeadm":     "kubeadmconfigs.bootstrap.cluster.x-k8s.io",
			"control-plane-kubeadm": "kubeadmcontrolplanes.controlplane.cluster.x-k8s.io",
			"infrastructure-docker": "devmachines.infrastructure.cluster.x-k8s.io",
		}

		for _, label := range managers.Labels {
			Expect(admin.Delete(ctx, provider(label))).To(Succeed())
		}

		for _, label := range managers.Labels {
			Eventually(func(g Gomega) {
				p := provider(label)
				g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
				g.Expect(conditions.GetReason(p, v1alpha2.ReadyCondition)).To(
					BeElementOf(v1alpha2.DeletionBlockedReason, v1alpha2.DeletingReason))
				g.Expect(conditions.GetMessage(p, v1alpha2.ReadyCondition)).To(ContainSubstring(blocks[label]))
			}).Should(Succeed(), label)
		}

		summarize(ctx, "the providers were deleted while the Cluster exists")
		stop()

		run(ctx, "kubectl", "delete", "cluster", "living", "--timeout=3m")
		remove(ctx, manifest)

		for _, label := range managers.Labels {
			Eventually(func() bool {
				p := provider(label)
				return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(p), p))
			}).Should(BeTrue(), label)
			Eventually(func() []corev1.Pod { return pods(ctx, namespaceOf(label)) }).Should(BeEmpty())
		}
	})
})
