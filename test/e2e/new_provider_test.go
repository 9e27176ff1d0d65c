package e2e

import (
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

var _ = Describe("A new provider", func() {
	It("can be linted, built, rendered and installed as chart new wrote it", func(ctx SpecContext) {
		const label, namespace = "infrastructure-example", "infrastructure-example-system"

		w := sharedWorld(ctx)
		cli := newCommandLine(w)
		folder := GinkgoT().TempDir()
		provider := filepath.Join(folder, label)

		cli.succeed(ctx, "chart", "new", label, "--destination", folder)
		cli.fail(ctx, "chart", "new", label, "--destination", folder).To(
			ContainSubstring("v0.1.0 already exists, and is left as it is"))
		cli.fail(ctx, "chart", "new", "example", "--destination", folder).To(HavePrefix(
			"Error: example: expected the type and a name"))
		Expect(cli.succeed(ctx, "chart", "lint", provider)).To(Equal("no findings\n"))

		cli.succeed(ctx, "chart", "build", provider, "--destination", folder)
		Expect(w.run(ctx, "helm", "template", label, filepath.Join(folder, label+"-0.1.0.tgz"))).To(And(
			ContainSubstring("image: registry.example.com/infrastructure-example-controller:v0.1.0\n"),
			ContainSubstring("- --v=0\n")))

		p := &v1alpha2.InfrastructureProvider{ObjectMeta: named(namespace, "example")}
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{Directory: folder}

		Expect(w.client.Create(ctx, &corev1.Namespace{ObjectMeta: named("", namespace)})).To(Succeed())
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v0.1.0"))

		cluster := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "ExampleCluster",
			"metadata": map[string]any{"namespace": "default", "name": "mine"},
			"spec":     map[string]any{"controlPlaneEndpoint": map[string]any{"host": "192.0.2.1", "port": int64(6443)}},
		}}
		Expect(w.client.Create(ctx, cluster)).To(Succeed())
	})
})
