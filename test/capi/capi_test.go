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
	"github.com/onsi/gomega/types"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/audit/canary"
	"github.com/capstan-project/capstan/test/capi/managers"
	"github.com/capstan-project/capstan/test/capi/observe"
	"github.com/capstan-project/capstan/test/testproviders"
)

// availabilityVariable turns off high availability of the managers if it is "false".
const availabilityVariable = "HIGH_AVAILABILITY"

// tolerated is how many requests of a canary may be refused while the managers are replaced. With high availability, it
// is one for each pod: the API server reuses connections, and may send a request on one that the manager is closing.
// Without, no request is answered from the end of the only pod until the next one serves.
func tolerated() types.GomegaMatcher {
	if highlyAvailable() {
		return BeNumerically("<=", 2)
	}

	return BeNumerically("<", 150)
}

func highlyAvailable() bool { return os.Getenv(availabilityVariable) != "false" }

var _ = Describe("Cluster API's own managers", Ordered, func() {
	var (
		steps    []managers.Step
		last     managers.Step
		manifest string

		lives    *observe.Lives
		canaries []*canary.Canary
		stop     context.CancelFunc
		report   strings.Builder
	)

	// become requests the versions of a step, and waits until all providers have them and all their pods run them.
	become := func(ctx context.Context, step managers.Step, version func(string) string) {
		GinkgoHelper()

		begin := time.Now()

		request(ctx, step, version)
		Eventually(func() managers.Step { return versions(ctx) }).Should(Equal(step))
		fmt.Fprintf(&report, "%v is ready after %.1f s\n", step, time.Since(begin).Seconds())
		settle(ctx)
	}

	// summarize waits until all webhooks answer, prints the gaps since the previous call, and expects that nothing has
	// been lost. It returns the most refused requests of a canary.
	summarize := func(ctx context.Context, what string) int {
		GinkgoHelper()

		most := 0

		fmt.Fprintf(&report, "%s\n", what)

		for _, c := range canaries {
			Eventually(c.Answers).Should(BeTrue(), "the webhooks answer")

			summary := c.Summarize()
			most = max(most, summary.Failed())
			fmt.Fprintf(&report, "  %s\n", summary)
			GinkgoWriter.Println(summary)
		}

		var converted string

		Eventually(func(g Gomega) { converted = expectConversions(ctx, g) }).Should(Succeed())
		fmt.Fprintf(&report, "  %s\n", converted)
		Expect(lives.Lost()).To(BeEmpty())

		return most
	}

	AfterEach(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			AddReportEntry("pods", run(ctx, "kubectl", "get", "pods,capstan", "-A", "-o", "wide"))
			AddReportEntry("events", run(ctx, "kubectl", "get", "events", "-A", "--sort-by=.lastTimestamp"))
			AddReportEntry("clusters", run(ctx, "kubectl", "get", "clusters,machines", "-A", "-o", "wide"))
			AddReportEntry("node", machine.Logs())
		}
	})

	AfterAll(func() {
		if stop != nil {
			stop()
		}

		fmt.Printf("\ngaps of the canaries, one attempt every 200 ms:\n%s\n", &report)
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
		const docker = "infrastructure-docker"

		manifest = capstan(ctx, "generate", "cluster", "living", "--infrastructure", "docker", "--flavor", "in-memory",
			"--source", filepath.Join(os.Getenv(testproviders.Variable), docker, steps[0][docker]),
			"--target-namespace", "default", "--kubernetes-version", "v1.34.0",
			"--control-plane-machine-count", "1", "--worker-machine-count", "2")
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
			Expect(summarize(ctx, fmt.Sprint("upgrade to ", step))).To(tolerated())
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
				killed(ctx, pod.Namespace, pod.Name)
			}

			Eventually(func() managers.Step { return versions(ctx) }).Should(Equal(last))
			summarize(ctx, label+"'s manager was killed")
		}
	})

	It("keep running when an upgrade fails because its managers exit", func(ctx SpecContext) {
		release := broken(ctx, last, "cluster-api", func(components []byte) []byte {
			image := "registry.k8s.io/cluster-api/cluster-api-controller:" + last["cluster-api"]
			return bytes.ReplaceAll(components, []byte("image: "+image), []byte("image: "+brokenImage))
		})
		fails(ctx, release)
		Expect(summarize(ctx, "core's upgrade failed: its manager exits")).To(tolerated())
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
		Expect(summarize(ctx, "an upgrade failed: its manager rejects its certificate")).To(tolerated())
		become(ctx, last, exact)
	})

	It("return to their previous versions if these work with the CRDs of the newer ones", func(ctx SpecContext) {
		previous := steps[len(steps)-2]
		request(ctx, previous, exact)

		var returned managers.Step

		Eventually(func(g Gomega) { returned = settledDowngrade(ctx, g, previous, last) }).Should(Succeed())
		settle(ctx)
		Expect(summarize(ctx, fmt.Sprintf("back to %s where the CRDs allow it: %s", previous, returned))).
			To(tolerated())
		become(ctx, last, exact)
		Expect(summarize(ctx, fmt.Sprint("again to ", last))).To(tolerated())
	})

	It("keep answering while all pods are evicted, as they are when nodes are drained one by one", func(ctx SpecContext) {
		for _, label := range managers.Labels {
			evicted(ctx, namespaceOf(label))
			settle(ctx)
			Expect(summarize(ctx, label+"'s pods were evicted")).To(tolerated())
		}

		for _, namespace := range []string{certManagerNamespace, operatorNamespace} {
			evicted(ctx, namespace)
			Eventually(func(g Gomega) { available(ctx, g, namespace) }).Should(Succeed())
		}

		Eventually(func() managers.Step { return versions(ctx) }).Should(Equal(last))
		Expect(summarize(ctx, "the pods of cert-manager and the operator were evicted")).To(tolerated())
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
				g.Expect(conditions.GetReason(p, v1alpha2.ReadyCondition)).To(Equal(v1alpha2.DeletionBlockedReason))
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
