package chart

import (
	"context"
	"encoding/json"
	"os/exec"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/charts"
	"github.com/capstan-project/capstan/test/bed/tools"
)

// twoProviders are values with two providers, one of them in the operator's own namespace.
const twoProviders = `
providers:
  - kind: CoreProvider
    name: cluster-api
    namespace: core-system
    spec: {version: v1.0.0}
    secretVariables: {A: "2"}
  - kind: InfrastructureProvider
    name: docker
    namespace: capstan-system
    annotations: {example.org/owner: platform, capstan.dev/install-beside: capstan-system}
    spec: {version: v1.0.0, variables: {A: "1"}}
`

var _ = Describe("The chart", Ordered, func() {
	AfterAll(func(ctx SpecContext) { removeAll(ctx) })

	It("passes helm lint", func(ctx SpecContext) {
		Expect(
			run(ctx, helm, "lint", "--strict", archive),
		).NotTo(Or(ContainSubstring("WARNING"), ContainSubstring("ERROR")))
		Expect(
			run(ctx, helm, "lint", "--strict", light, "--values", yamlFile(everything)),
		).NotTo(ContainSubstring("ERROR"))
	})

	It("rejects unknown and invalid values", func(ctx SpecContext) {
		for _, wrong := range []string{
			"replica: 2",
			"flags: {concurency: 2}",
			"providers: [{kind: Provider, name: a, namespace: b}]",
			"flags: {log-level: loud}",
			"flags: {chart-repository: https://registry.example.com/charts}",
		} {
			_, err := try(ctx, helm, "template", light, "--values", yamlFile(wrong))
			Expect(err).To(HaveOccurred(), wrong)
		}
	})

	It("accepts chart repositories by TLS and by plain HTTP, as the operator does", func(ctx SpecContext) {
		for _, scheme := range []string{"oci", "http"} {
			run(ctx, helm, "template", light, "--set", "flags.chart-repository="+scheme+"://registry.example.com/charts")
		}
	})

	It("installs providers in a cluster that does not serve their kinds yet", func(ctx SpecContext) {
		Expect(definitions(ctx)).To(BeEmpty())
		run(
			ctx, helm, "install", release, light, "-n", namespace, "--create-namespace", "--values",
			yamlFile(twoProviders),
		)
		Expect(definitions(ctx)).To(HaveLen(len(v1alpha2.ProviderTypes())))
		core := provider(ctx, &v1alpha2.CoreProvider{}, "core-system", "cluster-api")
		Expect(core.GetSpec().Version).To(Equal("v1.0.0"))

		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "core-system", Name: core.GetSpec().SecretName}}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
		Expect(secret.Data).To(Equal(map[string][]byte{"A": []byte("2")}))

		docker := provider(ctx, &v1alpha2.InfrastructureProvider{}, namespace, "docker")
		Expect(docker.GetSpec().Variables).To(Equal(map[string]string{"A": "1"}))
		Expect(docker.GetAnnotations()).To(HaveKeyWithValue("example.org/owner", "platform"))
	})

	It("tells the command line the operator's version, before it runs", func(ctx SpecContext) {
		program, err := commandLine()
		Expect(err).NotTo(HaveOccurred())

		out, err := exec.CommandContext(ctx, program, "version", "-o", "json",
			"--kubeconfig", cluster.Kubeconfig()).Output()
		Expect(err).NotTo(HaveOccurred())

		var found struct{ Client, Operator map[string]string }
		Expect(json.Unmarshal(out, &found)).To(Succeed())
		Expect(found.Client).To(Equal(map[string]string{"version": "dev", "chartFormat": chartgen.Version}))
		Expect(found.Operator).To(Equal(map[string]string{
			"version":   "v0.1.0",
			"namespace": namespace, "deployment": release, "image": "ghcr.io/capstan-project/capstan:v0.1.0",
		}))
	})

	It("is much smaller than the limit of the Secret that Helm stores it in", func(ctx SpecContext) {
		const limit = 1 << 20 // the API server's limit for all data

		record := &corev1.Secret{}
		Expect(
			admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "sh.helm.release.v1." + release + ".v1"}, record),
		).To(Succeed())
		Expect(
			len(record.Data["release"]),
		).To(BeNumerically("<", limit*3/4), "the CRDs have grown: leave their descriptions out of the chart")
	})

	It("contains only valid objects when everything is enabled", func(ctx SpecContext) {
		// The kinds of the Prometheus operator are not served here.
		objects := run(ctx, helm, "template", release, light, "-n", namespace, "--values", yamlFile(everything),
			"--set", "metrics.serviceMonitor.enabled=false,metrics.prometheusRule.enabled=false")
		Expect(
			objects,
		).To(And(
			ContainSubstring("kind: NetworkPolicy"),
			ContainSubstring("kind: PodDisruptionBudget"),
			ContainSubstring("capstan.json: |"),
		))
		run(
			ctx, "kubectl", "apply", "--dry-run=server", "--server-side", "--force-conflicts", "--validate=strict",
			"-f", yamlFile(objects),
		)
	})

	It("runs two pods, which become available", func(ctx SpecContext) {
		Eventually(func(g Gomega) {
			deployment := &appsv1.Deployment{}
			g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: release}, deployment)).To(Succeed())
			g.Expect(deployment.Status.AvailableReplicas).To(BeEquivalentTo(2))
		}).Should(Succeed())
	})

	It("lets the operator upgrade the CRDs with its own permissions", func(ctx SpecContext) {
		stale := definitions(ctx)[0]
		original := stale.DeepCopy()
		delete(stale.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties, "missingVariables")
		Expect(admin.Update(ctx, &stale)).To(Succeed())
		run(
			ctx, helm, "upgrade", release, light, "-n", namespace, "--values", yamlFile(twoProviders), "--set",
			"replicas=1",
		)

		current := func() bool {
			for _, definition := range definitions(ctx) {
				if definition.Name == original.Name {
					status := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
					_, found := status.Properties["missingVariables"]

					return found
				}
			}

			return false
		}
		Expect(current()).To(BeFalse(), "helm does not upgrade CRDs; if it did, this scenario would be pointless")
		startOperator(ctx, "--upgrade-crds")
		Eventually(current).Should(BeTrue())
	})

	It("keeps a provider's objects when it is removed from the list", func(ctx SpecContext) {
		run(ctx, helm, "upgrade", release, light, "-n", namespace)
		Expect(provider(ctx, &v1alpha2.CoreProvider{}, "core-system", "cluster-api").GetDeletionTimestamp()).To(BeNil())
	})

	It("keeps CRDs, providers and their namespaces when it is uninstalled", func(ctx SpecContext) {
		run(ctx, helm, "upgrade", release, light, "-n", namespace, "--values", yamlFile(twoProviders))
		run(ctx, helm, "uninstall", release, "-n", namespace)
		err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: release}, &appsv1.Deployment{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
		Expect(definitions(ctx)).To(HaveLen(len(v1alpha2.ProviderTypes())))
		Expect(provider(ctx, &v1alpha2.CoreProvider{}, "core-system", "cluster-api").GetDeletionTimestamp()).To(BeNil())
		Expect(admin.Get(ctx, client.ObjectKey{Name: "core-system"}, &corev1.Namespace{})).To(Succeed())
	})

	It("can be installed again over what was kept", func(ctx SpecContext) {
		install := []string{"install", release, light, "-n", namespace, "--values", yamlFile(twoProviders)}
		if helm == tools.Helm4 {
			// It applies CRDs that exist, too, which conflicts with the operator that has upgraded them.
			install = append(install, "--skip-crds")
		}

		run(ctx, helm, install...)
		run(ctx, helm, "uninstall", release, "-n", namespace)
	})

	It("contains the same CRDs as the operator", func(ctx SpecContext) {
		bases, err := charts.CRDs()
		Expect(err).NotTo(HaveOccurred())

		shown := run(ctx, "helm", "show", "crds", archive)
		for _, base := range bases {
			Expect(shown).To(ContainSubstring("name: " + base.GetName() + "\n"))
		}
	})
})

// provider reads a provider's resource.
func provider(ctx context.Context, p v1alpha2.Provider, namespace, name string) v1alpha2.Provider {
	GinkgoHelper()
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, p)).To(Succeed())

	return p
}
