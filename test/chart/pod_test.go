package chart

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

var _ = Describe("The operator's pod", func() {
	// render returns the template of the Deployment, with default values and those in the arguments.
	render := func(ctx SpecContext, args ...string) corev1.PodTemplateSpec {
		GinkgoHelper()

		deployment := &appsv1.Deployment{}
		template := []string{"template", release, light, "-n", namespace, "-s", "templates/deployment.yaml"}
		rendered := run(ctx, "helm", append(template, args...)...)
		Expect(yaml.UnmarshalStrict([]byte(rendered), deployment)).To(Succeed())

		return deployment.Spec.Template
	}

	It("is allowed by the restricted Pod Security Standard", func(ctx SpecContext) {
		restricted := &corev1.Namespace{ObjectMeta: objectName("restricted")}
		restricted.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
		Expect(admin.Create(ctx, restricted)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, restricted)).To(Succeed()) })

		template := render(ctx)
		pod := &corev1.Pod{ObjectMeta: objectName("operator"), Spec: template.Spec}
		pod.Namespace, pod.Spec.ServiceAccountName = restricted.Name, "default"

		Eventually(func() error { // the API server creates the ServiceAccount default
			return admin.Create(ctx, pod.DeepCopy(), client.DryRunAll)
		}).Should(Succeed())

		pod.Spec.Containers[0].SecurityContext.Capabilities = nil
		Expect(admin.Create(ctx, pod, client.DryRunAll)).To(MatchError(ContainSubstring(`violates PodSecurity "restricted`)))
	})

	It("has 80 % of its memory limit for the Go runtime", func(ctx SpecContext) {
		for limit, want := range map[string]string{
			"512Mi":     "429496729",
			"1Gi":       "858993459",
			"1.5Gi":     "1288490188",
			"500M":      "400000000",
			"536870912": "429496729",
		} {
			container := render(ctx, "--set-string", "resources.limits.memory="+limit).Spec.Containers[0]
			Expect(container.Env).To(ContainElement(corev1.EnvVar{Name: "GOMEMLIMIT", Value: want}), limit)
		}

		unlimited := render(ctx, "--set", "resources.limits=null").Spec.Containers[0]
		Expect(unlimited.Env).NotTo(ContainElement(HaveField("Name", "GOMEMLIMIT")))
	})

	It("cannot write to its file system, except for temporary files", func(ctx SpecContext) {
		container := render(ctx).Spec.Containers[0]
		Expect(container.SecurityContext.ReadOnlyRootFilesystem).To(HaveValue(BeTrue()))
		Expect(container.VolumeMounts).To(HaveExactElements(HaveField("MountPath", "/tmp")))
	})
})
