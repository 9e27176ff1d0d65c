package e2e

import (
	"bufio"
	"context"
	"net/http"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed/bedtest"
)

// reconciles returns how many reconciles of infrastructure providers an operator with this address of its metrics has
// finished.
func reconciles(ctx context.Context, address string) (sum int) {
	GinkgoHelper()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	Expect(err).NotTo(HaveOccurred())

	answer, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())

	defer answer.Body.Close()

	const counter = `controller_runtime_reconcile_total{controller="InfrastructureProvider",result=`

	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), counter) {
			continue
		}

		_, count, _ := strings.Cut(lines.Text(), "} ")
		sum += must(strconv.Atoi(count))
	}

	return sum
}

var _ = Describe("Reconciles", Ordered, func() {
	var (
		w       *world
		address string
		all     []v1alpha2.Provider
	)

	tinies := []tiny{
		newTiny("counted-one", "v1.0.0"), newTiny("counted-two", "v1.0.0"), newTiny("counted-three", "v1.0.0"),
	}

	// during returns the number of reconciles that follow from a change.
	during := func(ctx context.Context, change func()) int {
		GinkgoHelper()

		count := func() int { return reconciles(ctx, address) }
		before := settled(count)

		change()

		return settled(count) - before
	}

	BeforeAll(func(ctx SpecContext) {
		address = bedtest.FreeAddress(GinkgoT())
		w = sharedWorld(ctx, "--metrics-bind-address="+address, "--metrics-secure=false")
		w.withoutCore(ctx)
	})

	It("of providers that wait for core end once they wait", func(ctx SpecContext) {
		for _, t := range tinies {
			Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
			Expect(w.client.Create(ctx, t.configMap())).To(Succeed())
			all = append(all, t.resource())
		}

		Expect(during(ctx, func() {
			for _, p := range all {
				Expect(w.client.Create(ctx, p)).To(Succeed())
				Eventually(w.read(ctx, p)).Should(haveCondition(v1alpha2.ReadyCondition, metav1.ConditionFalse,
					v1alpha2.WaitingForCoreProviderReadyReason))
			}
		})).To(BeNumerically("<=", len(all)), "the resource")
	})

	// Core writes its status eight times.
	It("follow when core exists and is ready, not its steps, and then the health of objects", func(ctx SpecContext) {
		Expect(during(ctx, func() {
			w.installCore(ctx)

			for _, p := range all {
				Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
			}
		})).To(BeNumerically("<=", 6*len(all)), "core exists, changes, is ready; objects exist, a Pod runs, it is ready")
	})

	It("do not follow what concerns no provider", func(ctx SpecContext) {
		namespace := all[0].GetNamespace()

		Expect(during(ctx, func() {
			w.run(ctx, "kubectl", "create", "configmap", "unrelated", "-n", namespace)
			w.run(ctx, "kubectl", "create", "secret", "generic", "unrelated", "-n", namespace)
			w.run(ctx, "kubectl", "annotate", "coreprovider", "--all", "-A", "example.com/unrelated=yes")
			w.run(ctx, "kubectl", "annotate", "pods", "--all", "-n", namespace, "example.com/unrelated=yes")
		})).To(BeZero())
	})

	It("follow a change of the spec, and then its rollout", func(ctx SpecContext) {
		p := all[0]

		Expect(during(ctx, func() {
			update(ctx, w, p, func(p v1alpha2.Provider) {
				p.GetSpec().Deployment = &v1alpha2.DeploymentSpec{Replicas: ptr.To(int32(2))}
			})
			Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), HaveField("Status.Release.Revision", 2)))
		})).To(BeNumerically("<=", 6), "the spec, and what the rollout has come to")
	})
})
