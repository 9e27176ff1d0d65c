package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

var _ = Describe("helm install with a file of values makes an empty cluster a management cluster", func() {
	providers := []harness.Wanted{
		{Label: "cluster-api"}, {Label: "bootstrap-kubeadm"}, {Label: "control-plane-kubeadm"}, {Label: "infrastructure-aws"},
	}

	// values have the providers; flags are in YAML's flow style.
	values := func(flags string) string {
		return file("cluster.yaml", `
flags: {`+flags+`}
providers:
- {kind: CoreProvider, name: cluster-api, namespace: capi-system}
- {kind: BootstrapProvider, name: kubeadm, namespace: capi-kubeadm-bootstrap-system}
- {kind: ControlPlaneProvider, name: kubeadm, namespace: capi-kubeadm-control-plane-system}
- kind: InfrastructureProvider
  name: aws
  namespace: capa-system
  secretVariables: {AWS_B64ENCODED_CREDENTIALS: `+harness.AWSVariables["AWS_B64ENCODED_CREDENTIALS"]+`}
`)
	}

	// install runs helm install, and expects all providers to become ready without anything else.
	install := func(ctx context.Context, w *world, values string, operatorFlags ...string) {
		GinkgoHelper()

		w.run(ctx, "helm", "install", "capstan", root+"/charts/capstan", "--namespace", "capstan-system",
			"--create-namespace", "--values", values)
		w.start(operatorFlags...)

		for _, p := range []v1alpha2.Provider{
			only(v1alpha2.CoreProviderType, "capi-system", "cluster-api", ""),
			only(v1alpha2.BootstrapProviderType, "capi-kubeadm-bootstrap-system", "kubeadm", ""),
			only(v1alpha2.ControlPlaneProviderType, "capi-kubeadm-control-plane-system", "kubeadm", ""),
			only(v1alpha2.InfrastructureProviderType, "capa-system", "aws", ""),
		} {
			Eventually(w.read(ctx, p)).Should(beReadyWith(v1alpha2.HealthyReason))
		}
	}

	It("from public sources", func(ctx SpecContext) {
		w := emptyWorld(bed.Options{})
		repository, _ := testproviders.FolderOrSamples(root)

		var labels []string
		for _, wanted := range providers {
			labels = append(labels, wanted.Label)
		}

		install(ctx, w, values(""), "--config="+clusterctlConfig(repository, labels...))

		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: "capa-system", Name: "infrastructure-aws-variables"}
		Expect(w.client.Get(ctx, key, secret)).To(Succeed())
	})

	It("from a mirror", func(ctx SpecContext) {
		w := emptyWorld(bed.Options{})
		r := newPrivateRegistry(ctx, "")
		repository, _ := testproviders.FolderOrSamples(root)
		r.pushCharts(ctx, repository, providers...)

		mirror := "chart-repository: oci://" + r.Address + "/capi/charts, image-registry: " + r.Address + "/capi"
		install(ctx, w, values(mirror), r.flags()...)

		for _, namespace := range []string{"capi-system", "capa-system"} {
			Expect(w.images(ctx, namespace)).To(HaveEach(HavePrefix(r.Address+"/capi/")), namespace)
		}
	})
})
