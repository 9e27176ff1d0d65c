package e2e

import (
	"context"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
)

var _ = Describe("A cluster that is also reached by a kubeconfig", Ordered, func() {
	var w *world

	BeforeAll(func(ctx SpecContext) { w = sharedWorld(ctx) })

	crdWrites := func() []bed.Request {
		return w.operatorWrites(func(r bed.Request) bool { return r.Resource == "customresourcedefinitions" })
	}

	It("keeps the core that was installed first, and rejects a duplicate without side effects", func(ctx SpecContext) {
		written := len(crdWrites())

		core := w.duplicateCore(ctx, w, "a-fleet")
		Eventually(w.read(ctx, core)).Should(failPreflight(v1alpha2.MoreThanOneProviderInstanceExistsReason,
			"is already installed in the cluster, as Helm release cluster-api-system/cluster-api"))
		Consistently(crdWrites, quietPeriod).Should(HaveLen(written))

		By("deleting the duplicate")
		Expect(w.client.Delete(ctx, core)).To(Succeed())
		Eventually(gone(ctx, w, core), 10*time.Second).Should(BeTrue())
	})
})

// duplicateCore creates a CoreProvider in a namespace, whose target is another cluster that has core.
func (w *world) duplicateCore(ctx context.Context, target *world, namespace string) v1alpha2.Provider {
	GinkgoHelper()

	release, err := harness.Load(ctx, samples, harness.Wanted{Label: "cluster-api"})
	Expect(err).NotTo(HaveOccurred())

	release.Namespace = namespace
	Expect(release.Prepare(ctx, w.client)).To(Succeed())

	core := release.Resource()
	w.sendTo(ctx, target, core, "kubeconfig")
	Expect(w.client.Create(ctx, core)).To(Succeed())

	return core
}

// sendTo makes the target of a provider another cluster, by a kubeconfig in a Secret of this name.
func (w *world) sendTo(ctx context.Context, target *world, p v1alpha2.Provider, secret string) {
	GinkgoHelper()

	kubeconfig, err := os.ReadFile(target.bed.Kubeconfig())
	Expect(err).NotTo(HaveOccurred())

	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.GetNamespace()}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.GetNamespace(), Name: secret},
			Data:       map[string][]byte{"value": kubeconfig},
		},
	} {
		Expect(client.IgnoreAlreadyExists(w.client.Create(ctx, o))).To(Succeed())
	}

	p.GetSpec().KubeConfig = &v1alpha2.KubeConfig{SecretRef: v1alpha2.KubeConfigSecretReference{
		LocalSecretReference: v1alpha2.LocalSecretReference{Name: secret}, Key: "value",
	}}
}
