package chaos

import (
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
)

// crowdNamespaces is the number of namespaces of a crowd.
const crowdNamespaces = 20

// TestCrowd installs CHAOS_CROWD small providers at once, while requests of the operator fail: each of them gets ready.
// CHAOS_SEED selects the requests.
func TestCrowd(t *testing.T) {
	if os.Getenv("CHAOS_CROWD") == "" {
		t.Skip("CHAOS_CROWD is not set: a crowd takes minutes")
	}

	g := NewWithT(t)
	ctx := t.Context()

	program, err := harness.Program(ctx, root, t.TempDir(), harness.OperatorProgram)
	g.Expect(err).NotTo(HaveOccurred())

	b := bedtest.Start(t, bed.Options{Nodes: 5, CRDs: harness.OwnCRDs()})
	c, err := harness.PrepareForTest(ctx, b.Config())
	g.Expect(err).NotTo(HaveOccurred())

	o, err := newOperator(b, program, t.TempDir(), "operator-0", uint64(setting(t, "CHAOS_SEED")))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.start()).To(Succeed())
	t.Cleanup(func() { g.Expect(o.stop()).To(Succeed()) })

	o.faults.SetRate(faultRate)

	started := time.Now()
	waiting := map[client.ObjectKey]v1alpha2.Provider{}

	for i := range setting(t, "CHAOS_CROWD") {
		providerType, name := v1alpha2.InfrastructureProviderType, fmt.Sprintf("crowd-%03d", i)
		if i == 0 {
			providerType, name = v1alpha2.CoreProviderType, v1alpha2.CoreProviderName
		}

		key := types.NamespacedName{Namespace: fmt.Sprintf("crowd-%02d", i%crowdNamespaces), Name: name}
		p, err := harness.Small(providerType, key, fmt.Sprintf("c%03d", i), "v1.0.0").Install(ctx, c)
		g.Expect(err).NotTo(HaveOccurred())

		waiting[key] = p
	}

	g.Eventually(func(g Gomega) map[client.ObjectKey]string {
		messages := map[client.ObjectKey]string{}

		for key, p := range waiting {
			g.Expect(c.Get(ctx, key, p)).To(Succeed())

			ready := v1alpha2.FindCondition(p.GetConditions(), v1alpha2.ReadyCondition)
			if messages[key] = ready.Message; ready.Status == "True" {
				delete(messages, key)
				delete(waiting, key)
			}
		}

		return messages
	}).WithTimeout(20 * time.Minute).WithPolling(2 * time.Second).Should(BeEmpty())

	fmt.Printf("crowd: all ready in %s, %d requests failed\n",
		time.Since(started).Round(time.Second), o.faults.Injected())
}
