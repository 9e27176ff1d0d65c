package release_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/release"
)

var _ = Describe("An upgrade or rollback", func() {
	var (
		namespace string
		engine    *release.Engine
	)

	BeforeEach(func(ctx SpecContext) { namespace, engine = newNamespace(ctx), newEngine("one") })

	replicas := func(ctx SpecContext) int {
		GinkgoHelper()
		return int(*getDeployment(ctx, namespace, "manager").Spec.Replicas)
	}
	scale := func(ctx SpecContext, replicas string) {
		GinkgoHelper()
		run(ctx, "kubectl", "scale", "deployment", "manager", "-n", namespace, "--replicas="+replicas)
	}

	It("keeps the replicas of an autoscaled object", func(ctx SpecContext) {
		first := specOf(namespace, "1.0.0", deployment("manager", "1"))
		mustApply(ctx, engine, first)
		run(ctx, "kubectl", "autoscale", "deployment", "manager", "-n", namespace, "--min=1", "--max=9")

		By("upgrading")
		scale(ctx, "3")
		mustApply(ctx, engine, specOf(namespace, "1.1.0", deployment("manager", "2"), configMap("added", "")))
		Expect(replicas(ctx)).To(Equal(3))

		By("upgrading to a version that defines no replicas")
		mustApply(ctx, engine, specOf(namespace, "1.2.0", strings.Replace(deployment("manager", "2"), "replicas: 2", "", 1)))
		Expect(replicas(ctx)).To(Equal(3))

		By("rolling back")
		scale(ctx, "4")

		options := release.RollbackOptions{Target: confirmed(namespace, 1), Reason: "a test"}
		result, err := rollback(ctx, engine, first.Release, options, observe(ctx, engine, first))
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Status).To(Equal(v1alpha2.RevisionDeployed))
		Expect(replicas(ctx)).To(Equal(4))
		Expect(compare(ctx, engine, namespace).Differences).To(BeEmpty())

		By("pausing and resuming the provider")

		paused := strings.Replace(deployment("manager", "0"), "metadata:",
			"metadata:\n  annotations: {capstan.dev/paused-replicas: '2'}", 1)
		mustApply(ctx, engine, specOf(namespace, "1.3.0", paused))
		Expect(replicas(ctx)).To(Equal(0))
		mustApply(ctx, engine, specOf(namespace, "1.3.1", deployment("manager", "2")))
		Expect(replicas(ctx)).To(Equal(2))
	})

	It("keeps the replicas when the autoscaler comes with the release, and sets them when it goes", func(ctx SpecContext) {
		const autoscaler = `apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata:
  name: manager
spec:
  maxReplicas: 9
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: manager}
`

		mustApply(ctx, engine, specOf(namespace, "1.0.0", deployment("manager", "1")))
		scale(ctx, "3")

		withoutReplicas := strings.Replace(deployment("manager", "1"), "replicas: 1", "", 1)
		mustApply(ctx, engine, specOf(namespace, "1.1.0", withoutReplicas, autoscaler))
		Expect(replicas(ctx)).To(Equal(3))

		mustApply(ctx, engine, specOf(namespace, "1.2.0", deployment("manager", "2")))
		Expect(replicas(ctx)).To(Equal(2))
	})

	It("tells without values why a claim cannot be changed, and keeps it as it is if asked to", func(ctx SpecContext) {
		claim := func(mode, policy string) string {
			return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: images\n  annotations: {" + policy + "}\n" +
				"spec:\n  storageClassName: none\n  accessModes: [" + mode + "]\n  resources: {requests: {storage: 1Gi}}\n"
		}

		mustApply(ctx, engine, specOf(namespace, "1.0.0", claim("ReadWriteOnce", "")))

		_, err := applySpec(ctx, engine, specOf(namespace, "1.1.0", claim("ReadWriteMany", "")))
		expectError[*apply.DryRunError](err)
		Expect(err).To(MatchError(And(
			ContainSubstring("images, so nothing was changed: spec: Forbidden: spec is immutable after creation except "),
			ContainSubstring("for bound claims; this change requires that the object is recreated, "+
				"but it is not deleted because "),
			ContainSubstring("set the annotation capstan.dev/update-policy: Once on it in the release"),
			Not(ContainSubstring("ReadWrite")))))

		mustApply(ctx, engine, specOf(namespace, "1.1.0", claim("ReadWriteMany", "capstan.dev/update-policy: Once")))
	})

	It("does not delete a Service with a load balancer to change an immutable field", func(ctx SpecContext) {
		balanced := func(class string) string {
			return "apiVersion: v1\nkind: Service\nmetadata:\n  name: balanced\nspec:\n  type: LoadBalancer\n" +
				"  loadBalancerClass: example.org/" + class + "\n  ports: [{port: 443}]\n"
		}

		mustApply(ctx, engine, specOf(namespace, "1.0.0", balanced("one")))
		before, err := client.CoreV1().Services(namespace).Get(ctx, "balanced", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())

		_, err = applySpec(ctx, engine, specOf(namespace, "1.1.0", balanced("two")))
		expectError[*apply.DryRunError](err)
		Expect(err).To(MatchError("the API server would refuse Service " + namespace +
			"/balanced, so nothing was changed: spec.loadBalancerClass: " +
			"may not change once set; this change requires that the object is recreated, but it is not deleted because " +
			"its load balancer and address would be lost with it; delete it yourself if that is acceptable, or set the " +
			"annotation capstan.dev/update-policy: Once on it in the release to keep it as it is; " +
			"correct the variables or the resource's patches, or choose another version"))

		after, err := client.CoreV1().Services(namespace).Get(ctx, "balanced", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.Spec.Type).To(Equal(corev1.ServiceTypeLoadBalancer))
	})
})
