package e2e

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
)

// job is deleted by Kubernetes once it has completed, a few seconds later: the watch may begin late on a busy machine.
const job = `apiVersion: batch/v1
kind: Job
metadata:
  name: once
spec:
  ttlSecondsAfterFinished: 5
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: once, image: registry.example.com/once:v1}
`

var _ = Describe("A Job of a provider", func() {
	It("is not run again after it has completed and was deleted, even if the operator restarts", func(ctx SpecContext) {
		w := sharedWorld(ctx)
		t := newTiny("with-job", "v1.0.0")

		p := t.resource()
		for _, o := range []client.Object{t.namespace(), t.configMap(), p} {
			Expect(w.client.Create(ctx, o)).To(Succeed())
		}

		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		creations := func() int {
			return len(w.requests(func(r bed.Request) bool {
				return r.Code == http.StatusCreated && !r.DryRun && r.Resource == "jobs" && r.Namespace == p.Namespace
			}))
		}
		expectGone := func() {
			GinkgoHelper()
			Consistently(creations).WithTimeout(3 * quietPeriod).Should(Equal(1))
			Expect(w.read(ctx, p)(Default)).To(And(beReady("v1.0.0"), Not(haveConditionType(v1alpha2.DriftedCondition))))
		}

		manifests := &corev1.ConfigMap{ObjectMeta: named(p.Namespace, "jobs"), Data: map[string]string{"manifests": job}}
		Expect(w.client.Create(ctx, manifests)).To(Succeed())
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().AdditionalManifests = &v1alpha2.ConfigMapReference{Name: manifests.Name}
		})
		Eventually(creations).Should(Equal(1))

		Eventually(gone(ctx, w, &batchv1.Job{ObjectMeta: named(p.Namespace, "once")})).
			WithTimeout(time.Minute).Should(BeTrue())
		expectGone()

		By("restarting the operator")
		Expect(w.operator.Kill()).To(Succeed())

		restarted := time.Now()

		w.start()
		Eventually(func() []bed.Request {
			return w.requests(func(r bed.Request) bool {
				return r.Received.After(restarted) && r.Verb == "get" && r.Name == t.name+"-controller-manager"
			})
		}).ShouldNot(BeEmpty(), "the operator compares the objects")
		expectGone()
	})
})
