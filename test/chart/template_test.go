package chart

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

// This is what Argo CD does: it renders a chart without a cluster, including the CRDs, and applies
// the objects, CRDs first.
var _ = Describe("A chart rendered without a cluster", func() {
	const providerNamespace = "capd-system"

	var provider string

	BeforeEach(func(ctx SpecContext) {
		repository := filepath.Join(root, testproviders.Samples)
		r, err := harness.Load(ctx, repository, harness.Wanted{Label: "infrastructure-docker"})
		Expect(err).NotTo(HaveOccurred())
		made, err := chartgen.Build(r.Bundle)
		Expect(err).NotTo(HaveOccurred())
		data, err := made.Archive()
		Expect(err).NotTo(HaveOccurred())

		provider = filepath.Join(GinkgoT().TempDir(), made.Filename())
		Expect(os.WriteFile(provider, data, 0o600)).To(Succeed())
		// Other scenarios leave theirs in another namespace.
		run(ctx, "kubectl", "delete", "crds", "--selector", v1alpha2.ClusterctlProviderLabel+"="+r.Bundle.Provider.Label)
	})

	It("has no difference after it was applied by the server", func(ctx SpecContext) {
		applyRendered(ctx, provider, providerNamespace)
		applyRendered(ctx, light, namespace, "--values", yamlFile(twoProviders))
	})
})

// applyRendered applies a chart's objects, compares them with the cluster both server-side and
// client-side, and removes them.
func applyRendered(ctx context.Context, chart, namespace string, args ...string) {
	GinkgoHelper()

	ns := &corev1.Namespace{ObjectMeta: objectName(namespace)}
	Expect(client.IgnoreAlreadyExists(admin.Create(ctx, ns))).To(Succeed())

	render := func(flags ...string) string {
		template := []string{"template", release, chart, "-n", namespace}
		return yamlFile(run(ctx, "helm", slices.Concat(template, args, flags)...))
	}
	objects := render("--include-crds")

	Eventually(func() (string, error) { // the CRDs are not served at once
		return try(ctx, "kubectl", "apply", "--server-side", "-f", objects)
	}).ShouldNot(BeEmpty())

	generations := func() []string {
		return strings.Fields(
			run(
				ctx,
				"kubectl",
				"get",
				"-f",
				objects,
				"-o",
				`jsonpath={range .items[*]}{.kind}/{.metadata.name}={.metadata.generation}{"\n"}{end}`,
			),
		)
	}
	before := generations()
	Expect(before).NotTo(BeEmpty())

	for _, side := range []string{"--server-side=true", "--server-side=false"} {
		Eventually(func() (string, error) { // a status that changes while kubectl compares counts as a difference
			return try(ctx, "kubectl", "diff", side, "-f", objects)
		}).Should(BeEmpty(), side)
	}

	run(ctx, "kubectl", "apply", "--server-side", "-f", objects)
	Expect(generations()).To(Equal(before))

	// The API server can take minutes to delete a CRD whose objects were never listed.
	for _, crd := range strings.Fields(run(ctx, "kubectl", "get", "crds", "-o", "name")) {
		kind := crd[strings.Index(crd, "/")+1:]

		Eventually(func() error {
			_, err := try(ctx, "kubectl", "get", kind, "--all-namespaces")
			return err
		}).Should(Succeed())
	}

	// The CRDs go last: kubectl never notices that a resource is gone whose CRD went first.
	run(ctx, "kubectl", "delete", "-f", render())
	run(ctx, "kubectl", "delete", "--ignore-not-found", "-f", objects)
}
