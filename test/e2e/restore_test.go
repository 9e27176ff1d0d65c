package e2e

import (
	"fmt"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

var _ = Describe("A cluster whose etcd is restored from a backup", Ordered, func() {
	// Those of the chart.
	flags := []string{
		"--enable-leader-election", "--leader-election-namespace=default", "--leader-election-lease-duration=15s",
		"--leader-election-renew-deadline=10s", "--leader-election-retry-period=2s",
	}

	var w *world

	BeforeAll(func(ctx SpecContext) {
		w = readyWorld(ctx, flags...)
	})

	It("makes the operator start again and act on what is restored", func(ctx SpecContext) {
		t := newTiny("restored", "v1.0.0")
		p := t.resource()

		for _, o := range []client.Object{
			t.namespace(), t.configMap(), newTiny("restored", "v1.1.0").configMap(), p,
		} {
			Expect(w.client.Create(ctx, o)).To(Succeed())
		}

		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		w.awaitItem(ctx, p)

		restore, err := w.bed.Backup(ctx)
		Expect(err).NotTo(HaveOccurred())

		expectUndisturbed := w.undisturbed(ctx)

		By("writing a lot that is lost")
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))

		for i := range 200 {
			update(ctx, w, p, func(p v1alpha2.Provider) {
				p.SetLabels(map[string]string{"example.com/write": fmt.Sprint(i)})
			})
		}

		began := time.Now()

		Expect(restore(ctx)).To(Succeed())

		restored := time.Now()

		Eventually(func() bool { exited, _ := w.operator.Exited(); return exited }).Should(BeTrue())
		Expect(os.ReadFile(w.log)).To(ContainSubstring("restored from a backup"))

		exited := time.Now()

		By("starting the operator, as the kubelet does")
		w.start(flags...)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		expectUndisturbed(p, restored)

		deployments := &appsv1.DeploymentList{}
		Expect(w.client.List(ctx, deployments, client.InNamespace(p.GetNamespace()))).To(Succeed())
		Expect(deployments.Items).To(HaveLen(1))

		deployment := &deployments.Items[0]
		Expect(w.client.Patch(ctx, deployment, client.RawPatch(
			types.MergePatchType, []byte(`{"spec":{"replicas":0}}`)))).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
			g.Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
		}).Should(Succeed())

		GinkgoWriter.Printf("restored in %s; the operator exited %s, and acted %s after that\n",
			restored.Sub(began), exited.Sub(restored), time.Since(restored))
	})
})
