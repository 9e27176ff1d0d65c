package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/test/harness"
)

// withoutOldVersion returns components of core that no longer serve v1beta1.
func withoutOldVersion(components []byte) []byte {
	GinkgoHelper()

	const version = "- name: v1beta1\n"

	parts := strings.Split(string(components), version)
	Expect(len(parts)).To(BeNumerically(">", 1))

	for i := range parts[1:] {
		parts[i+1] = strings.Replace(parts[i+1], "served: true", "served: false", 1)
	}

	return []byte(strings.Join(parts, version))
}

// Cluster API 1.16 will no longer serve v1beta1. Its contract stays v1beta2, which works with v1beta1 so far.
var _ = Describe("A core that no longer serves an old version", Ordered, func() {
	var (
		w    *world
		core v1alpha2.Provider
		old  *v1alpha2.InfrastructureProvider
	)

	// offer offers a provider with the contracts v1beta1 in v1.0 and v1beta2 in v1.1.
	offer := func(ctx context.Context, name, version string) tiny {
		GinkgoHelper()

		t := newTiny(name, version)
		t.metadata = metadataOf("v1beta1", "v1beta2")
		w.offer(ctx, t)

		return t
	}

	BeforeAll(func(ctx SpecContext) {
		w = newWorld()
		w.start()

		release, err := harness.Load(ctx, samples, harness.Wanted{Label: "cluster-api"})
		Expect(err).NotTo(HaveOccurred())

		release.Bundle.Metadata = []byte(metadataOf("v1beta2", "v1beta2"))
		core, err = release.Install(ctx, w.client)
		Expect(err).NotTo(HaveOccurred())
		Eventually(w.read(ctx, core)).Should(beReady("v1.0.0"))

		release.Bundle.Version = "v1.1.0"
		release.Bundle.Components = withoutOldVersion(release.Bundle.Components)
		Expect(w.client.Create(ctx, must(release.ConfigMap()))).To(Succeed())

		old = offer(ctx, "reading", "v1.0.0").resource()
		Expect(w.client.Create(ctx, old)).To(Succeed())
		Eventually(w.read(ctx, old)).Should(beReady("v1.0.0"))
		w.awaitItem(ctx, old)
	})

	It("is not installed under a provider that needs it", func(ctx SpecContext) {
		update(ctx, w, core, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, core)).Should(And(
			failPreflight(v1alpha2.CAPIVersionIncompatibilityReason, "this version of core does not serve Clusters as v1beta1, "+
				"but InfrastructureProvider reading/reading has that contract; change that provider first"),
			notBeReady(v1alpha2.CAPIVersionIncompatibilityReason, "v1.0.0 runs; v1.1.0 is not applied yet"),
		))
		Expect(w.definition(ctx, preflight.ClusterCRD).Spec.Versions[0].Served).To(BeTrue())
	})

	It("follows once the provider has changed", func(ctx SpecContext) {
		offer(ctx, "reading", "v1.1.0")
		update(ctx, w, old, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, old)).Should(beReady("v1.1.0"))
		Eventually(w.read(ctx, core)).Should(beReady("v1.1.0"))
		Expect(w.definition(ctx, preflight.ClusterCRD).Spec.Versions[0].Served).To(BeFalse())
		w.awaitItem(ctx, old)
	})

	It("keeps providers from being installed, or rolled back to, that need it", func(ctx SpecContext) {
		held := failPreflight(v1alpha2.CAPIVersionIncompatibilityReason,
			"this version has the Cluster API contract v1beta1, but core serves Clusters as v1beta2 only")

		late := offer(ctx, "late", "v1.0.0").resource()
		Expect(w.client.Create(ctx, late)).To(Succeed())
		Eventually(w.read(ctx, late)).Should(held)
		Expect(w.helm(ctx, "helm", "list", "-n", "late", "--all")).To(BeEmpty())

		update(ctx, w, old, func(p v1alpha2.Provider) { p.GetSpec().Release = &v1alpha2.ReleaseSpec{RollbackTo: new(1)} })
		Eventually(w.read(ctx, old)).Should(held)
		update(ctx, w, old, func(p v1alpha2.Provider) { p.GetSpec().Release = nil })
		Eventually(w.read(ctx, old)).Should(And(beReady("v1.1.0"),
			haveCondition(v1alpha2.ReadyCondition, metav1.ConditionTrue, v1alpha2.HealthyReason)))
	})
})

var _ = Describe("Providers of clusterctl whose core no longer serves an old version", Ordered, func() {
	var (
		w      *world
		cli    commandLine
		before map[string]string
	)

	labels := []string{"cluster-api", "infrastructure-docker"}

	BeforeAll(func(ctx SpecContext) {
		repository := GinkgoT().TempDir()
		Expect(os.CopyFS(repository, os.DirFS(samples))).To(Succeed())

		components := filepath.Join(repository, "cluster-api", "v1.0.0", "core-components.yaml")
		Expect(os.WriteFile(components, withoutOldVersion(must(os.ReadFile(components))), 0o600)).To(Succeed())

		w = newWorld()
		cli = newCommandLine(w)
		w.createOperatorDeployment(ctx)

		clusterctl := newClusterctl(ctx, w, repository, labels...)
		clusterctl.run(ctx, []string{"EXP_MACHINE_POOL=false"}, "init", "--core=cluster-api:v1.0.0", "--bootstrap=-",
			"--control-plane=-", "--infrastructure=docker:v1.0.0")

		config := withVariables(clusterctl.config, []string{"EXP_MACHINE_POOL=false"})
		w.start("--config=" + config)

		for _, label := range labels {
			Eventually(w.managerOf(ctx, label)).Should(HaveField("Status.AvailableReplicas", BeNumerically("==", 1)))
		}

		Expect(w.definition(ctx, preflight.ClusterCRD).Spec.Versions[0].Served).To(BeFalse())

		before = w.identities(ctx)
		Expect(cli.succeed(ctx, "adopt", "--config", config)).To(And(
			ContainSubstring("\nCoreProvider capi-system/cluster-api: v1.0.0 is healthy ("),
			ContainSubstring("\nInfrastructureProvider capd-system/docker: v1.0.0 is healthy (")))
	})

	It("are adopted, with all objects and pods", func(ctx SpecContext) {
		Expect(w.identities(ctx)).To(Equal(before))
		Expect(cli.succeed(ctx, "status")).To(MatchRegexp(`cluster-api .*v1\.0\.0`))
	})

	It("stay in the inventory", func(ctx SpecContext) {
		for label, namespace := range map[string]string{
			"cluster-api": "capi-system", "infrastructure-docker": "capd-system",
		} {
			Eventually(func() map[string]string { return w.itemOf(ctx, namespace, label).GetLabels() }).Should(
				HaveKeyWithValue(v1alpha2.ManagedByLabel, v1alpha2.FieldOwner))
			Expect(w.itemOf(ctx, namespace, label).Object).To(HaveKeyWithValue("version", "v1.0.0"))
		}
	})
})
