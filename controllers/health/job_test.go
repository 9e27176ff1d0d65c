package health_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/object"
)

var _ = Describe("A Job", func() {
	It("that has completed is healthy and in sync, even if deleted, until it is created again", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		tracker := track(namespace)
		once := named(batchv1.SchemeGroupVersion.WithKind("Job"), namespace, "once")

		create := func() *batchv1.Job {
			GinkgoHelper()

			job := &batchv1.Job{ObjectMeta: owned(namespace, "once"), Spec: batchv1.JobSpec{
				// The Job controller leaves the status to the test.
				ManagedBy: ptr.To("example.com/test"),
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers:    []corev1.Container{{Name: "once", Image: "registry.example.com/once:v9"}},
				}},
			}}
			Expect(admin.Create(ctx, job)).To(Succeed())
			tracker.MarkVerified([]object.Snapshot{versionOf(ctx, once)})

			return job
		}
		check := func(g Gomega) health.ObjectHealth {
			report, err := tracker.Check(ctx, []object.Key{once})
			g.Expect(err).NotTo(HaveOccurred())

			return report.Objects[0]
		}
		beFinished := And(HaveField("Finished", true), HaveField("Healthy()", true))

		job := create()

		Expect(check(Default)).NotTo(beFinished)
		Eventually(tracker.woken).Should(BeNumerically(">", 0), "the watch shows it; what was only read is not remembered")

		By("completing and being deleted")

		completed := []byte(`{"status":{"startTime":"2026-01-01T00:00:00Z","completionTime":"2026-01-01T00:00:01Z",
			"succeeded":1,"conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}}`)
		Expect(admin.Status().Patch(ctx, job, client.RawPatch(types.MergePatchType, completed))).To(Succeed())
		Eventually(check).Should(beFinished)
		Expect(admin.Delete(ctx, job, client.PropagationPolicy("Background"))).To(Succeed())
		Eventually(check).Should(And(beFinished, HaveField("Message", BeEmpty())), "the watch shows that it is gone")
		Expect(tracker.Unverified(ctx, []object.Key{once})).To(BeEmpty())

		By("being created again, and deleted before it has completed")

		job = create()

		Eventually(check).Should(And(Not(beFinished), HaveField("Message", ContainSubstring("not started"))))
		Expect(admin.Delete(ctx, job, client.PropagationPolicy("Background"))).To(Succeed())
		Eventually(check).Should(HaveField("Message", "does not exist"))
		Expect(tracker.Unverified(ctx, []object.Key{once})).To(ConsistOf(once))
	})
})
